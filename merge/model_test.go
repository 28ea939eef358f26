package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/paimon/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row is one row of the slow model: boxed values, compared one by one.
type modelRow struct {
	vals []any
	seq  int64
	kind int8
}

// typeCase draws values of one column type and builds arrays of them.
type typeCase struct {
	name  string
	field schema.Type
	arrow arrow.DataType
	draw  func(t *rapid.T) any
	less  func(a, b any) bool
}

func ordered[T int8 | int16 | int32 | int64 | string](a, b any) bool { return a.(T) < b.(T) }

func javaLess(a, b any) bool {
	x, y := a.(float64), b.(float64)
	switch {
	case x < y:
		return true
	case x > y:
		return false
	case x == y && x == 0:
		return math.Signbit(x) && !math.Signbit(y)
	}
	return x == x && y != y
}

var typeCases = []typeCase{
	{"bool", schema.Type{Kind: schema.Boolean}, arrow.FixedWidthTypes.Boolean,
		func(t *rapid.T) any { return rapid.Bool().Draw(t, "b") }, func(a, b any) bool { return !a.(bool) && b.(bool) }},
	{"int8", schema.Type{Kind: schema.TinyInt}, arrow.PrimitiveTypes.Int8,
		func(t *rapid.T) any { return rapid.Int8().Draw(t, "i8") }, ordered[int8]},
	{"int16", schema.Type{Kind: schema.SmallInt}, arrow.PrimitiveTypes.Int16,
		func(t *rapid.T) any { return rapid.Int16().Draw(t, "i16") }, ordered[int16]},
	{"int32", schema.Type{Kind: schema.Int}, arrow.PrimitiveTypes.Int32,
		func(t *rapid.T) any { return rapid.Int32().Draw(t, "i32") }, ordered[int32]},
	{"date", schema.Type{Kind: schema.Date}, arrow.FixedWidthTypes.Date32,
		func(t *rapid.T) any { return rapid.Int32Range(-3, 3).Draw(t, "date") }, ordered[int32]},
	{"int64", schema.Type{Kind: schema.BigInt}, arrow.PrimitiveTypes.Int64,
		func(t *rapid.T) any { return rapid.Int64().Draw(t, "i64") }, ordered[int64]},
	{"small int64", schema.Type{Kind: schema.BigInt}, arrow.PrimitiveTypes.Int64,
		func(t *rapid.T) any { return rapid.Int64Range(-20, 20).Draw(t, "i64") }, ordered[int64]},
	{"timestamp", schema.Type{Kind: schema.Timestamp, Prec: 6}, &arrow.TimestampType{Unit: arrow.Microsecond},
		func(t *rapid.T) any { return rapid.Int64().Draw(t, "ts") }, ordered[int64]},
	{"float64", schema.Type{Kind: schema.Double}, arrow.PrimitiveTypes.Float64,
		func(t *rapid.T) any {
			return rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 1.5, math.MaxFloat64, -math.SmallestNonzeroFloat64}).Draw(t, "f")
		}, javaLess},
	{"float32", schema.Type{Kind: schema.Float}, arrow.PrimitiveTypes.Float32,
		func(t *rapid.T) any {
			return rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 1.5}).Draw(t, "f")
		}, javaLess},
	{"decimal9", schema.Type{Kind: schema.Decimal, Prec: 9}, &arrow.Decimal128Type{Precision: 9},
		func(t *rapid.T) any { return decimal128.FromI64(rapid.Int64Range(-999999999, 999999999).Draw(t, "d")) }, decimalLess},
	{"decimal38", schema.Type{Kind: schema.Decimal, Prec: 38}, &arrow.Decimal128Type{Precision: 38},
		func(t *rapid.T) any {
			return decimal128.New(rapid.Int64Range(-3, 3).Draw(t, "hi"), rapid.Uint64().Draw(t, "lo"))
		}, decimalLess},
	{"string", schema.Type{Kind: schema.VarChar, Length: 100}, arrow.BinaryTypes.String,
		func(t *rapid.T) any {
			p := rapid.SampledFrom([]string{"", "", "a-long-common-prefix-", "ab"}).Draw(t, "p")
			return p + string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 0xff}), 0, 12).Draw(t, "s"))
		}, ordered[string]},
	{"binary", schema.Type{Kind: schema.VarBinary, Length: 100}, arrow.BinaryTypes.Binary,
		func(t *rapid.T) any { return string(rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "s")) }, ordered[string]},
}

