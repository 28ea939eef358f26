package tideline_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

// APP-05: rounds of write, prepare, commit, refresh.
func TestRoundsOfCommits(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		var want []string
		for round := range 3 {
			var pairs []any
			for i := range 4 {
				pairs = append(pairs, round*4+i, "x")
				want = append(want, fmt.Sprintf("%d=x", round*4+i))
			}
			put(t, writer, pairs...)
			p := prepare(t, writer)
			require.EqualValues(t, 4, p.Rows)
			publish(t, table, p)
			require.Equal(t, want, read(t, table.Scan()), "before the refresh")
			require.Positive(t, stats(t, table).UsedBytes)
			require.NoError(t, table.Refresh(t.Context()))
			require.Zero(t, stats(t, table).UsedBytes)
			require.Equal(t, want, read(t, table.Scan()), "after the refresh")
			require.Equal(t, []string{fmt.Sprintf("0:%d", 4*(round+1))}, ends(t, table, 0))
		}
	})
}

// APP-07, PRD-16: partitions in mixed states, and scans of some of them.
func TestPartitionsInMixedStates(t *testing.T) {
	for _, key := range [][]string{nil, {"region", "id"}} {
		w := newWorld(t, tideline.Definition{
			Columns: regional, PrimaryKey: key, PartitionBy: []string{"region"},
			Options: map[string]string{"bucket": "1", "bucket-key": "id"},
		})
		table, writer := w.session()
		write := func(region string, from, to int) {
			text := "["
			for i := from; i < to; i++ {
				if i > from {
					text += ","
				}
				text += fmt.Sprintf(`{"region":%s,"id":%d,"name":"x"}`, region, i)
			}
			_, err := writer.Write(t.Context(), fromJSON(t, regional, text+"]"))
			require.NoError(t, err)
		}
		write(`"p0"`, 0, 10)
		write(`"p1"`, 0, 10)
		commit(t, writer)
		write(`"p0"`, 10, 15)
		write(`"p2"`, 0, 5)
		total, states := 30, map[string]string{"p0": "1 files, [10,15)", "p1": "1 files, [0,0)", "p2": "0 files, [0,5)"}
		progress := []string{"region=p0/0:15", "region=p1/0:10", "region=p2/0:5"}
		if key == nil { // key columns are not null
			write("null", 7, 8)
			total++
			states["__DEFAULT_PARTITION__"] = "0 files, [0,1)"
			progress = append(progress, "region=__DEFAULT_PARTITION__/0:1")
		}
		plan, err := table.Scan().Plan(t.Context())
		require.NoError(t, err)
		got := map[string]string{}
		for _, s := range plan.Splits {
			got[s.Partition["region"]] = fmt.Sprintf("%d files, [%d,%d)", len(s.Files), s.Committed, s.Visible)
		}
		require.Equal(t, states, got)
		require.Len(t, readSplits(t, table, plan.Splits...), total)
		only := func(name string) func(map[string]string) bool {
			return func(m map[string]string) bool { return m["region"] == name }
		}
		for region, n := range map[string]int{"p0": 15, "p1": 10, "p2": 5, "none": 0} {
			require.Len(t, read(t, table.Scan().Partitions(only(region))), n)
			require.Len(t, read(t, table.Scan().Where(tideline.Eq("region", region))), n)
		}
		require.Len(t, read(t, table.Scan().Where(tideline.IsNull("region"))), total-30)
		require.Empty(t, read(t, table.Scan().Buckets(func(b int) bool { return b == 1 })))
		require.ElementsMatch(t, []string{"region=p0/0:10", "region=p1/0:10"}, ends(t, table, 0))
		commit(t, writer)
		require.Len(t, read(t, table.Scan()), total)
		require.ElementsMatch(t, progress, ends(t, table, 0))
		require.NoError(t, writer.Close(t.Context()))
	}
}

// APP-12: offsets of the caller, with gaps; APP-22: an empty batch takes none.
func TestSparseCallerOffsets(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		ack := put(t, writer)
		require.Zero(t, ack.Rows)
		for i, o := range []int64{10, 20, 30} {
			putAt(t, writer, []int64{o}, i, "x")
		}
		require.Equal(t, []string{"0=x", "1=x", "2=x"}, read(t, table.Scan()))
		require.EqualValues(t, 31, stats(t, table).Buckets[0].NextOffset)
		for name, offsets := range map[string][]int64{"equal": {40, 40}, "backwards": {41, 40}, "negative": {-1, 50}, "too few": {40}, "too many": {40, 41, 42}, "below": {30, 31}, "at the end": {40, math.MaxInt64}} {
			_, err := writer.Write(t.Context(), rows(t, 8, "x", 9, "x"), tideline.Offsets(offsets))
			require.ErrorIs(t, err, tideline.ErrInvalid, name)
		}
		_, err := writer.Write(t.Context(), rows(t, 8, "x"))
		require.ErrorIs(t, err, tideline.ErrInvalid, "one way for a whole session")
		commit(t, writer)
		require.Equal(t, []string{"0:31"}, ends(t, table, 0))
		require.Equal(t, []string{"0=x", "1=x", "2=x"}, read(t, table.Scan()))
		require.NoError(t, writer.Close(t.Context()))
	})
}

