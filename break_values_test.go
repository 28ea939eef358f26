package tideline_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

// everything has a column of every kind that has a layout of its own, nested
// ones in one another.
var everything = arrow.NewSchema([]arrow.Field{
	{Name: "p", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "f", Type: arrow.PrimitiveTypes.Float64},
	{Name: "s", Type: arrow.BinaryTypes.String},
	{Name: "dec", Type: &arrow.Decimal128Type{Precision: 38, Scale: 10}, Nullable: true},
	{Name: "small", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: true},
	{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true},
	{Name: "nano", Type: &arrow.TimestampType{Unit: arrow.Nanosecond}, Nullable: true},
	{Name: "ltz", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	{Name: "ok", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "b", Type: arrow.BinaryTypes.Binary, Nullable: true},
	{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(arrow.BinaryTypes.String)), Nullable: true},
	{Name: "r", Type: arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "deep", Type: arrow.ListOf(arrow.StructOf(
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
			arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true},
		)), Nullable: true},
	), Nullable: true},
}, nil)

// flatColumns have no nested columns, so that small batches join open chunks.
const flatColumns = 11

func fillRandom(b array.Builder, r *rand.Rand, nullable bool) {
	if nullable && r.IntN(4) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(strings.Repeat(string(rune('a'+r.IntN(4))), r.IntN(3)))
	case *array.BinaryBuilder:
		b.Append([]byte{byte(r.Uint32()), 0, 255}[:r.IntN(4)])
	case *array.Float64Builder:
		b.Append([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), -1.5, 1.5, math.MaxFloat64}[r.IntN(8)])
	case *array.Decimal128Builder:
		prec := b.Type().(*arrow.Decimal128Type).Precision
		top := decimal128.GetMaxValue(prec)
		b.Append([]decimal128.Num{top, top.Negate(), {}, decimal128.FromI64(-1), decimal128.FromI64(r.Int64N(1000))}[r.IntN(5)])
	case *array.TimestampBuilder:
		switch b.Type().(*arrow.TimestampType).Unit {
		case arrow.Nanosecond:
			b.Append([]arrow.Timestamp{-1, math.MinInt64, math.MaxInt64, 0, 1}[r.IntN(5)])
		case arrow.Microsecond:
			b.Append([]arrow.Timestamp{-1, -62135596800000000, 253402300799999999, 0, -999999}[r.IntN(5)])
		default:
			b.Append([]arrow.Timestamp{-1, -62135596800000, 253402300799999, 0, -999}[r.IntN(5)])
		}
	case *array.Date32Builder:
		b.Append([]arrow.Date32{-719162, 2932896, -1, 0}[r.IntN(4)])
	case *array.BooleanBuilder:
		b.Append(r.IntN(2) == 0)
	case *array.Int64Builder:
		b.Append([]int64{math.MinInt64, math.MaxInt64, 0, 7}[r.IntN(4)])
	case *array.Int32Builder:
		b.Append(int32(r.Uint32()))
	case *array.Int8Builder:
		b.Append(int8(r.Uint32()))
	case *array.MapBuilder: // before its embedded list
		b.Append(true)
		for i := range r.IntN(3) {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint(i))
			fillRandom(b.ItemBuilder(), r, true)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range r.IntN(4) {
			fillRandom(b.ValueBuilder(), r, true)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			fillRandom(b.FieldBuilder(i), r, true)
		}
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

func randomRows(t *testing.T, s *arrow.Schema, r *rand.Rand, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for range n {
		for i, f := range b.Fields() {
			if p, ok := f.(*array.StringBuilder); ok && i == 0 && r.IntN(4) > 0 { // an empty partition value is refused
				p.Append([]string{"x", "a/b", "=%"}[r.IntN(3)])
			} else if i == 0 && s.Field(i).Nullable {
				f.AppendNull()
			} else if i == 0 {
				f.(*array.StringBuilder).Append("y")
			} else {
				fillRandom(f, r, s.Field(i).Nullable)
			}
		}
	}
	out := b.NewRecordBatch()
	t.Cleanup(out.Release)
	return out
}