func decimalLess(a, b any) bool { return a.(decimal128.Num).Cmp(b.(decimal128.Num)) < 0 }

var (
	listType   = arrow.ListOf(arrow.PrimitiveTypes.Int64)
	structType = arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true})
	mapType    = arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)
)

func appendValue(b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int8Builder:
		b.Append(v.(int8))
	case *array.Int16Builder:
		b.Append(v.(int16))
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int32)))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.Float32Builder:
		b.Append(float32(v.(float64)))
	case *array.Decimal128Builder:
		b.Append(v.(decimal128.Num))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append([]byte(v.(string)))
	case *array.ListBuilder:
		b.Append(true)
		for i := range v.(int) {
			b.ValueBuilder().(*array.Int64Builder).Append(int64(i))
		}
	case *array.StructBuilder:
		b.Append(true)
		b.FieldBuilder(0).(*array.Int32Builder).Append(int32(v.(int)))
		b.FieldBuilder(1).(*array.StringBuilder).Append(fmt.Sprint("s", v))
	case *array.MapBuilder:
		b.Append(true)
		for i := range v.(int) {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("k", i))
			b.ItemBuilder().(*array.Int32Builder).Append(int32(i))
		}
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

func buildArray(mem memory.Allocator, dt arrow.DataType, n int, at func(i int) any) arrow.Array {
	b := array.NewBuilder(mem, dt)
	defer b.Release()
	for i := range n {
		appendValue(b, at(i))
	}
	return b.NewArray()
}

// world is a drawn table layout with the types of its columns.
type world struct {
	layout Layout
	types  []arrow.DataType
	keys   []typeCase
}

func drawWorld(t *rapid.T) world {
	var w world
	for i := range rapid.IntRange(1, 3).Draw(t, "keyColumns") {
		c := rapid.SampledFrom(typeCases).Draw(t, "type")
		f := c.field
		f.Nullable = rapid.IntRange(0, 3).Draw(t, "nullable") == 0
		w.keys = append(w.keys, c)
		w.layout.Key = append(w.layout.Key, i)
		w.layout.Fields = append(w.layout.Fields, schema.Field{ID: i, Name: fmt.Sprint("k", i), Type: f})
		w.types = append(w.types, c.arrow)
	}
	for _, dt := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, listType, structType, mapType, arrow.FixedWidthTypes.Boolean} {
		i := len(w.types)
		w.layout.Fields = append(w.layout.Fields, schema.Field{ID: i, Name: fmt.Sprint("v", i), Type: schema.Type{Nullable: true}})
		w.types = append(w.types, dt)
	}
	return w
}

func (w *world) less(a, b modelRow) int {
	for i := range w.keys {
		x, y := a.vals[i], b.vals[i]
		switch {
		case x == nil && y == nil:
			continue
		case x == nil:
			return -1
		case y == nil:
			return 1
		case w.keys[i].less(x, y):
			return -1
		case w.keys[i].less(y, x):
			return 1
		}
	}
	return 0
}

func (w *world) drawKey(t *rapid.T) []any {
	vals := make([]any, len(w.types))
	for i, c := range w.keys {
		if w.layout.Fields[i].Type.Nullable && rapid.IntRange(0, 4).Draw(t, "null") == 0 {
			continue
		}
		vals[i] = c.draw(t)
	}
	return vals
}

// payload fills the value columns from the row's serial number, so that a row is
// recognised in the result.
func (w *world) payload(vals []any, serial int) {
	k := len(w.keys)
	vals[k] = int64(serial)
	vals[k+1] = fmt.Sprintf("value-%d", serial*serial)
	vals[k+2], vals[k+3], vals[k+4], vals[k+5] = serial%4, serial%100, serial%3, serial%2 == 0
	for i := k; i < len(vals); i++ {
		if (serial+i)%5 == 0 {
			vals[i] = nil
		}
	}
}

