package datafile

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/paimon/schema"
)

// The message text of FORMAT §7.4 and §2.3, worked out by hand.
const wantMessage = `
required group field_id=-1 paimon_schema {
  required int64 field_id=1073741823 _KEY_k;
  required int64 field_id=2147483646 _SEQUENCE_NUMBER;
  required int32 field_id=2147483645 _VALUE_KIND (Int(bitWidth=8, isSigned=true));
  required int64 field_id=0 k;
  optional boolean field_id=1 b;
  optional int32 field_id=2 s (Int(bitWidth=16, isSigned=true));
  optional int32 field_id=3 d9 (Decimal(precision=9, scale=2));
  optional int64 field_id=4 d18 (Decimal(precision=18, scale=2));
  optional fixed_len_byte_array field_id=5 d23 (Decimal(precision=23, scale=5));
  optional int32 field_id=6 tm (Time(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional int64 field_id=9 t3 (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds, is_from_converted_type=false, force_set_converted_type=false));
  optional int64 field_id=10 z6 (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false));
  optional int96 field_id=11 t9;
  optional group field_id=7 arr (List) {
    repeated group field_id=-1 list {
      optional int32 field_id=536878080 element;
    }
  }
  optional group field_id=8 m (Map) {
    repeated group field_id=-1 key_value {
      required byte_array field_id=536862718 key (String);
      optional group field_id=536879104 value (List) {
        repeated group field_id=-1 list {
          optional int32 field_id=536879105 element;
        }
      }
    }
  }
  optional group field_id=12 ms (Map) {
    repeated group field_id=-1 key_value {
      required byte_array field_id=536858622 key (String);
      required int32 field_id=536883200 value;
    }
  }
  optional group field_id=13 r {
    optional byte_array field_id=14 x;
    required int32 field_id=15 y (Date);
  }
}`

func layoutFields() []schema.Field {
	k := schema.Field{ID: 0, Name: "k", Type: schema.Type{Kind: schema.BigInt}}
	ints := schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(typ(schema.Int))}
	return []schema.Field{
		schema.KeyField(k), schema.SequenceField(), schema.ValueKindField(), k,
		{ID: 1, Name: "b", Type: typ(schema.Boolean)},
		{ID: 2, Name: "s", Type: typ(schema.SmallInt)},
		{ID: 3, Name: "d9", Type: decimalType(9, 2)},
		{ID: 4, Name: "d18", Type: decimalType(18, 2)},
		{ID: 5, Name: "d23", Type: decimalType(23, 5)},
		{ID: 6, Name: "tm", Type: typ(schema.Time)},
		{ID: 9, Name: "t3", Type: stamp(schema.Timestamp, 3)},
		{ID: 10, Name: "z6", Type: stamp(schema.TimestampLTZ, 6)},
		{ID: 11, Name: "t9", Type: stamp(schema.Timestamp, 9)},
		{ID: 7, Name: "arr", Type: ints},
		{ID: 8, Name: "m", Type: schema.Type{Kind: schema.Map, Nullable: true, Key: ref(text()), Elem: &ints}},
		{ID: 12, Name: "ms", Type: schema.Type{Kind: schema.Multiset, Nullable: true, Elem: ref(text())}},
		{ID: 13, Name: "r", Type: schema.Type{Kind: schema.Row, Nullable: true, Fields: []schema.Field{
			{ID: 14, Name: "x", Type: blob()}, {ID: 15, Name: "y", Type: schema.Type{Kind: schema.Date}},
		}}},
	}
}

func TestWrittenLayout(t *testing.T) {
	fields := layoutFields()
	data, _ := encode(t, fields, WriterOptions{}, randomBatch(rand.New(rand.NewPCG(3, 3)), fields, 50, 0.1))
	r, err := file.NewParquetReader(bytes.NewReader(data))
	require.NoError(t, err)
	meta := r.MetaData()
	var b strings.Builder
	pqschema.PrintSchema(meta.Schema.Root(), &b, 2)
	require.Equal(t, strings.TrimSpace(wantMessage), strings.TrimSpace(b.String()))
	require.Equal(t, 10, meta.Schema.Column(meta.Schema.ColumnIndexByName("d23")).TypeLength())
	require.Equal(t, createdBy, meta.GetCreatedBy())
	require.Len(t, meta.ColumnOrders, meta.Schema.NumColumns())

	rg := meta.RowGroup(0)
	for i := range rg.NumColumns() {
		c, err := rg.ColumnChunk(i)
		require.NoError(t, err)
		path := c.PathInSchema().String()
		require.Equal(t, "ZSTD", c.Compression().String(), path)
		require.Equal(t, path == kindColumn, c.HasDictionaryPage(), path)
		for _, e := range c.Encodings() {
			require.Contains(t, []parquet.Encoding{parquet.Encodings.Plain, parquet.Encodings.RLE, parquet.Encodings.RLEDict,
				parquet.Encodings.PlainDict}, e, path)
		}
		pages, err := r.RowGroup(0).GetColumnPageReader(i)
		require.NoError(t, err)
		for pages.Next() {
			require.NotEqual(t, file.PageTypeDataPageV2, pages.Page().Type())
		}
		require.NoError(t, pages.Err())
		set, err := c.StatsSet()
		require.NoError(t, err)
		require.Equal(t, path != "t9", set, path)
	}
}

func TestDecimalWidths(t *testing.T) {
	for p, want := range map[int]int{19: 9, 21: 9, 22: 10, 23: 10, 24: 11, 26: 11, 27: 12, 28: 12, 29: 13, 31: 13, 32: 14, 33: 14, 34: 15, 35: 15, 36: 16, 38: 16} {
		require.Equal(t, want, decimalBytes(p), "precision %d", p)
	}
}

func TestRowGroupStatistics(t *testing.T) {
	fields := []schema.Field{{ID: 0, Name: "k", Type: schema.Type{Kind: schema.BigInt}}, {ID: 1, Name: "d", Type: decimalType(20, 1)}}
	rng := rand.New(rand.NewPCG(9, 9))
	a, b := randomBatch(rng, fields, 50, 0.2), randomBatch(rng, fields, 50, 0.2)
	data, _ := encode(t, fields, WriterOptions{RowGroupBytes: 1}, a, b)
	r, err := Open(context.Background(), newMemFile(data), ReaderOptions{})
	require.NoError(t, err)
	require.Equal(t, []Column{{"k", 0}, {"d", 1}}, r.Columns())
	require.Len(t, r.RowGroups(), 2)
	for i, batch := range []interface {
		NumRows() int64
	}{a, b} {
		g := r.RowGroups()[i]
		require.Equal(t, batch.NumRows(), g.Rows())
	}
	for k, f := range fields {
		c := newStatsCollector(f.Type)
		c.add(a.Column(k))
		st, ok := r.RowGroups()[0].Stats(f)
		require.True(t, ok)
		require.Equal(t, c.result(), st)
	}
	// Keep chooses row groups.
	out, err := tryDecode(nil, data, fields, ReadOptions{Keep: func(g RowGroup) bool { return g.Index == 1 }})
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.True(t, out[0].Column(0).String() == b.Column(0).String())
}
