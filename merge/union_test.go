package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

var twoColumns = Layout{Key: []int{0}, Fields: []schema.Field{
	{Name: "k", Type: schema.Type{Kind: schema.BigInt}}, {Name: "v", Type: schema.Type{Kind: schema.BigInt, Nullable: true}},
}}

// numbers builds a block of (key, value) rows whose sequence numbers start at seq.
func numbers(seq int64, keys ...int64) *Block {
	b := &Block{Rows: len(keys), Seq: Numbers{Base: seq}}
	k := buildArray(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, len(keys), func(i int) any { return keys[i] })
	v := buildArray(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, len(keys), func(i int) any { return seq + int64(i) })
	b.Columns = []arrow.Array{k, v}
	return b
}

func int64s(b *Block, column int) []int64 { return b.Columns[column].(*array.Int64).Int64Values() }

func collect(t *testing.T, s Source, column int) []int64 {
	var out []int64
	drain(t, s, func(b *Block) { out = append(out, int64s(b, column)...) })
	require.NoError(t, s.Close())
	return out
}

// TestUnionOfManyLargeRuns compares big merges of every key distribution, with
// windows and splitters as in production, with a map.
func TestUnionOfManyLargeRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	for name, key := range map[string]func(i int) int64{
		"random":      func(int) int64 { return int64(r.Uint64()) },
		"dense":       func(int) int64 { return r.Int64N(200_000) },
		"append":      func(i int) int64 { return int64(i) },
		"few":         func(int) int64 { return r.Int64N(3) },
		"exponential": func(int) int64 { return int64(1) << r.Int64N(63) },
		"hot": func(i int) int64 {
			if r.Int64N(10) > 0 {
				return r.Int64N(100)
			}
			return int64(r.Uint64())
		},
	} {
		for _, fanIn := range []int{1, 2, 3, 70, 700} {
			t.Run(fmt.Sprintf("%s/%d", name, fanIn), func(t *testing.T) {
				const rows = 150_000
				want := map[int64]int64{}
				var sources []Source
				seq := int64(0)
				for lo := 0; lo < rows; lo += rows / fanIn {
					n := min(rows/fanIn, rows-lo)
					keys := make([]int64, n)
					for i := range keys {
						keys[i] = key(lo + i)
						want[keys[i]] = seq + int64(i)
					}
					b := numbers(seq, keys...)
					sel := Sort(twoColumns, b.Columns, n)
					b.Columns, b.Seq.Perm = Gather(nil, b.Columns, sel), sel
					half := n / 3
					sources = append(sources, NewBlockSource(sliced(b, 0, half), sliced(b, half, half), sliced(b, half, n)))
					seq += int64(n)
				}
				last, count := int64(0), 0
				u := NewUnion(twoColumns, sources, Options{})
				drain(t, u, func(b *Block) {
					k, v := int64s(b, 0), int64s(b, 1)
					for i := range k {
						if count > 0 {
							require.Less(t, last, k[i])
						}
						require.Equal(t, want[k[i]], v[i])
						last = k[i]
						count++
					}
				})
				require.Equal(t, len(want), count)
				require.NoError(t, u.Close())
			})
		}
	}
}

func sliced(b *Block, lo, hi int) *Block {
	out := &Block{Rows: hi - lo, Columns: make([]arrow.Array, len(b.Columns))}
	for i, c := range b.Columns {
		out.Columns[i] = array.NewSlice(c, int64(lo), int64(hi))
	}
	out.Seq = b.Seq
	if b.Seq.Perm != nil {
		out.Seq.Perm = b.Seq.Perm[lo:hi]
	} else {
		out.Seq.Base += int64(lo)
	}
	return out
}

