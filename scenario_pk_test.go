package tideline_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline"
)

const (
	ins = tideline.Insert
	upd = tideline.UpdateAfter
	old = tideline.UpdateBefore
	del = tideline.Delete
)

func change(t *testing.T, w *tideline.Writer, kinds []int8, pairs ...any) {
	t.Helper()
	_, err := w.Write(t.Context(), rows(t, pairs...), tideline.Kinds(kinds))
	require.NoError(t, err)
}

// PK-01, PK-02: updates and deletes; a value predicate never uncovers an older version.
func TestUpdatesAndDeletes(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	change(t, writer, []int8{ins, ins, upd}, 1, "a1", 2, "b", 1, "a2")
	change(t, writer, []int8{upd}, 1, "a3")
	require.Equal(t, []string{"1=a3", "2=b"}, read(t, table.Scan()))
	require.Empty(t, read(t, table.Scan().Where(tideline.Eq("name", "a1"))))
	require.Empty(t, read(t, table.Scan().Where(tideline.Eq("name", "a2"))))
	commit(t, writer)
	change(t, writer, []int8{old, upd, del, ins}, 1, "a3", 1, "a4", 2, nil, 3, "c")
	require.Equal(t, []string{"1=a4", "3=c"}, read(t, table.Scan()))
	for _, gone := range []string{"a1", "a2", "a3", "b"} {
		require.Empty(t, read(t, table.Scan().Where(tideline.Eq("name", gone))), gone)
	}
	commit(t, writer)
	require.Equal(t, []string{"1=a4", "3=c"}, read(t, committed(table)))
}

// PK-07: delete and insert of one key in one batch; pins see it over the refresh.
func TestDeleteThenInsertSurvivesRefresh(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "old")
	commit(t, writer)
	change(t, writer, []int8{del, ins}, 1, nil, 1, "new")
	p := prepare(t, writer)
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	r, err := table.Scan().Read(t.Context())
	require.NoError(t, err)
	publish(t, table, p)
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, []string{"1=new"}, drain(t, r))
	require.Equal(t, []string{"1=new"}, readSplits(t, table, plan.Splits...))
	require.Equal(t, []string{"1=new"}, read(t, table.Scan()))
}

// PK-08, PK-09: active beats sealed beats disk, in key order, in small chunks.
func TestThreeTiersMerge(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "d", 2, "d", 3, "d")
	commit(t, writer)
	put(t, writer, 10, "d", 11, "d")
	commit(t, writer)
	change(t, writer, []int8{upd, del, ins}, 1, "s", 10, nil, 4, "s")
	require.NoError(t, writer.Seal(t.Context()))
	change(t, writer, []int8{upd, del, ins, upd}, 4, "a", 2, nil, 12, "a", 1, "a")
	plan, err := table.Scan().Select("name", "id").BatchRows(2).Plan(t.Context())
	require.NoError(t, err)
	require.Len(t, plan.Splits, 1)
	require.Len(t, plan.Splits[0].Files, 2)
	require.EqualValues(t, 5, plan.Splits[0].Committed)
	require.EqualValues(t, 12, plan.Splits[0].Visible)
	r, err := table.ReadSplits(t.Context(), plan.Splits...)
	require.NoError(t, err)
	var got []string
	chunks := 0
	for r.Next() {
		chunks++
		require.LessOrEqual(t, r.RecordBatch().NumRows(), int64(2))
		for i := range int(r.RecordBatch().NumRows()) {
			got = append(got, r.RecordBatch().Column(1).ValueStr(i)+r.RecordBatch().Column(0).ValueStr(i))
		}
	}
	require.NoError(t, r.Err())
	r.Release()
	require.Equal(t, []string{"1a", "3d", "4a", "11d", "12a"}, got)
	require.GreaterOrEqual(t, chunks, 3)
}

// PK-10, PRJ-03: a composite key, read with and without its columns.
func TestCompositeKey(t *testing.T) {
	columns := arrow.NewSchema([]arrow.Field{
		{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.BinaryTypes.String},
	}, nil)
	w := newWorld(t, tideline.Definition{Columns: columns, PrimaryKey: []string{"b", "a"}})
	table, writer := w.session()
	write := func(text string) {
		_, err := writer.Write(t.Context(), fromJSON(t, columns, text))
		require.NoError(t, err)
	}
	write(`[{"v":1,"a":2,"b":"x"},{"v":2,"a":1,"b":"x"},{"v":3,"a":1,"b":"a"},{"v":4,"a":9,"b":"z"}]`)
	commit(t, writer)
	write(`[{"v":5,"a":1,"b":"x"},{"v":6,"a":3,"b":"x"},{"v":7,"a":1,"b":"x"}]`)
	require.NoError(t, writer.Seal(t.Context()))
	write(`[{"v":8,"a":9,"b":"z"},{"v":null,"a":2,"b":"x"},{"v":9,"a":0,"b":"a"}]`)
	require.Equal(t, []string{"9=0=a", "3=1=a", "7=1=x", "(null)=2=x", "6=3=x", "8=9=z"}, read(t, table.Scan()))
	require.Equal(t, []string{"9", "3", "7", "(null)", "6", "8"}, read(t, table.Scan().Select("v")))
	commit(t, writer)
	require.Equal(t, []string{"9", "3", "7", "(null)", "6", "8"}, read(t, committed(table).Select("v")))
	require.Equal(t, []string{"0:10"}, ends(t, table, 0))
}

