package datafile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/paimon/schema"
)

func typ(k schema.Kind) schema.Type { return schema.Type{Kind: k, Nullable: true} }

func ref(t schema.Type) *schema.Type { return &t }

func decimalType(p, s int) schema.Type {
	return schema.Type{Kind: schema.Decimal, Nullable: true, Prec: p, Scale: s}
}

func text() schema.Type {
	return schema.Type{Kind: schema.VarChar, Length: schema.MaxLength, Nullable: true}
}

func blob() schema.Type {
	return schema.Type{Kind: schema.VarBinary, Length: schema.MaxLength, Nullable: true}
}

func stamp(k schema.Kind, p int) schema.Type { return schema.Type{Kind: k, Prec: p, Nullable: true} }

// everyType is a schema with each type of the format, nested ones included.
func everyType() []schema.Field {
	types := []schema.Type{
		typ(schema.Boolean), typ(schema.TinyInt), typ(schema.SmallInt), typ(schema.Int), typ(schema.BigInt),
		typ(schema.Float), typ(schema.Double), text(), blob(), typ(schema.Date), typ(schema.Time),
		{Kind: schema.Char, Length: 3, Nullable: true},
	}
	for p := 1; p <= 38; p++ {
		types = append(types, decimalType(p, p/2))
	}
	for p := 0; p <= 9; p++ {
		types = append(types, stamp(schema.Timestamp, p), stamp(schema.TimestampLTZ, p))
	}
	row := schema.Type{Kind: schema.Row, Nullable: true, Fields: []schema.Field{
		{ID: 1001, Name: "a", Type: typ(schema.BigInt)},
		{ID: 1002, Name: "b", Type: stamp(schema.Timestamp, 9)},
		{ID: 1003, Name: "c", Type: schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(text())}},
	}}
	types = append(types,
		schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(typ(schema.Int))},
		schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(decimalType(25, 3))})},
		schema.Type{Kind: schema.Map, Nullable: true, Key: ref(text()), Elem: ref(typ(schema.Boolean))},
		schema.Type{Kind: schema.Map, Nullable: true, Key: ref(typ(schema.Int)), Elem: ref(row)},
		schema.Type{Kind: schema.Multiset, Nullable: true, Elem: ref(text())},
		row,
		schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(row)},
	)
	fields := make([]schema.Field, len(types))
	for i, t := range types {
		fields[i] = schema.Field{ID: i, Name: fmt.Sprintf("c%d", i), Type: t}
	}
	return fields
}

