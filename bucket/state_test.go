package bucket

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

func TestSmallBatchesBecomeOneSortedRun(t *testing.T) {
	s := newState(keyed(t))
	write(t, s, 1, `[{"k":5,"a":1,"s":"five"},{"k":2,"a":null,"s":"two"}]`, nil, nil)
	write(t, s, 2, `[{"k":3,"a":3,"s":null}]`, nil, nil)
	v := s.View()
	require.Equal(t, []string{"1 0 2|(null)|two", "2 0 3|3|(null)", "0 0 5|1|five"}, visible(t, v, 0, 2))
	require.Equal(t, []string{"1 0 2|(null)|two", "0 0 5|1|five"}, visible(t, v, 0, 1))
	require.Empty(t, visible(t, v, 0, 0))
	require.Equal(t, 1, s.Describe().Runs)
}

// bigBatch is a batch that becomes a run of its own: n rows with descending keys
// from first+n-1 down to first.
func bigBatch(first, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"k":%d,"a":%d,"s":"s%d"}`, first+n-1-i, i, i)
	}
	return "[" + b.String()[1:] + "]"
}

func TestSealAndWriteBasics(t *testing.T) {
	for name, table := range map[string]*Table{"append": plain(t), "pk": keyed(t)} {
		t.Run(name, func(t *testing.T) {
			s := newState(table)
			require.Nil(t, s.Seal(1), "nothing to seal")
			require.Empty(t, s.TakePrepare())
			require.Empty(t, s.View().Segments)

			write(t, s, 2, `[{"k":2},{"k":1}]`, nil, nil)
			write(t, s, 3, `[{"k":4},{"k":3}]`, nil, nil)
			before := s.Describe()
			require.Positive(t, before.BuildingBytes)
			seg := s.Seal(4)
			require.Equal(t, [2]int64{0, 4}, [2]int64{seg.Begin, seg.End})
			require.EqualValues(t, 4, seg.Rows)
			require.EqualValues(t, 4, seg.Epoch)
			require.Nil(t, s.Seal(5))
			after := s.Describe()
			require.Equal(t, before.BuildingBytes, after.SealedBytes, "sealing neither frees nor takes memory")
			require.Zero(t, after.BuildingRows)

			write(t, s, 6, `[{"k":9}]`, nil, nil)
			require.EqualValues(t, 5, s.View().End)
			require.EqualValues(t, 4, s.View().Segments[1].Begin)
			require.ErrorIs(t, s.Append(&Part{ID: s.identity.ID}, 7), errs.ErrInvalid, "a part without rows")
		})
	}
}

func TestAppendRowsStayInTheOrderInWhichTheyCame(t *testing.T) {
	s := newState(plain(t))
	write(t, s, 1, `[{"k":7},{"k":3}]`, nil, nil)
	write(t, s, 2, bigBatch(100, 64), nil, nil)
	write(t, s, 3, `[{"k":1}]`, nil, nil)
	got := visible(t, s.View(), 0, 3)
	require.Len(t, got, 67)
	require.Equal(t, "-1 0 7|(null)|(null)", got[0])
	require.Equal(t, "-1 0 3|(null)|(null)", got[1])
	require.Equal(t, "-1 0 163|0|s0", got[2])
	require.Equal(t, "-1 0 100|63|s63", got[65])
	require.Equal(t, "-1 0 1|(null)|(null)", got[66])
}

// In a primary-key table small and large batches share one chunk and stay apart
// as runs; sequence numbers still follow the order of writing.
func TestSequenceNumbersFollowTheOrderOfWriting(t *testing.T) {
	s := newState(keyed(t))
	write(t, s, 1, `[{"k":7,"a":1},{"k":3,"a":2}]`, []int8{0, 3}, nil)
	write(t, s, 2, bigBatch(100, 64), nil, nil)
	write(t, s, 3, `[{"k":3,"a":4},{"k":1}]`, []int8{2, 0}, nil)
	runs, err := s.View().Runs(0, 3)
	require.NoError(t, err)
	require.Len(t, runs, 2)
	require.Equal(t, []string{"67 0 1|(null)|(null)", "1 3 3|2|(null)", "66 2 3|4|(null)", "0 0 7|1|(null)"}, lines(t, runs[1:]))
	got := lines(t, runs[:1])
	require.Equal(t, "65 0 100|63|s63", got[0])
	require.Equal(t, "2 0 163|0|s0", got[63])
}

func TestRowsOutliveTheRecordTheyCameFrom(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	for name, table := range map[string]*Table{"append": plain(t), "pk": keyed(t)} {
		for _, rows := range []int{3, 100} {
			t.Run(fmt.Sprint(name, rows), func(t *testing.T) {
				whole, _, err := array.RecordFromJSON(mem, table.ArrowSchema(), strings.NewReader(bigBatch(0, rows+20)))
				require.NoError(t, err)
				slice := whole.NewSlice(13, int64(13+rows))
				want := make([]string, rows)
				for i := range want {
					want[i] = fmt.Sprintf("%s|%s|%s", slice.Column(0).ValueStr(i), slice.Column(1).ValueStr(i), slice.Column(2).ValueStr(i))
				}
				p, err := NewPreparer(table).Prepare(slice, nil, nil)
				require.NoError(t, err)
				for _, c := range slice.Columns() { // whatever the caller does with its memory
					for _, b := range c.Data().Buffers() {
						if b != nil {
							clear(b.Bytes())
						}
					}
				}
				slice.Release()
				whole.Release()
				mem.AssertSize(t, 0)
				s := newState(table)
				require.NoError(t, s.Append(p.Parts[0], 1))
				got := visible(t, s.View(), 0, 1)
				if table.IsPrimaryKey() {
					slices.Reverse(want)
				}
				for i := range got {
					require.Equal(t, want[i], strings.SplitN(got[i], " ", 3)[2])
				}
			})
		}
	}
}

func TestAnEmptyBatchTakesNoOffset(t *testing.T) {
	s := newState(plain(t))
	write(t, s, 1, `[]`, nil, nil)
	require.Zero(t, s.Describe().NextOffset)
	write(t, s, 2, `[{"k":1}]`, nil, nil)
	require.Equal(t, [2]int64{0, 1}, [2]int64{s.View().Segments[0].Begin, s.View().End})
}

func TestTheSequenceWatermarkNeverFalls(t *testing.T) {
	s := newState(keyed(t))
	for _, c := range []struct{ raise, next int64 }{{4, 5}, {8, 9}, {6, 9}, {10, 11}} {
		s.RaiseSequence(c.raise)
		require.Equal(t, c.next, s.Describe().NextSeq)
	}
	s.RaiseSequence(-1)
	require.EqualValues(t, 11, s.Describe().NextSeq)
}

// A row in memory got 4; files of somebody else have up to 10: the next row must
// win against them.
func TestTheNextRowBeatsForeignRows(t *testing.T) {
	table := keyed(t)
	s := NewState(table, newState(table).identity, Restore{NextOffset: 7, NextSeq: 4, CommittedEnd: 7})
	write(t, s, 1, `[{"k":1,"a":1}]`, nil, nil)
	s.RaiseSequence(10)
	write(t, s, 2, `[{"k":1,"a":2}]`, nil, nil)
	require.Equal(t, []string{"4 0 1|1|(null)", "11 0 1|2|(null)"}, visible(t, s.View(), 7, 2))
	require.EqualValues(t, 9, s.Describe().NextOffset)
}

func TestNumbersNeverReachTheEndOf64Bits(t *testing.T) {
	table := keyed(t)
	small := func() *Part { return prepare(t, table, `[{"k":1},{"k":2}]`, nil, nil).Parts[0] }
	at := func(offset, seq int64) *State {
		return NewState(table, newState(table).identity, Restore{NextOffset: offset, NextSeq: seq})
	}
	for _, c := range []struct {
		offset, seq int64
		fits        bool
	}{
		{math.MaxInt64 - 2, 0, true}, {math.MaxInt64 - 1, 0, false}, {math.MaxInt64, 0, false},
		{0, math.MaxInt64 - 2, true}, {0, math.MaxInt64 - 1, false},
	} {
		s := at(c.offset, c.seq)
		before := s.Describe()
		err := s.Append(small(), 1)
		require.Equal(t, c.fits, err == nil, "%+v: %v", c, err)
		if !c.fits {
			require.ErrorIs(t, err, errs.ErrInvalid)
			require.Equal(t, before, s.Describe(), "counters unchanged")
			require.Empty(t, s.View().Segments)
		}
	}
}

func TestOffsetsOfTheCaller(t *testing.T) {
	table := plain(t)
	s := newState(table)
	for i, o := range []int64{10, 20, 30} {
		write(t, s, int64(i+1), `[{"k":1}]`, nil, []int64{o})
	}
	back := prepare(t, table, `[{"k":1}]`, nil, []int64{30}).Parts[0]
	require.ErrorIs(t, s.Check(back), errs.ErrInvalid)
	require.ErrorContains(t, s.Append(back, 9), "goes back")
	engine := prepare(t, table, `[{"k":1}]`, nil, nil).Parts[0]
	require.ErrorContains(t, s.Append(engine, 9), "one way for a whole session")
	seg := s.Seal(10)
	require.Equal(t, [2]int64{10, 31}, [2]int64{seg.Begin, seg.End})
	require.EqualValues(t, 3, seg.Rows)
	require.EqualValues(t, 31, s.View().End)
}

func TestEpochsDoNotGoBack(t *testing.T) {
	s := newState(keyed(t))
	write(t, s, 5, `[{"k":1}]`, nil, nil)
	p := prepare(t, s.t, `[{"k":2}]`, nil, nil).Parts[0]
	require.ErrorContains(t, s.Append(p, 4), "epoch")
	require.EqualValues(t, 1, s.Describe().NextOffset)
}

func TestAPartOfAnotherBucketIsRefused(t *testing.T) {
	s := newState(keyed(t))
	p := prepare(t, s.t, `[{"k":2}]`, nil, nil).Parts[0]
	p.ID.Bucket = 3
	require.ErrorContains(t, s.Append(p, 4), "bucket-3")
}

// Rows below an offset are cut off a part, in either form.
func TestReplayedRowsAreCutOff(t *testing.T) {
	for name, table := range map[string]*Table{"append": plain(t), "pk": keyed(t)} {
		for _, rows := range []int{5, 100} {
			t.Run(fmt.Sprint(name, rows), func(t *testing.T) {
				offsets := make([]int64, rows)
				kinds := make([]int8, rows)
				for i := range offsets {
					offsets[i] = int64(10 * i)
					if table.IsPrimaryKey() && i%2 == 1 {
						kinds[i] = 3
					}
				}
				json := strings.Replace(bigBatch(0, rows), `"a":1,"s":"s1"`, `"a":null,"s":null`, 1)
				p := prepare(t, table, json, kinds, offsets).Parts[0]
				same, cut := p.After(0)
				require.True(t, same == p && cut == 0)
				none, cut := p.After(offsets[rows-1] + 1)
				require.True(t, none == nil && cut == rows)
				rest, cut := p.After(11)
				require.Equal(t, 2, cut)
				require.EqualValues(t, 20, rest.FirstOffset)

				full, cutOff := newState(table), newState(table)
				require.NoError(t, full.Append(p, 1))
				require.NoError(t, cutOff.Append(rest, 1))
				var want []string
				for _, l := range visible(t, full.View(), 0, 1) {
					if k := strings.SplitN(l, "|", 2)[0]; !strings.HasSuffix(k, fmt.Sprintf(" %d", rows-1)) && !strings.HasSuffix(k, fmt.Sprintf(" %d", rows-2)) {
						want = append(want, l)
					}
				}
				got := visible(t, cutOff.View(), 0, 1)
				require.Len(t, got, rows-2)
				for i := range got { // sequence numbers begin where the part begins
					w, g := strings.SplitN(want[i], " ", 2), strings.SplitN(got[i], " ", 2)
					require.Equal(t, w[1], g[1])
					if table.IsPrimaryKey() {
						var a, b int
						fmt.Sscan(w[0], &a)
						fmt.Sscan(g[0], &b)
						require.Equal(t, a-2, b)
					}
				}
			})
		}
	}
}

func TestReclaimWithAViewHeld(t *testing.T) {
	s := newState(plain(t))
	for i, rows := range []string{`[{"k":1},{"k":2},{"k":3},{"k":4}]`, `[{"k":5}]`, `[{"k":6},{"k":7}]`} {
		write(t, s, int64(2*i+1), rows, nil, nil)
		s.Seal(int64(2*i + 2))
	}
	held := s.View()
	all := visible(t, held, 0, 99)
	require.Len(t, all, 7)
	total := s.Describe().SealedBytes
	for _, h := range held.Held() {
		require.True(t, h.Take())
	}
	freed, pinned := int64(0), int64(0)
	for _, c := range []struct {
		end  int64
		left int
	}{{3, 7}, {4, 3}, {4, 3}, {5, 2}, {6, 2}, {7, 0}, {7, 0}} {
		f, p := s.Reclaim(c.end)
		freed, pinned = freed+f, pinned+p
		require.Len(t, visible(t, s.View(), 0, 99), c.left, "committed end %d", c.end)
	}
	require.Zero(t, freed, "the reader has it all")
	require.Equal(t, total, pinned)
	require.Zero(t, s.Describe().SealedBytes)
	require.Equal(t, all, visible(t, held, 0, 99))
	require.Len(t, visible(t, held, 5, 99), 2, "a snapshot hides what it covers")
	for _, h := range held.Held() {
		bytes, last := h.Drop()
		require.True(t, last)
		freed += bytes
		require.False(t, h.Take(), "what was given back stays so")
	}
	require.Equal(t, total, freed)
}

func TestBuildingRowsAreNeverReclaimed(t *testing.T) {
	s := newState(plain(t))
	write(t, s, 1, `[{"k":1}]`, nil, nil)
	freed, pinned := s.Reclaim(100)
	require.Zero(t, freed+pinned)
	require.EqualValues(t, 1, s.Describe().BuildingRows)
}

func TestManySegmentsAreReclaimedAtOnce(t *testing.T) {
	s := newState(plain(t))
	part := prepare(t, s.t, `[{"k":1}]`, nil, nil).Parts[0]
	for i := range 500 {
		require.NoError(t, s.Append(part, int64(i)))
		s.Seal(int64(i))
	}
	freed, pinned := s.Reclaim(500)
	require.Equal(t, [2]int64{500 * part.Bytes, 0}, [2]int64{freed, pinned})
	require.Zero(t, s.Describe().Segments)
}

func TestACommittedEndInsideASegmentFences(t *testing.T) {
	s := newState(plain(t))
	write(t, s, 1, `[{"k":1},{"k":2}]`, nil, nil)
	_, err := s.View().Runs(1, 1)
	require.ErrorIs(t, err, errs.ErrFenced)
}

func TestPreparesTakeEachSegmentOnceUnlessItRejoins(t *testing.T) {
	s := newState(keyed(t))
	ranges := func(segs []*Segment) (out [][2]int64) {
		for _, g := range segs {
			out = append(out, [2]int64{g.Begin, g.End})
		}
		return out
	}
	write(t, s, 1, `[{"k":1}]`, nil, nil)
	s.Seal(2) // without a prepare
	write(t, s, 3, `[{"k":2}]`, nil, nil)
	s.Seal(4)
	first := s.TakePrepare()
	require.Equal(t, [][2]int64{{0, 1}, {1, 2}}, ranges(first))
	require.Empty(t, s.TakePrepare())
	write(t, s, 5, `[{"k":3}]`, nil, nil)
	s.Seal(6)
	second := s.TakePrepare()
	require.Equal(t, [][2]int64{{2, 3}}, ranges(second))
	for _, g := range second { // aborted
		s.Rejoin(g)
	}
	write(t, s, 7, `[{"k":4}]`, nil, nil)
	s.Seal(8)
	require.Equal(t, [][2]int64{{2, 3}, {3, 4}}, ranges(s.TakePrepare()))
	s.Reclaim(2)
	s.Rejoin(first[0]) // long gone
	require.Empty(t, s.TakePrepare())
}

func TestMergeOfAPrepare(t *testing.T) {
	ctx := context.Background()
	s := newState(keyed(t))
	write(t, s, 1, `[{"k":1,"a":1},{"k":2,"a":1},{"k":1,"a":2}]`, nil, nil)
	write(t, s, 2, bigBatch(50, 64), nil, nil)
	s.Seal(3)
	write(t, s, 4, `[{"k":2,"a":9},{"k":50,"a":-1}]`, []int8{3, 2}, nil)
	s.Seal(5)
	source := MergeSegments(s.t, s.TakePrepare())
	defer source.Close()
	var got []string
	for {
		b, err := source.Next(ctx)
		if err != nil {
			break
		}
		got = append(got, blockLines(t, s.t, b)...)
	}
	require.Len(t, got, 66)
	require.Equal(t, []string{"2 0 1|2|(null)", "67 3 2|9|(null)", "68 2 50|-1|(null)"}, got[:3])

	p := newState(plain(t))
	write(t, p, 1, `[{"k":2},{"k":1}]`, nil, nil)
	p.Seal(2)
	write(t, p, 3, `[{"k":0}]`, nil, nil)
	p.Seal(4)
	source = MergeSegments(p.t, p.TakePrepare())
	defer source.Close()
	got = nil
	for {
		b, err := source.Next(ctx)
		if err != nil {
			break
		}
		for i := range b.Rows {
			got = append(got, b.Columns[0].ValueStr(i))
		}
	}
	require.Equal(t, []string{"2", "1", "0"}, got)
}

func TestKeyRangeAndStatistics(t *testing.T) {
	s := newState(keyed(t))
	write(t, s, 1, `[{"k":5,"a":null,"s":"b"},{"k":-2,"a":7,"s":"a"},{"k":3,"a":-7,"s":null}]`, nil, nil)
	runs, err := s.View().Runs(0, 1)
	require.NoError(t, err)
	low, high := runs[0].KeyRange()
	require.Equal(t, []any{int64(-2)}, low)
	require.Equal(t, []any{int64(5)}, high)
	require.Equal(t, ColumnStat{Min: int32(-7), Max: int32(7), Nulls: 1, Known: true}, runs[0].Stat(1))
	require.Equal(t, ColumnStat{Min: "a", Max: "b", Nulls: 1, Known: true}, runs[0].Stat(2))
	require.Equal(t, runs[0].Stat(2), runs[0].Stat(2))

	f := newTable(t, tableSpec{fields: []schema.Field{
		field("f", nullable(schema.Double)), field("g", nullable(schema.Float)), field("b", nullable(schema.Boolean)),
		field("d", schema.Type{Kind: schema.Decimal, Prec: 20, Nullable: true}), field("n", nullable(schema.TinyInt)),
	}})
	b := array.NewRecordBuilder(memory.DefaultAllocator, f.ArrowSchema())
	b.Field(0).(*array.Float64Builder).AppendValues([]float64{1, math.NaN()}, nil)
	b.Field(1).(*array.Float32Builder).AppendValues([]float32{0, float32(math.Copysign(0, -1))}, nil)
	b.Field(2).(*array.BooleanBuilder).AppendValues([]bool{true, false}, nil)
	require.NoError(t, b.Field(3).AppendValueFromString("12"))
	require.NoError(t, b.Field(3).AppendValueFromString("-13"))
	b.Field(4).AppendNulls(2)
	p, err := NewPreparer(f).Prepare(b.NewRecordBatch(), nil, nil)
	require.NoError(t, err)
	s = newState(f)
	require.NoError(t, s.Append(p.Parts[0], 1))
	runs, err = s.View().Runs(0, 1)
	require.NoError(t, err)
	require.False(t, runs[0].Stat(0).Known, "nothing is known beside a NaN")
	require.True(t, math.Signbit(float64(runs[0].Stat(1).Min.(float32))))
	require.Equal(t, ColumnStat{Min: false, Max: true, Known: true}, runs[0].Stat(2))
	require.Equal(t, "-13", runs[0].Stat(3).Min.(interface{ ToString(int32) string }).ToString(0))
	require.Equal(t, ColumnStat{Nulls: 2, Known: true}, runs[0].Stat(4))
	low, _ = runs[0].KeyRange()
	require.Nil(t, low)
}

// Nested values, sliced, with nulls at every level, come out with positions from
// zero.
func TestNestedColumnsAreCopiedExactly(t *testing.T) {
	leaf := nullable(schema.Int)
	str := text(false)
	list := schema.Type{Kind: schema.Array, Nullable: true, Elem: &leaf}
	inner := schema.Type{Kind: schema.Row, Nullable: true, Fields: []schema.Field{
		{ID: 11, Name: "x", Type: nullable(schema.Boolean)}, {ID: 12, Name: "l", Type: list},
	}}
	dict := schema.Type{Kind: schema.Map, Nullable: true, Key: &str, Elem: &inner}
	for _, key := range [][]string{nil, {"k"}} {
		table := newTable(t, tableSpec{fields: []schema.Field{
			{ID: 1, Name: "k", Type: notNull(schema.Int)}, {ID: 2, Name: "m", Type: dict}, {ID: 3, Name: "r", Type: inner},
		}, key: key})
		whole := record(t, table.ArrowSchema(), `[
			{"k":9,"m":[{"key":"gone","value":{"x":true,"l":[1]}}],"r":null},
			{"k":4,"m":[{"key":"a","value":null},{"key":"b","value":{"x":null,"l":[null,7]}}],"r":{"x":true,"l":null}},
			{"k":3,"m":null,"r":{"x":null,"l":[]}},
			{"k":2,"m":[],"r":null},
			{"k":1,"m":[{"key":"c","value":{"x":false,"l":[5,6]}}],"r":{"x":false,"l":[8,9]}},
			{"k":8,"m":null,"r":null}]`)
		rec := whole.NewSlice(1, 5)
		p, err := NewPreparer(table).Prepare(rec, nil, nil)
		require.NoError(t, err)
		require.False(t, p.Parts[0].Small)
		s := newState(table)
		require.NoError(t, s.Append(p.Parts[0], 1))
		runs, err := s.View().Runs(0, 1)
		require.NoError(t, err)
		b := runs[0].Block(nil)
		require.Equal(t, retained(s), p.Bytes, "bytes are those of the buffers")
		for i := range 4 {
			from := i
			if key != nil {
				from = 3 - i
			}
			for c := range b.Columns {
				require.Equal(t, rec.Column(c).ValueStr(from), b.Columns[c].ValueStr(i), "column %d row %d", c, i)
			}
		}
		offsets := b.Columns[1].(*array.Map).Offsets()
		require.Zero(t, offsets[0])
		require.EqualValues(t, 3, offsets[4])
		require.Equal(t, 3, b.Columns[1].(*array.Map).Keys().Len())
		require.True(t, arrow.TypeEqual(b.Columns[1].DataType(), table.ArrowSchema().Field(1).Type, arrow.CheckMetadata()))
	}
}

func TestLayoutOfBothModes(t *testing.T) {
	pk := newTable(t, tableSpec{
		fields: []schema.Field{field("p", notNull(schema.Int)), field("k", notNull(schema.Int)), field("v", nullable(schema.Int))},
		key:    []string{"p", "k"}, partition: []string{"p"},
	})
	require.Equal(t, []int{1}, pk.Layout.Key, "partition columns are no part of the key inside of a bucket")
	require.True(t, pk.IsPrimaryKey())
	require.True(t, pk.ArrowSchema().Field(2).Nullable)
	require.False(t, pk.ArrowSchema().Field(1).Nullable)
	require.Empty(t, plain(t).Layout.Key)
}