// line prints a row, key values so that every float and every partition differs.
func line(b arrow.RecordBatch, i int, columns ...string) string {
	var out []string
	for c, f := range b.Schema().Fields() {
		if len(columns) > 0 && !slices.Contains(columns, f.Name) {
			continue
		}
		v := "null"
		switch a := b.Column(c).(type) {
		case *array.Float64:
			v = fmt.Sprintf("%x", math.Float64bits(a.Value(i)))
		case *array.Timestamp:
			if a.IsValid(i) {
				v = fmt.Sprint(int64(a.Value(i)))
			}
		default:
			if a.IsValid(i) {
				v = a.ValueStr(i)
			}
		}
		out = append(out, f.Name+"="+v)
	}
	return strings.Join(out, " ")
}

func linesOf(t *testing.T, s tideline.Scan) []string {
	t.Helper()
	r, err := s.Read(t.Context())
	require.NoError(t, err)
	defer r.Release()
	out := []string{}
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			out = append(out, line(r.RecordBatch(), i))
		}
	}
	require.NoError(t, r.Err())
	return out
}

// Every type survives small and large batches, consolidation, files and a new
// session, in tables of both kinds.
func TestEveryTypeThroughEveryTier(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 5))
		s, keyed := everything, seed%2 == 0
		if seed%4 >= 2 {
			s = arrow.NewSchema(everything.Fields()[:flatColumns], nil)
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			def := tideline.Definition{Columns: s, PartitionBy: []string{"p"}, Options: map[string]string{"bucket": "2", "bucket-key": "s"}}
			if keyed {
				def.PrimaryKey = []string{"p", "f", "s"}
				def.Options["bucket-key"] = "s"
				fields := slices.Clone(s.Fields())
				fields[0].Nullable = false
				def.Columns = arrow.NewSchema(fields, nil)
			}
			w := newWorld(t, def)
			everyTier(t, w, def, r)
		})
	}
}

func everyTier(t *testing.T, w *world, def tideline.Definition, r *rand.Rand) {
	keyed := len(def.PrimaryKey) > 0
	want := map[string]string{}
	var all []string
	check := func(table *tideline.Table) {
		t.Helper()
		expected := slices.Clone(all)
		if keyed {
			expected = nil
			for _, v := range want {
				expected = append(expected, v)
			}
		}
		sort.Strings(expected)
		got := linesOf(t, table.Scan().BatchRows(1+r.IntN(50)))
		sort.Strings(got)
		require.Equal(t, len(expected), len(got))
		for i := range expected {
			require.Equal(t, expected[i], got[i])
		}
		n := 0
		counter, err := table.Scan().Select().Read(t.Context())
		require.NoError(t, err)
		for counter.Next() {
			require.Zero(t, counter.RecordBatch().NumCols())
			n += int(counter.RecordBatch().NumRows())
		}
		require.NoError(t, counter.Err())
		counter.Release()
		require.Equal(t, len(expected), n)
	}
	for range 3 {
		table, writer := w.session()
		for step := range 30 {
			n := 1 + r.IntN(63)
			switch r.IntN(6) {
			case 0:
				n = 64 + r.IntN(400)
			case 1, 2:
				n = 1
			}
			batch := randomRows(t, def.Columns, r, n)
			kinds := make([]int8, n)
			for i := range kinds {
				if keyed && r.IntN(5) == 0 {
					kinds[i] = tideline.Delete
				}
				key := line(batch, i, "p", "f", "s")
				if kinds[i] == tideline.Delete {
					delete(want, key)
				} else {
					want[key] = line(batch, i)
					all = append(all, line(batch, i))
				}
			}
			_, err := writer.Write(t.Context(), batch, tideline.Kinds(kinds))
			require.NoError(t, err)
			switch r.IntN(12) {
			case 0:
				require.NoError(t, writer.Seal(t.Context()))
			case 1:
				commit(t, writer)
			case 2:
				publish(t, table, prepare(t, writer))
			case 3:
				require.NoError(t, writer.Abort(t.Context(), prepare(t, writer)))
			case 4:
				check(table)
			}
			if step == 29 {
				check(table)
				commit(t, writer)
			}
		}
		require.NoError(t, table.Refresh(t.Context()))
		check(table)
		require.Zero(t, stats(t, table).UsedBytes)
		require.NoError(t, writer.Close(t.Context()))
		require.NoError(t, table.Close(t.Context()))
		check(w.open())
	}
}