// The last offsets that exist are refused before anything changes.
func TestOffsetsNearTheirEnd(t *testing.T) {
	w := newWorld(t, listed())
	table, writer := w.session()
	putAt(t, writer, []int64{math.MaxInt64 - 2}, 1, "a")
	_, err := writer.Write(t.Context(), rows(t, 2, "b", 3, "c"), tideline.Offsets([]int64{math.MaxInt64 - 1, math.MaxInt64}))
	require.ErrorIs(t, err, tideline.ErrInvalid)
	require.Equal(t, []string{"1=a"}, read(t, table.Scan()))
	require.NoError(t, stats(t, table).Poisoned)
	commit(t, writer)
	require.Equal(t, []string{fmt.Sprintf("0:%d", int64(math.MaxInt64-1))}, ends(t, table, 0))
}

// APP-13: a seal moves rows and nothing else; one range for all segments.
func TestSealAlone(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a", 2, "b", 3, "c")
		used := stats(t, table).UsedBytes
		require.NoError(t, writer.Seal(t.Context()))
		require.NoError(t, writer.Seal(t.Context()), "nothing to seal")
		require.Equal(t, used, stats(t, table).UsedBytes)
		require.Nil(t, w.latest())
		put(t, writer, 4, "d", 5, "e")
		want := []string{"1=a", "2=b", "3=c", "4=d", "5=e"}
		require.Equal(t, want, read(t, table.Scan()))
		p := prepare(t, writer)
		require.Equal(t, 1, p.Buckets)
		publish(t, table, p)
		require.NoError(t, table.Refresh(t.Context()))
		require.Equal(t, []string{"0:5"}, ends(t, table, 0))
		require.Equal(t, want, read(t, table.Scan()))
	})
}

// APP-14: batches of a reader are bounded and never empty.
func TestBatchSizes(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		var pairs []any
		for i := range 1000 {
			pairs = append(pairs, i, "x")
		}
		put(t, writer, pairs...)
		for _, size := range []int{1, 17, 128, 2048} {
			r, err := table.Scan().BatchRows(size).Read(t.Context())
			require.NoError(t, err)
			chunks, n := 0, int64(0)
			for r.Next() {
				chunks++
				require.Positive(t, r.RecordBatch().NumRows())
				require.LessOrEqual(t, r.RecordBatch().NumRows(), int64(size))
				n += r.RecordBatch().NumRows()
			}
			require.NoError(t, r.Err())
			r.Release()
			require.EqualValues(t, 1000, n)
			require.Equal(t, (1000+size-1)/size, chunks, "size %d", size)
		}
		require.NoError(t, writer.Discard(t.Context()))
	})
}

// APP-18: a record that is a slice of a larger one, changed after the write.
func TestSlicedInputIsCopied(t *testing.T) {
	w := newWorld(t, listed())
	table, writer := w.session()
	slice := rows(t, 0, "no", 1, "a", 2, nil, 3, "c", 4, "no").NewSlice(1, 4)
	_, err := writer.Write(t.Context(), slice)
	require.NoError(t, err)
	slice.Release()
	require.Equal(t, []string{"1=a", "2=(null)", "3=c"}, read(t, table.Scan()))
	commit(t, writer)
	require.Equal(t, []string{"1=a", "2=(null)", "3=c"}, read(t, committed(table)))
}

// Bucket -1: rows keep the order of the writes; one partition-bucket takes them.
func TestBucketUnawareTable(t *testing.T) {
	w := newWorld(t, listed("bucket", "-1"))
	table, writer := w.session()
	put(t, writer, 2, "b", 1, "a")
	commit(t, writer)
	put(t, writer, 1, "a")
	require.Equal(t, []string{"2=b", "1=a", "1=a"}, read(t, table.Scan()))
	w.add(0, 9, "flink")
	commit(t, writer)
	require.ElementsMatch(t, []string{"2=b", "1=a", "1=a", "9=flink"}, read(t, table.Scan()))
	require.Equal(t, []string{"0:3"}, ends(t, table, 0))
	again, writer := w.session()
	put(t, writer, 3, "c")
	commit(t, writer)
	require.Equal(t, []string{"0:4"}, ends(t, again, 0))
}