// fill appends one random value of a type, null with the given chance.
func fill(rng *rand.Rand, t schema.Type, b array.Builder, nulls float64) {
	if t.Nullable && rng.Float64() < nulls {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(rng.IntN(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(rng.Uint32()))
	case *array.Int16Builder:
		b.Append(int16(rng.Uint32()))
	case *array.Int32Builder:
		b.Append(int32(rng.Uint32()))
	case *array.Int64Builder:
		b.Append(int64(rng.Uint64()))
	case *array.Float32Builder:
		b.Append(float32(rng.NormFloat64()))
	case *array.Float64Builder:
		b.Append(rng.NormFloat64())
	case *array.StringBuilder:
		b.Append(fmt.Sprintf("%.*s", rng.IntN(12), "åéz0123456789"))
	case *array.BinaryBuilder:
		v := make([]byte, rng.IntN(9))
		for i := range v {
			v[i] = byte(rng.Uint32())
		}
		b.Append(v)
	case *array.Date32Builder:
		b.Append(arrow.Date32(int32(rng.Uint32()) >> 8))
	case *array.Time32Builder:
		b.Append(arrow.Time32(rng.IntN(86400000)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(int64(rng.Uint64()) >> rng.IntN(40)))
	case *array.Decimal128Builder:
		b.Append(randomDecimal(rng, t.Prec))
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range t.Fields {
			fill(rng, f.Type, b.FieldBuilder(i), nulls)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range rng.IntN(4) {
			fill(rng, *t.Elem, b.ValueBuilder(), nulls)
		}
	case *array.MapBuilder:
		b.Append(true)
		key, value := mapParts(t)
		key.Nullable = false
		for range rng.IntN(4) {
			fill(rng, key, b.KeyBuilder(), 0)
			fill(rng, value, b.ItemBuilder(), nulls)
		}
	default:
		panic(fmt.Sprintf("no values for %T", b))
	}
}

func randomDecimal(rng *rand.Rand, p int) decimal128.Num {
	n := decimal128.FromU64(0)
	for range 1 + rng.IntN(p) {
		n = n.Mul(decimal128.FromU64(10)).Add(decimal128.FromU64(uint64(rng.IntN(10))))
	}
	if rng.IntN(2) == 0 {
		n = n.Negate()
	}
	return n
}

func randomBatch(rng *rand.Rand, fields []schema.Field, n int, nulls float64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema.ArrowSchema(fields))
	defer b.Release()
	for i, f := range fields {
		for range n {
			if f.Name == kindColumn {
				b.Field(i).(*array.Int8Builder).Append(int8(rng.IntN(4)))
				continue
			}
			fill(rng, f.Type, b.Field(i), nulls)
		}
	}
	return b.NewRecordBatch()
}

func requireSameRows(t *testing.T, want, got []arrow.RecordBatch, fields []schema.Field) {
	t.Helper()
	for i, f := range fields {
		a, b := joined(t, want, i), joined(t, got, i)
		require.True(t, array.Equal(a, b), "column %s %s:\n%s\n%s", f.Name, f.Type, a, b)
	}
}

func TestEveryTypeRoundTrips(t *testing.T) {
	for _, tc := range []struct {
		name      string
		rows      []int
		nulls     float64
		o         WriterOptions
		batchRows int
	}{
		{"no nulls", []int{500}, 0, WriterOptions{}, 0},
		{"some nulls", []int{500, 0, 300}, 0.2, WriterOptions{}, 97},
		{"all null", []int{100}, 1, WriterOptions{}, 0},
		{"many row groups", []int{200, 200, 200}, 0.1, WriterOptions{RowGroupBytes: 1}, 0},
		{"small pages", []int{1500}, 0.1, WriterOptions{PageBytes: 1 << 10}, 333},
		{"snappy", []int{400}, 0.1, WriterOptions{Compression: "snappy"}, 0},
		{"lz4", []int{400}, 0.1, WriterOptions{Compression: "lz4"}, 0},
		{"gzip", []int{400}, 0.1, WriterOptions{Compression: "gzip"}, 0},
		{"none", []int{400}, 0.1, WriterOptions{Compression: "none"}, 0},
		{"dictionaries", []int{800}, 0.3, WriterOptions{Dictionary: []string{"c0", "c3", "c7", "c8", "c40"}}, 100},
		{"empty", nil, 0, WriterOptions{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			fields := everyType()
			var in []arrow.RecordBatch
			total := 0
			for _, n := range tc.rows {
				in = append(in, randomBatch(rng, fields, n, tc.nulls))
				total += n
			}
			wmem := checked(t)
			tc.o.Alloc = wmem
			data, res := encode(t, fields, tc.o, in...)
			require.EqualValues(t, total, res.Rows)

			got := decode(t, checked(t), data, fields, ReadOptions{BatchRows: tc.batchRows})
			defer releaseAll(got)
			if total == 0 {
				require.Empty(t, got)
				return
			}
			for _, rec := range got {
				require.True(t, rec.Schema().Equal(schema.ArrowSchema(fields)))
				if tc.batchRows > 0 {
					require.LessOrEqual(t, rec.NumRows(), int64(tc.batchRows))
				}
			}
			requireSameRows(t, in, got, fields)
		})
	}
}

func TestTimestampsKeepTheirExtremes(t *testing.T) {
	for p := 0; p <= 9; p++ {
		fields := []schema.Field{{ID: 0, Name: "t", Type: stamp(schema.Timestamp, p)}}
		b := array.NewRecordBuilder(memory.NewGoAllocator(), schema.ArrowSchema(fields))
		tb := b.Field(0).(*array.TimestampBuilder)
		for _, v := range []int64{math.MinInt64, -1, 0, 1, -86400e9, -86400e9 - 1, math.MaxInt64} {
			tb.Append(arrow.Timestamp(v))
		}
		in := b.NewRecordBatch()
		data, _ := encode(t, fields, WriterOptions{}, in)
		got := decode(t, checked(t), data, fields, ReadOptions{})
		requireSameRows(t, []arrow.RecordBatch{in}, got, fields)
		releaseAll(got)
	}
}

func TestInt96FloorsBeforeTheEpoch(t *testing.T) {
	// 1969-12-31 23:59:59.999999999 is day 2440587 and 86399999999999 ns.
	v := toInt96(-1)
	require.Equal(t, []byte{0xFF, 0xFF, 0x4E, 0x91, 0x94, 0x4E, 0, 0, 0x8B, 0x3D, 0x25, 0}, v[:])
}