func TestUnionCopiesNothingWhereOneRunIsAlone(t *testing.T) {
	a, b := make([]int64, 5000), make([]int64, 5000)
	for i := range a {
		a[i], b[i] = int64(i), int64(10_000+i)
	}
	x, y := numbers(0, a...), numbers(9000, b...)
	u := NewUnion(twoColumns, []Source{NewBlockSource(x), NewBlockSource(y)}, Options{})
	first, err := u.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, 5000, first.Rows)
	require.Same(t, &int64s(x, 1)[0], &int64s(first, 1)[0])
	require.True(t, first.Unique)
	require.Len(t, collect(t, u, 0), 5000)
}

func TestUnionPrefersTheLaterSourceAtEqualNumbers(t *testing.T) {
	u := NewUnion(twoColumns, []Source{NewBlockSource(numbers(5, 1)), NewBlockSource(numbers(5, 1))}, Options{KeepDeletes: true})
	b, err := u.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, []int64{5}, b.Seq.Explicit)
	require.Equal(t, []int8{0}, b.Kinds)
	require.NoError(t, u.Close())
}

func TestUnionPassesErrorsOnAndStops(t *testing.T) {
	broken := errors.New("disk on fire")
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	w := world{layout: twoColumns, types: []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int64}, keys: []typeCase{typeCases[5]}}
	block := func(keys ...int64) *Block {
		rows := make([]modelRow, len(keys))
		for i, k := range keys {
			rows[i].vals = []any{k, k}
		}
		return w.block(mem, rows, -1, 0)
	}
	for fail := range 4 {
		bad := &checkedSource{fail: broken}
		for i := range fail {
			bad.blocks = append(bad.blocks, block(int64(10*i), int64(10*i+5)))
		}
		good := &checkedSource{blocks: []*Block{block(1, 2, 3), block(4, 50)}}
		u := NewUnion(twoColumns, []Source{good, bad}, Options{Alloc: mem})
		rows := 0
		var err error
		for err == nil {
			var b *Block
			if b, err = u.Next(context.Background()); err == nil {
				rows += b.Rows
			}
		}
		require.ErrorIs(t, err, broken)
		require.LessOrEqual(t, rows, 5+2*fail)
		_, err = u.Next(context.Background())
		require.ErrorIs(t, err, broken, "an error is final")
		require.NoError(t, u.Close())
		require.Zero(t, mem.CurrentAlloc())
	}
}

func TestUnionStopsAtACancelledContext(t *testing.T) {
	u := NewUnion(twoColumns, []Source{NewBlockSource(numbers(0, 1, 2)), NewBlockSource(numbers(0, 1, 2))}, Options{BatchRows: 1})
	ctx, cancel := context.WithCancel(context.Background())
	_, err := u.Next(ctx)
	require.NoError(t, err)
	cancel()
	_, err = u.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, u.Close())
	_, err = u.Next(context.Background())
	require.Error(t, err)
}

func TestUnionOfOneSourceNeedsNoKeyColumns(t *testing.T) {
	b := numbers(0, 1, 2, 3)
	b.Columns[0], b.Unique, b.Kinds = nil, true, []int8{0, 3, 2}
	c := numbers(7, 8)
	c.Columns[0], c.Unique = nil, true
	require.Equal(t, []int64{0, 2, 7}, collect(t, NewUnion(twoColumns, []Source{NewBlockSource(b, c)}, Options{}), 1))
	b.Unique = false
	_, err := NewUnion(twoColumns, []Source{NewBlockSource(b)}, Options{}).Next(context.Background())
	require.ErrorIs(t, err, errs.ErrInvalid)
	_, err = NewUnion(twoColumns, nil, Options{}).Next(context.Background())
	require.ErrorIs(t, err, io.EOF)
}

func TestConcatReadsSourcesInOrder(t *testing.T) {
	append1 := Layout{Fields: twoColumns.Fields}
	u := NewUnion(append1, []Source{NewBlockSource(numbers(0, 5, 3)), NewBlockSource(), NewBlockSource(numbers(0, 4), numbers(0, 1))}, Options{})
	require.Equal(t, []int64{5, 3, 4, 1}, collect(t, u, 0))
	_, err := u.Next(context.Background())
	require.ErrorIs(t, err, io.EOF)
}

func TestSectionsAgreeWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "items")
		lo, hi := make([]int, n), make([]int, n)
		for i := range lo {
			lo[i] = rapid.IntRange(0, 40).Draw(t, "min")
			hi[i] = lo[i] + rapid.IntRange(0, 8).Draw(t, "len")
		}
		got := Sections(n, func(i, j int) int { return lo[i] - lo[j] }, func(i, j int) int { return lo[i] - hi[j] }, func(i, j int) int { return hi[i] - hi[j] })
		seen, end := 0, -1
		for _, section := range got {
			sectionEnd, depth := -1, map[int]int{}
			for _, run := range section {
				runEnd := -1
				for _, i := range run {
					require.Greater(t, lo[i], end, "sections are disjoint")
					require.Greater(t, lo[i], runEnd, "items of a run are disjoint")
					runEnd = hi[i]
					sectionEnd = max(sectionEnd, hi[i])
					for p := lo[i]; p <= hi[i]; p++ {
						depth[p]++
					}
					seen++
				}
			}
			covered, deepest := 0, 0
			for _, d := range depth {
				covered++
				deepest = max(deepest, d)
			}
			require.Equal(t, deepest, len(section), "the fewest runs: one for each item over the deepest point")
			end = sectionEnd
		}
		require.Equal(t, n, seen)
	})
	// two items that only touch at a key belong together
	require.Len(t, Sections(2, func(i, j int) int { return i - j }, func(i, j int) int { return 0 }, func(i, j int) int { return i - j }), 1)
}

// records is a Batches over records in memory.
type records struct {
	recs   []arrow.RecordBatch
	closed int
}

func (r *records) Next(context.Context) (arrow.RecordBatch, error) {
	if len(r.recs) == 0 {
		return nil, io.EOF
	}
	rec := r.recs[0]
	r.recs = r.recs[1:]
	return rec, nil
}

func (r *records) Close() error {
	for _, rec := range r.recs {
		rec.Release()
	}
	r.recs = nil
	r.closed++
	return nil
}

