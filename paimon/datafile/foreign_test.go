package datafile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// leafData is one leaf of a hand-made file.
type leafData struct {
	values   any
	def, rep []int16
}

// foreignFile writes a file in a layout of the test's own.
func foreignFile(t *testing.T, nodes pqschema.FieldList, leaves []leafData, props ...parquet.WriterProperty) []byte {
	t.Helper()
	root, err := pqschema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	require.NoError(t, err)
	var buf bytes.Buffer
	props = append([]parquet.WriterProperty{parquet.WithDictionaryDefault(false), parquet.WithVersion(parquet.V2_6)}, props...)
	w := file.NewParquetWriter(&buf, root, file.WithWriterProps(parquet.NewWriterProperties(props...)))
	rg, err := w.AppendRowGroupChecked()
	require.NoError(t, err)
	for _, l := range leaves {
		cw, err := rg.NextColumn()
		require.NoError(t, err)
		switch v := l.values.(type) {
		case []int32:
			_, err = cw.(*file.Int32ColumnChunkWriter).WriteBatch(v, l.def, l.rep)
		case []int64:
			_, err = cw.(*file.Int64ColumnChunkWriter).WriteBatch(v, l.def, l.rep)
		case []parquet.Int96:
			_, err = cw.(*file.Int96ColumnChunkWriter).WriteBatch(v, l.def, l.rep)
		case []parquet.ByteArray:
			_, err = cw.(*file.ByteArrayColumnChunkWriter).WriteBatch(v, l.def, l.rep)
		case []parquet.FixedLenByteArray:
			_, err = cw.(*file.FixedLenByteArrayColumnChunkWriter).WriteBatch(v, l.def, l.rep)
		}
		require.NoError(t, err)
	}
	require.NoError(t, rg.Close())
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// column0 reads the only column of a file as text.
func column0(t *testing.T, data []byte, f schema.Field) string {
	t.Helper()
	recs := decode(t, checked(t), data, []schema.Field{f}, ReadOptions{BatchRows: 2})
	defer releaseAll(recs)
	return joined(t, recs, 0).String()
}

func rawInt96(nanos int64, julian uint32) (v parquet.Int96) {
	binary.LittleEndian.PutUint64(v[:8], uint64(nanos))
	binary.LittleEndian.PutUint32(v[8:], julian)
	return v
}

func TestForeignScalarLayouts(t *testing.T) {
	req, opt := parquet.Repetitions.Required, parquet.Repetitions.Optional
	prim := func(rep parquet.Repetition, l pqschema.LogicalType, p parquet.Type, width int) pqschema.Node {
		return pqschema.Must(pqschema.NewPrimitiveNodeLogical("c", rep, l, p, width, -1))
	}
	dec := pqschema.NewDecimalLogicalType(9, 2)
	// -1 ns is the last nanosecond of 1969; old writers store it as day 1970-01-01
	// with nanos -1, others as day 1969-12-31.
	int96s := []parquet.Int96{rawInt96(-1, 2440588), rawInt96(nanosPerDay-1, 2440587), rawInt96(1_500_000, 2440589)}
	for _, tc := range []struct {
		name string
		node pqschema.Node
		leaf leafData
		t    schema.Type
		want string
	}{
		{"decimal in INT64", prim(req, dec, parquet.Types.Int64, -1), leafData{values: []int64{-5, 250}}, decimalType(9, 2), `[-0.05 2.5]`},
		{"decimal in BYTE_ARRAY", prim(req, dec, parquet.Types.ByteArray, -1),
			leafData{values: []parquet.ByteArray{{0xFF}, {0x01, 0x00}}}, decimalType(9, 2), `[-0.01 2.56]`},
		{"decimal in wide FIXED_LEN_BYTE_ARRAY", prim(req, dec, parquet.Types.FixedLenByteArray, 5),
			leafData{values: []parquet.FixedLenByteArray{{0xFF, 0xFF, 0xFF, 0xFF, 0xFE}, {0, 0, 0, 1, 0}}}, decimalType(9, 2), `[-0.02 2.56]`},
		{"timestamp(9) in INT64 nanos", prim(req, pqschema.NewTimestampLogicalType(false, pqschema.TimeUnitNanos), parquet.Types.Int64, -1),
			leafData{values: []int64{-1}}, stamp(schema.Timestamp, 9), `[-1]`},
		{"timestamp(6) in INT64 millis", prim(req, pqschema.NewTimestampLogicalType(false, pqschema.TimeUnitMillis), parquet.Types.Int64, -1),
			leafData{values: []int64{-1}}, stamp(schema.Timestamp, 6), `[-1000]`},
		{"timestamp(3) in INT64 micros", prim(req, pqschema.NewTimestampLogicalType(false, pqschema.TimeUnitMicros), parquet.Types.Int64, -1),
			leafData{values: []int64{-1}}, stamp(schema.Timestamp, 3), `[-1]`},
		{"timestamp(9) in INT96", prim(req, nil, parquet.Types.Int96, -1), leafData{values: int96s}, stamp(schema.Timestamp, 9),
			`[-1 -1 86400001500000]`},
		{"timestamp(3) in INT96", prim(req, nil, parquet.Types.Int96, -1), leafData{values: int96s}, stamp(schema.Timestamp, 3),
			`[-1 -1 86400001]`},
		{"kind in a nullable column", prim(opt, nil, parquet.Types.Int32, -1), leafData{values: []int32{3, 0}, def: []int16{1, 1}},
			schema.Type{Kind: schema.TinyInt}, `[3 0]`},
		{"text of fixed width", prim(opt, nil, parquet.Types.FixedLenByteArray, 2),
			leafData{values: []parquet.FixedLenByteArray{[]byte("ab"), []byte("cd")}, def: []int16{1, 0, 1}}, text(), `["ab" (null) "cd"]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data := foreignFile(t, pqschema.FieldList{tc.node}, []leafData{tc.leaf})
			require.Equal(t, tc.want, column0(t, data, schema.Field{Name: "c", Type: tc.t}))
		})
	}
}

func TestForeignScalarsThatDoNotFit(t *testing.T) {
	req := parquet.Repetitions.Required
	far := pqschema.Must(pqschema.NewPrimitiveNode("c", req, parquet.Types.Int96, -1, -1))
	data := foreignFile(t, pqschema.FieldList{far}, []leafData{{values: []parquet.Int96{rawInt96(0, 5373484)}}}) // 9999-12-31
	_, err := tryDecode(memory.DefaultAllocator, data, []schema.Field{{Name: "c", Type: stamp(schema.Timestamp, 9)}}, ReadOptions{})
	require.ErrorIs(t, err, errs.ErrUnsupported)
	require.Equal(t, "[253402214400000000]", column0(t, data, schema.Field{Name: "c", Type: stamp(schema.Timestamp, 6)}))

	kind := pqschema.Must(pqschema.NewPrimitiveNode("c", parquet.Repetitions.Optional, parquet.Types.Int32, -1, -1))
	data = foreignFile(t, pqschema.FieldList{kind}, []leafData{{values: []int32{300}, def: []int16{1}}})
	_, err = tryDecode(memory.DefaultAllocator, data, []schema.Field{{Name: "c", Type: typ(schema.TinyInt)}}, ReadOptions{})
	require.ErrorIs(t, err, errs.ErrCorrupt)
	data = foreignFile(t, pqschema.FieldList{kind}, []leafData{{values: []int32{}, def: []int16{0}}})
	_, err = tryDecode(memory.DefaultAllocator, data, []schema.Field{{Name: "c", Type: schema.Type{Kind: schema.TinyInt}}}, ReadOptions{})
	require.ErrorIs(t, err, errs.ErrCorrupt, "a null in a NOT NULL column")
}

func TestForeignListLayouts(t *testing.T) {
	req, opt, rep := parquet.Repetitions.Required, parquet.Repetitions.Optional, parquet.Repetitions.Repeated
	i32 := func(name string, r parquet.Repetition) pqschema.Node {
		return pqschema.Must(pqschema.NewPrimitiveNode(name, r, parquet.Types.Int32, -1, -1))
	}
	group := func(name string, r parquet.Repetition, l pqschema.LogicalType, fields ...pqschema.Node) pqschema.Node {
		if l == nil {
			return pqschema.Must(pqschema.NewGroupNode(name, r, fields, -1))
		}
		return pqschema.Must(pqschema.NewGroupNodeLogical(name, r, fields, l, -1))
	}
	list := pqschema.NewListLogicalType()
	ints := schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(typ(schema.Int))}
	row := schema.Type{Kind: schema.Row, Nullable: true, Fields: []schema.Field{{Name: "x", Type: typ(schema.Int)}}}
	rows := schema.Type{Kind: schema.Array, Nullable: true, Elem: &row}
	// Two rows: [1 2], and an empty or null list.
	twoLevel := leafData{values: []int32{1, 2}, def: []int16{2, 2, 0}, rep: []int16{0, 1, 0}}
	for _, tc := range []struct {
		name string
		node pqschema.Node
		leaf leafData
		t    schema.Type
		want string
	}{
		{"repeated primitive in a LIST", group("c", opt, list, i32("array", rep)), twoLevel, ints, `[[1 2] (null)]`},
		{"bag and array_element", group("c", opt, list, group("bag", rep, nil, i32("array_element", opt))),
			leafData{values: []int32{1, 2}, def: []int16{3, 3, 1}, rep: []int16{0, 1, 0}}, ints, `[[1 2] []]`},
		{"repeated group array is the element", group("c", opt, list, group("array", rep, nil, i32("x", opt))),
			leafData{values: []int32{1}, def: []int16{3, 2, 0}, rep: []int16{0, 1, 0}}, rows, `[{[1 (null)]} (null)]`},
		{"bare repeated field", i32("c", rep), leafData{values: []int32{1, 2}, def: []int16{1, 1, 0}, rep: []int16{0, 1, 0}}, ints, `[[1 2] []]`},
		{"map with other names", group("c", req, pqschema.MapLogicalType{}, group("map", rep, nil, i32("k", req), i32("v", opt))),
			leafData{}, schema.Type{Kind: schema.Map, Key: ref(typ(schema.Int)), Elem: ref(typ(schema.Int))}, `[{[7] [(null)]} {[] []}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			leaves := []leafData{tc.leaf}
			if tc.t.Kind == schema.Map {
				leaves = []leafData{{values: []int32{7}, def: []int16{1, 0}, rep: []int16{0, 0}}, {values: []int32{}, def: []int16{1, 0}, rep: []int16{0, 0}}}
			}
			data := foreignFile(t, pqschema.FieldList{tc.node}, leaves)
			require.Equal(t, tc.want, column0(t, data, schema.Field{Name: "c", Type: tc.t}))
		})
	}
}

// Encodings and page versions of other writers decode to the same values.
func TestForeignEncodings(t *testing.T) {
	node := pqschema.Must(pqschema.NewPrimitiveNodeLogical("c", parquet.Repetitions.Optional, pqschema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1))
	var values []parquet.ByteArray
	var def []int16
	for i := range 3000 {
		def = append(def, int16(min(i%7, 1)))
		if i%7 > 0 {
			values = append(values, []byte("value-"+string(rune('a'+i%26))+string(bytes.Repeat([]byte{'x'}, i%13))))
		}
	}
	f := schema.Field{Name: "c", Type: text()}
	plain := column0(t, foreignFile(t, pqschema.FieldList{node}, []leafData{{values: values, def: def}}), f)
	for name, props := range map[string][]parquet.WriterProperty{
		"v2 pages":                {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Zstd)},
		"v2 pages, brotli":        {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Brotli)},
		"delta length":            {parquet.WithEncoding(parquet.Encodings.DeltaLengthByteArray)},
		"delta":                   {parquet.WithEncoding(parquet.Encodings.DeltaByteArray)},
		"delta, v2":               {parquet.WithEncoding(parquet.Encodings.DeltaByteArray), parquet.WithDataPageVersion(parquet.DataPageV2)},
		"dictionary":              {parquet.WithDictionaryDefault(true)},
		"dictionary, v2":          {parquet.WithDictionaryDefault(true), parquet.WithDataPageVersion(parquet.DataPageV2)},
		"dictionary falling back": {parquet.WithDictionaryDefault(true), parquet.WithDictionaryPageSizeLimit(100), parquet.WithDataPageSize(200), parquet.WithBatchSize(10)},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, plain, column0(t, foreignFile(t, pqschema.FieldList{node}, []leafData{{values: values, def: def}}, props...), f))
		})
	}
}