func (w *world) block(mem memory.Allocator, rows []modelRow, nilColumn int, pad int) *Block {
	b := &Block{Columns: make([]arrow.Array, len(w.types)), Rows: len(rows)}
	for c, dt := range w.types {
		if c == nilColumn {
			continue
		}
		// pad rows in front, so that the block's arrays have an offset
		a := buildArray(mem, dt, len(rows)+pad, func(i int) any {
			if i < pad {
				return nil
			}
			return rows[i-pad].vals[c]
		})
		b.Columns[c] = array.NewSlice(a, int64(pad), int64(pad+len(rows)))
		a.Release()
	}
	b.Seq.Explicit = make([]int64, len(rows))
	plain := true
	for i, r := range rows {
		b.Seq.Explicit[i] = r.seq
		plain = plain && r.kind == KindInsert
	}
	if !plain || pad > 0 {
		b.Kinds = make([]int8, len(rows))
		for i, r := range rows {
			b.Kinds[i] = r.kind
		}
	}
	return b
}

// model merges runs the slow way: later wins at equal or higher numbers.
func (w *world) model(runs [][]modelRow, keep bool) []modelRow {
	var all []modelRow
	for _, r := range runs {
		all = append(all, r...)
	}
	sort.SliceStable(all, func(i, j int) bool { return w.less(all[i], all[j]) < 0 })
	var out []modelRow
	for i := 0; i < len(all); {
		best := all[i]
		j := i + 1
		for ; j < len(all) && w.less(all[i], all[j]) == 0; j++ {
			if all[j].seq >= best.seq {
				best = all[j]
			}
		}
		if keep || best.kind == KindInsert || best.kind == KindUpdateAfter {
			out = append(out, best)
		}
		i = j
	}
	return out
}

func drain(t require.TestingT, s Source, each func(*Block)) {
	for {
		b, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		each(b)
	}
}

// checkedSource hands out blocks like a file reader: from an allocator, valid
// until the second following Next, with kinds and numbers in reused memory.
type checkedSource struct {
	blocks []*Block
	live   []*Block
	fail   error // after the last block
}

func (s *checkedSource) Next(context.Context) (*Block, error) {
	if len(s.live) == 2 {
		s.drop()
	}
	if len(s.blocks) == 0 {
		if s.fail != nil {
			return nil, s.fail
		}
		return nil, io.EOF
	}
	b := s.blocks[0]
	s.blocks = s.blocks[1:]
	s.live = append(s.live, b)
	return b, nil
}

func (s *checkedSource) drop() {
	b := s.live[0]
	s.live = s.live[1:]
	for i := range b.Seq.Explicit {
		b.Seq.Explicit[i] = -77
	}
	for i := range b.Kinds {
		b.Kinds[i] = 2
	}
	releaseBlock(b)
}

func (s *checkedSource) Close() error {
	s.live = append(s.live, s.blocks...)
	s.blocks = nil
	for len(s.live) > 0 {
		s.drop()
	}
	return nil
}

func TestUnionAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		w := drawWorld(t)
		pool := make([][]any, rapid.IntRange(1, 60).Draw(t, "keys"))
		for i := range pool {
			pool[i] = w.drawKey(t)
		}
		keep := rapid.Bool().Draw(t, "keepDeletes")
		nilColumn := rapid.IntRange(len(w.keys)-1, len(w.types)-1).Draw(t, "nilColumn")
		if nilColumn < len(w.keys) {
			nilColumn = -1
		}
		unique := rapid.Bool().Draw(t, "uniqueRuns")
		serial := 0
		var runs [][]modelRow
		var sources []Source
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			var rows []modelRow
			n := rapid.IntRange(0, 40).Draw(t, "rows")
			for range n {
				r := modelRow{vals: slices.Clone(rapid.SampledFrom(pool).Draw(t, "key"))}
				serial++
				w.payload(r.vals, serial)
				r.seq = int64(rapid.IntRange(0, 30).Draw(t, "seq"))
				r.kind = int8(rapid.SampledFrom([]int{0, 0, 0, 2, 3, 1}).Draw(t, "kind"))
				rows = append(rows, r)
			}
			sort.SliceStable(rows, func(i, j int) bool { return w.less(rows[i], rows[j]) < 0 })
			if unique {
				rows = slices.CompactFunc(rows, func(a, b modelRow) bool { return w.less(a, b) == 0 })
			}
			runs = append(runs, rows)
			src := &checkedSource{}
			for len(rows) > 0 {
				n := min(rapid.SampledFrom([]int{0, 1, 2, 5, 100}).Draw(t, "block"), len(rows))
				b := w.block(mem, rows[:n], nilColumn, rapid.IntRange(0, 3).Draw(t, "pad"))
				b.Unique = unique
				src.blocks = append(src.blocks, b)
				rows = rows[n:]
			}
			if rapid.Bool().Draw(t, "memory") {
				sources = append(sources, &releasing{NewBlockSource(src.blocks...), src})
			} else {
				sources = append(sources, src)
			}
		}
		want := w.model(runs, keep)
		u := NewUnion(w.layout, sources, Options{KeepDeletes: keep, BatchRows: rapid.SampledFrom([]int{1, 3, 0}).Draw(t, "batch"), Alloc: mem})
		if x, ok := u.(*union); ok && rapid.Bool().Draw(t, "smallWindows") {
			x.windowRowsTarget, x.window.passRowsMin = rapid.IntRange(1, 40).Draw(t, "window"), rapid.IntRange(1, 5).Draw(t, "pass")
			x.window.heavyBytes = rapid.SampledFrom([]int64{1, 100, heavyBytes}).Draw(t, "heavy")
		}
		at := 0
		drain(t, u, func(b *Block) {
			require.Positive(t, b.Rows)
			require.LessOrEqual(t, at+b.Rows, len(want), "too many rows")
			w.same(t, mem, want[at:at+b.Rows], b, nilColumn, keep)
			at += b.Rows
		})
		require.Equal(t, len(want), at)
		require.NoError(t, u.Close())
		require.NoError(t, u.Close())
		require.Zero(t, mem.CurrentAlloc())
	})
}

// releasing is a block source of memory blocks that the test frees at the end.
type releasing struct {
	Source
	owner *checkedSource
}

func (r *releasing) Close() error {
	_ = r.Source.Close()
	return r.owner.Close()
}

func (w *world) same(t require.TestingT, mem memory.Allocator, want []modelRow, b *Block, nilColumn int, keep bool) {
	for c, dt := range w.types {
		if c == nilColumn {
			require.Nil(t, b.Columns[c])
			continue
		}
		e := buildArray(mem, dt, len(want), func(i int) any { return want[i].vals[c] })
		if v, ok := b.Columns[c].(interface{ ValidateFull() error }); ok && dt != arrow.BinaryTypes.String {
			require.NoError(t, v.ValidateFull())
		}
		if !array.ApproxEqual(e, b.Columns[c], array.WithNaNsEqual(true)) {
			require.Failf(t, "column differs", "column %d (%s): want %v, got %v", c, dt, e, b.Columns[c])
		}
		e.Release()
	}
	if keep {
		for i, r := range want {
			require.Equal(t, r.kind, b.Kinds[i])
			require.Equal(t, r.seq, b.Seq.At(i))
		}
	} else {
		require.Nil(t, b.Kinds)
	}
}

func TestSortAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		n := rapid.IntRange(0, 200).Draw(t, "rows")
		rows := make([]modelRow, n)
		for i := range rows {
			rows[i].vals = w.drawKey(t)
		}
		cols := make([]arrow.Array, len(w.types))
		for c := range w.keys {
			cols[c] = buildArray(memory.DefaultAllocator, w.types[c], n, func(i int) any { return rows[i].vals[c] })
		}
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		sort.SliceStable(want, func(i, j int) bool { return w.less(rows[want[i]], rows[want[j]]) < 0 })
		got := Sort(w.layout, cols, n)
		if got == nil {
			require.True(t, slices.IsSorted(want))
			return
		}
		require.Equal(t, want, got)
	})
}