// PK-11, PK-30: unsorted batches; the file holds one row a key, deletes as deletes.
func TestFlushKeepsOneRowAKey(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 4, "d", 1, "a", 3, "c")
	change(t, writer, []int8{ins, del, upd}, 2, "b", 2, nil, 1, "A")
	require.Equal(t, []string{"1=A", "3=c", "4=d"}, read(t, table.Scan()))
	p := prepare(t, writer)
	require.EqualValues(t, 4, p.Rows)
	publish(t, table, p)
	f := w.files()[0].Files[0]
	require.EqualValues(t, 4, f.Rows)
	require.EqualValues(t, 1, *f.DeleteRows)
	require.Zero(t, f.Level)
	require.Equal(t, []string{"0:6"}, ends(t, table, 0))
	require.Equal(t, []string{"1=A", "3=c", "4=d"}, read(t, committed(table)))
}

// PK-12: a full compaction erases the newest delete; sequence numbers are reused
// after reopening, and the replayed rows still win.
func TestCompactionAndSequenceReuse(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	for i := 1; i <= 3; i++ {
		put(t, writer, i, "x")
		commit(t, writer)
	}
	remove(t, writer, 3)
	commit(t, writer)
	require.Equal(t, 4, w.fileCount(), "no compaction of our own")
	w.compact()
	require.Equal(t, 1, w.fileCount())
	require.Equal(t, []string{"0:4"}, ends(t, table, 0))
	top := w.files()[0].Files[0].MaxSeq
	require.LessOrEqual(t, top, int64(3))
	again, writer := w.session()
	put(t, writer, 1, "new")
	b := stats(t, again).Buckets[0]
	require.Equal(t, top+2, b.NextSequence)
	require.EqualValues(t, 5, b.NextOffset)
	require.Equal(t, []string{"1=new", "2=x"}, read(t, again.Scan()))
	commit(t, writer)
	require.Equal(t, []string{"1=new", "2=x"}, read(t, again.Scan()))
}

// Keys of FLOAT and DOUBLE: nothing is lost between -0.0, 0.0, NaN and infinities.
func TestFloatKeys(t *testing.T) {
	columns := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Float64}, {Name: "f", Type: arrow.PrimitiveTypes.Float32}, {Name: "v", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	w := newWorld(t, tideline.Definition{Columns: columns, PrimaryKey: []string{"k", "f"}})
	table, writer := w.session()
	keys := []float64{math.NaN(), math.Inf(1), 1.5, 0, math.Copysign(0, -1), -2, math.Inf(-1)}
	for round := range 2 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		for i, k := range keys {
			b.Field(0).(*array.Float64Builder).Append(k)
			b.Field(1).(*array.Float32Builder).Append(float32(k))
			b.Field(2).(*array.Int64Builder).Append(int64(round*100 + i))
		}
		r := b.NewRecordBatch()
		_, err := writer.Write(t.Context(), r)
		require.NoError(t, err)
		r.Release()
		b.Release()
		want := []string{}
		for i := range slices.Backward(keys) {
			want = append(want, fmt.Sprint(round*100+i))
		}
		require.Equal(t, want, read(t, table.Scan().Select("v")))
		commit(t, writer)
		require.Equal(t, want, read(t, committed(table).Select("v")))
	}
}

// The union of files, sealed and building rows equals a map, whatever happens in
// between: a slow obvious model.
func TestUnionEqualsAMap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, keyed("bucket", fmt.Sprint(rapid.IntRange(1, 3).Draw(r, "buckets"))))
		table, writer := w.session()
		model := map[int]string{}
		check := func(s tideline.Scan) {
			want := []string{}
			for id, name := range model {
				want = append(want, fmt.Sprintf("%d=%s", id, name))
			}
			require.ElementsMatch(t, want, read(t, s))
		}
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 12).Draw(r, "steps")
		for n, step := range steps {
			switch step {
			case 0:
				require.NoError(t, writer.Seal(t.Context()))
			case 1:
				commit(t, writer)
				check(committed(table))
			case 2:
				publish(t, table, prepare(t, writer)) // not adopted
			case 3:
				require.NoError(t, table.Refresh(t.Context()))
			case 4:
				require.NoError(t, writer.Abort(t.Context(), prepare(t, writer)))
			default:
				var pairs []any
				var kinds []int8
				for i := range rapid.IntRange(1, 80).Draw(r, "rows") {
					id := rapid.IntRange(0, 40).Draw(r, "id")
					if rapid.IntRange(0, 3).Draw(r, "delete") == 0 {
						pairs, kinds = append(pairs, id, nil), append(kinds, del)
						delete(model, id)
					} else {
						name := fmt.Sprintf("%d.%d", n, i)
						pairs, kinds = append(pairs, id, name), append(kinds, upd)
						model[id] = name
					}
				}
				change(t, writer, kinds, pairs...)
			}
			check(table.Scan())
		}
		commit(t, writer)
		check(committed(table))
		check(w.open().Scan())
		require.NoError(t, table.Close(t.Context()))
	})
}