func fileRecord(mem memory.Allocator, keys []any, seq []any, kinds []any) arrow.RecordBatch {
	fields := []arrow.Field{{Name: KindColumn, Type: arrow.PrimitiveTypes.Int8, Nullable: true}, {Name: SequenceColumn, Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}
	var cols []arrow.Array
	for i, vals := range [][]any{kinds, seq, keys} {
		cols = append(cols, buildArray(mem, fields[i].Type, len(vals), func(i int) any { return vals[i] }))
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(len(keys)))
	for _, c := range cols {
		c.Release()
	}
	return rec
}

func TestFileSourceReadsAndChecks(t *testing.T) {
	type part struct{ keys, seq, kinds []any }
	ok := part{[]any{int64(1), int64(2)}, []any{int64(7), int64(8)}, []any{int8(0), int8(3)}}
	for name, c := range map[string]struct {
		parts []part
		want  string
	}{
		"good":                   {[]part{ok, {[]any{}, []any{}, []any{}}, {[]any{int64(3)}, []any{int64(1)}, []any{int8(2)}}}, ""},
		"descending in a batch":  {[]part{{[]any{int64(2), int64(1)}, ok.seq, ok.kinds}}, "the key of row 1 is not greater"},
		"equal over batches":     {[]part{ok, {[]any{}, []any{}, []any{}}, {[]any{int64(2)}, []any{int64(1)}, []any{int8(2)}}}, "the key of row 2 is not greater"},
		"unknown kind":           {[]part{ok, {[]any{int64(3)}, []any{int64(1)}, []any{int8(4)}}}, "row 2 has the row kind 4"},
		"negative kind":          {[]part{{[]any{int64(3)}, []any{int64(1)}, []any{int8(-1)}}}, "row 0 has the row kind -1"},
		"null sequence number":   {[]part{{[]any{int64(3)}, []any{nil}, []any{int8(0)}}}, "_SEQUENCE_NUMBER has 1 nulls"},
		"null kind":              {[]part{{[]any{int64(3)}, []any{int64(1)}, []any{nil}}}, "_VALUE_KIND has 1 nulls"},
		"null in a NOT NULL key": {[]part{{[]any{nil}, []any{int64(1)}, []any{int8(0)}}}, "k is NOT NULL and has 1 nulls"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			r := &records{}
			for _, p := range c.parts {
				r.recs = append(r.recs, fileRecord(mem, p.keys, p.seq, p.kinds))
			}
			s := NewFileSource(twoColumns, r, "data-1.parquet")
			var keys, seq []int64
			var err error
			for err == nil {
				var b *Block
				if b, err = s.Next(context.Background()); err == nil {
					keys = append(keys, int64s(b, 0)...)
					for i := range b.Rows {
						seq = append(seq, b.Seq.At(i))
					}
					require.Nil(t, b.Columns[1], "a column that the file lacks")
				}
			}
			if c.want == "" {
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, []int64{1, 2, 3}, keys)
				require.Equal(t, []int64{7, 8, 1}, seq)
			} else {
				require.ErrorIs(t, err, errs.ErrCorrupt)
				require.ErrorContains(t, err, "data-1.parquet")
				require.ErrorContains(t, err, c.want)
			}
			require.NoError(t, s.Close())
			require.NoError(t, s.Close())
			require.Equal(t, 1, r.closed)
			require.Zero(t, mem.CurrentAlloc())
		})
	}
	noSystem := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil), numbers(0, 1).Columns[:1], 1)
	_, err := NewFileSource(twoColumns, &records{recs: []arrow.RecordBatch{noSystem}}, "f").Next(context.Background())
	require.ErrorIs(t, err, errs.ErrCorrupt)
}

func TestGatherOfSlicesAndAllShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		c := rapid.SampledFrom(typeCases).Draw(t, "type")
		n := rapid.IntRange(1, 40).Draw(t, "rows")
		vals := make([]any, n)
		for i := range vals {
			if rapid.IntRange(0, 3).Draw(t, "null") > 0 {
				vals[i] = c.draw(t)
			}
		}
		lo := rapid.IntRange(0, n-1).Draw(t, "from")
		whole := buildArray(mem, c.arrow, n, func(i int) any { return vals[i] })
		part := array.NewSlice(whole, int64(lo), int64(n))
		sel := rapid.SliceOf(rapid.Int32Range(0, int32(n-lo-1))).Draw(t, "sel")
		if sel == nil {
			sel = []int32{}
		}
		got := Gather(mem, []arrow.Array{part, nil}, sel)
		want := buildArray(mem, c.arrow, len(sel), func(i int) any { return vals[lo+int(sel[i])] })
		require.True(t, array.ApproxEqual(want, got[0], array.WithNaNsEqual(true)), "want %v got %v", want, got[0])
		require.Nil(t, got[1])
		for _, a := range []arrow.Array{whole, part, got[0], want} {
			a.Release()
		}
		require.Zero(t, mem.CurrentAlloc())
	})
	same := numbers(0, 1, 2)
	require.Same(t, same.Columns[0], Gather(nil, same.Columns, nil)[0])
	d := arrow.BinaryTypes.LargeString
	large := buildLarge(d, "x", "yy", "zzz")
	got := Gather(nil, []arrow.Array{large}, []int32{2, 0, 1, 2})[0]
	require.Equal(t, `["zzz" "x" "yy" "zzz"]`, got.String())
	require.False(t, slices.Contains([]arrow.Array{large}, got))
}

func buildLarge(dt arrow.DataType, vals ...string) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dt).(*array.LargeStringBuilder)
	b.AppendValues(vals, nil)
	return b.NewArray()
}
