package tideline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/fs/mem"
	"github.com/tideline-db/tideline/paimon/path"
)

// REC-02: buckets restore independently of one another.
func TestBucketsRestoreIndependently(t *testing.T) {
	w := newWorld(t, keyed("bucket", "2"))
	_, writer := w.session()
	of := func(bucket int, n int) (ids []int) { // keys of one bucket, found by writing
		probe := newWorld(t, keyed("bucket", "2"))
		table, pw := probe.session()
		for id := 1; len(ids) < n; id++ {
			put(t, pw, id, "x")
			plan, err := table.Scan().Where(tideline.Eq("id", int64(id))).Buckets(func(b int) bool { return b == bucket }).Read(t.Context())
			require.NoError(t, err)
			if len(drain(t, plan)) == 1 {
				ids = append(ids, id)
			}
		}
		require.NoError(t, pw.Discard(t.Context()))
		return ids
	}
	zero, one := of(0, 4), of(1, 4)
	put(t, writer, zero[0], "a", zero[1], "b", one[0], "c", one[1], "d", one[2], "e")
	commit(t, writer)
	table, writer := w.session()
	put(t, writer, zero[0], "A", one[3], "f")
	for i, want := range []struct{ next, seq int64 }{{3, 3}, {4, 4}} {
		b := stats(t, table).Buckets[i]
		require.Equal(t, want.next, b.NextOffset)
		require.Equal(t, want.seq, b.NextSequence)
		require.EqualValues(t, 1, b.Lag)
	}
	commit(t, writer)
	require.Equal(t, []string{"0:3", "1:4"}, ends(t, table, 0))
}

// REC-04, PK-33: offsets and sequence numbers are independent.
func TestRestartOverATableWithForeignRows(t *testing.T) {
	w := newWorld(t, keyed())
	w.add(0, 7, "old")
	table, writer := w.session()
	put(t, writer, 1, "a", 2, "b")
	put(t, writer, 1, "A")
	remove(t, writer, 2)
	b := stats(t, table).Buckets[0]
	require.EqualValues(t, 4, b.NextOffset)
	require.EqualValues(t, 5, b.NextSequence, "the foreign row has 0")
	commit(t, writer)
	newest := w.files()[0].Files
	f := newest[len(newest)-1]
	require.EqualValues(t, 2, f.Rows)
	require.EqualValues(t, 3, f.MinSeq, "versions 1 and 2 are superseded")
	require.EqualValues(t, 4, f.MaxSeq)
	require.EqualValues(t, 1, *f.DeleteRows)
	table, writer = w.session()
	put(t, writer, 3, "c")
	b = stats(t, table).Buckets[0]
	require.EqualValues(t, 6, b.NextSequence)
	require.EqualValues(t, 5, b.NextOffset)
	require.Equal(t, []string{"1=A", "3=c", "7=old"}, read(t, table.Scan()))
}

// REC-05: offsets of every snapshot, missing ones are missing.
func TestRecoveryOffsetsOfEverySnapshot(t *testing.T) {
	w := newWorld(t, tideline.Definition{Columns: regional, PrimaryKey: []string{"region", "id"}, PartitionBy: []string{"region"}})
	table, writer := w.session()
	write := func(text string) {
		_, err := writer.Write(t.Context(), fromJSON(t, regional, text))
		require.NoError(t, err)
		commit(t, writer)
	}
	write(`[{"region":"a","id":1},{"region":"b","id":1},{"region":"a","id":2}]`)
	write(`[{"region":"b","id":3}]`)
	require.Equal(t, []string{"region=a/0:2", "region=b/0:1"}, ends(t, table, 1))
	require.Equal(t, []string{"region=a/0:2", "region=b/0:2"}, ends(t, table, 2))
	_, err := table.Progress(t.Context(), 3)
	require.Error(t, err)
}

// REC-10: an overwrite ends the session; a new one replays from 0.
func TestOverwriteNeedsANewSession(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a", 2, "b", 3, "c")
		commit(t, writer)
		put(t, writer, 4, "d", 5, "e")
		used := stats(t, table).UsedBytes
		w.overwrite()
		require.ErrorIs(t, table.Refresh(t.Context()), tideline.ErrPoisoned)
		require.Equal(t, used, stats(t, table).UsedBytes)
		require.NoError(t, writer.Close(t.Context()), "the session is over already")
		again, writer := w.session()
		require.Empty(t, ends(t, again, 0))
		put(t, writer, 4, "d", 5, "e")
		commit(t, writer)
		require.Equal(t, []string{"0:2"}, ends(t, again, 0))
		require.Equal(t, []string{"4=d", "5=e"}, read(t, again.Scan()))
	})
}

// REC-11: a rollback ends the session; replay begins at the target's offsets.
func TestRollbackNeedsANewSession(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a", 2, "b", 3, "c")
	commit(t, writer)
	put(t, writer, 4, "d", 5, "e")
	commit(t, writer)
	w.rollback(1)
	require.Equal(t, []string{"0:3"}, ends(t, w.open(), 0))
	require.ErrorIs(t, table.Refresh(t.Context()), tideline.ErrPoisoned)
	require.NoError(t, writer.Close(t.Context()))
	again, writer := w.session()
	put(t, writer, 4, "D", 5, "E")
	require.EqualValues(t, 5, stats(t, again).Buckets[0].NextOffset)
	commit(t, writer)
	require.Equal(t, []string{"1=a", "2=b", "3=c", "4=D", "5=E"}, read(t, again.Scan()))
}

// Replayed rows below the committed end are skipped and counted, whole batches and
// parts; a later step backwards is refused.
func TestReplayIsSkippedAndCounted(t *testing.T) {
	w := newWorld(t, listed())
	_, writer := w.session()
	putAt(t, writer, []int64{10, 20, 30}, 1, "a", 2, "b", 3, "c")
	commit(t, writer, tideline.Position([]byte("30")))
	table, writer := w.session()
	require.Equal(t, []string{"0:31"}, ends(t, table, 0))
	ack := putAt(t, writer, []int64{5, 10}, 0, "-", 1, "a")
	require.Equal(t, 2, ack.Skipped)
	require.Zero(t, ack.Rows)
	ack = putAt(t, writer, []int64{20, 30, 31, 40}, 2, "b", 3, "c", 4, "d", 5, "e")
	require.Equal(t, 2, ack.Skipped)
	require.Equal(t, 2, ack.Rows)
	_, err := writer.Write(t.Context(), rows(t, 6, "f"), tideline.Offsets([]int64{40}))
	require.ErrorIs(t, err, tideline.ErrInvalid)
	_, err = writer.Write(t.Context(), rows(t, 6, "f"), tideline.Offsets([]int64{25}))
	require.ErrorIs(t, err, tideline.ErrInvalid)
	putAt(t, writer, []int64{41}, 6, "f")
	want := []string{"1=a", "2=b", "3=c", "4=d", "5=e", "6=f"}
	require.Equal(t, want, read(t, table.Scan()))
	commit(t, writer)
	require.Equal(t, want, read(t, committed(table)))
	require.Equal(t, []string{"0:42"}, ends(t, table, 0))
	require.NoError(t, writer.Close(t.Context()))
}

// COM-23: a bucket that was dropped while nobody wrote to it begins at 0.
func TestDroppedInactivePartitionBeginsAtZero(t *testing.T) {
	w := newWorld(t, tideline.Definition{Columns: regional, PrimaryKey: []string{"region", "id"}, PartitionBy: []string{"region"}})
	_, writer := w.session()
	_, err := writer.Write(t.Context(), fromJSON(t, regional, `[{"region":"a","id":1},{"region":"b","id":1},{"region":"b","id":2}]`))
	require.NoError(t, err)
	commit(t, writer)
	table, writer := w.session()
	_, err = writer.Write(t.Context(), fromJSON(t, regional, `[{"region":"a","id":2}]`))
	require.NoError(t, err)
	w.foreign("OVERWRITE", w.drop(func(b bucketFiles) bool { return b.PartitionValues[0] == "a" })...)
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, []string{"region=a/0:1"}, ends(t, table, 0))
	_, err = writer.Write(t.Context(), fromJSON(t, regional, `[{"region":"b","id":9}]`))
	require.NoError(t, err)
	commit(t, writer)
	require.Equal(t, []string{"region=a/0:2", "region=b/0:1"}, ends(t, table, 0))
}

// REC-07: a prepare that failed leaves nothing committed, poisons, and replay
// after reopening is complete.
func TestFailedPrepareThenReplay(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a")
		commit(t, writer)
		put(t, writer, 2, "b")
		pinned, err := table.Scan().Plan(t.Context())
		require.NoError(t, err)
		w.io.SetPlan(fault.NoSpaceFrom(0))
		_, err = writer.PrepareCommit(t.Context())
		require.ErrorIs(t, err, tideline.ErrPoisoned)
		w.io.SetPlan(fault.Plan{})
		_, err = writer.Write(t.Context(), rows(t, 3, "c"))
		require.ErrorIs(t, err, tideline.ErrPoisoned)
		_, err = table.Scan().Read(t.Context())
		require.ErrorIs(t, err, tideline.ErrPoisoned)
		require.Equal(t, []string{"1=a"}, read(t, committed(table)))
		require.Equal(t, []string{"1=a"}, read(t, table.Scan().AtSnapshot(1)))
		r, err := table.ReadSplits(t.Context(), pinned.Splits...)
		require.NoError(t, err)
		require.Equal(t, []string{"1=a", "2=b"}, drain(t, r), "LIF-18: pinned plans stay readable")
		require.ErrorIs(t, stats(t, table).Poisoned, tideline.ErrPoisoned)
		require.NoError(t, writer.Close(t.Context()))
		require.NoError(t, table.Close(t.Context()))
		again, writer := w.session()
		put(t, writer, 2, "b", 3, "c")
		commit(t, writer)
		require.Equal(t, []string{"1=a", "2=b", "3=c"}, read(t, again.Scan()))
	})
}

// REC-09: a failed refresh is only that.
func TestFailedRefreshIsTriedAgain(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	publish(t, table, prepare(t, writer))
	put(t, writer, 1, "b")
	w.io.SetPlan(fault.FailFrom(0))
	err := table.Refresh(t.Context())
	require.ErrorIs(t, err, fault.ErrInjected)
	require.NotErrorIs(t, err, tideline.ErrPoisoned)
	w.io.SetPlan(fault.Plan{})
	require.Equal(t, []string{"1=b"}, read(t, table.Scan()))
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, []string{"1=b"}, read(t, table.Scan()))
	require.EqualValues(t, 1, stats(t, table).BuildingRows)
	require.Zero(t, stats(t, table).SealedRows)
}

// job is one life of a loader that keeps its log and replays after any failure:
// write, prepare, commit, refresh, write, commit. It returns the first error.
func job(ctx context.Context, t *testing.T, w *world, last *tideline.Prepared) error {
	table, err := tideline.Open(ctx, w.path, tideline.Options{IO: w.io, CommitUser: "ours"})
	if err != nil {
		return err
	}
	defer func() { require.NoError(t, table.Close(ctx)) }()
	writer, err := table.Writer(ctx)
	if err != nil {
		return err
	}
	from := int64(0)
	for step := int64(0); step < 3; step++ { // the whole log, replayed from the beginning
		if _, err := writer.Write(ctx, rows(t, int(step), "v", int(step)+1, "v", int(step)+100, "v"), tideline.Offsets([]int64{from, from + 1, from + 2})); err != nil {
			return err
		}
		from += 3
		if step == 0 { // two-stage read on the way
			r, err := table.Scan().Read(ctx)
			if err != nil {
				return err
			}
			for r.Next() {
			}
			r.Release()
			if err := r.Err(); err != nil {
				return err
			}
		}
		p, err := writer.PrepareCommit(ctx, tideline.Position(fmt.Append(nil, from)))
		if err != nil {
			return err
		}
		*last = p
		_, err = table.Commit(ctx, p)
		if errors.Is(err, tideline.ErrOutcomeUnknown) {
			_, err = table.Commit(ctx, p) // the same value again
		}
		if err != nil {
			return err
		}
		if err := table.Refresh(ctx); err != nil {
			return err
		}
	}
	return writer.Close(ctx)
}

// jobResult is what the log means; an append table shows doubles, so it is the
// sharper of the two.
func checkJob(t *testing.T, w *world) {
	t.Helper()
	table := w.open()
	got := read(t, table.Scan())
	var want []string
	if len(w.def.PrimaryKey) > 0 {
		want = []string{"0=v", "1=v", "2=v", "3=v", "100=v", "101=v", "102=v"}
	} else {
		want = []string{"0=v", "1=v", "100=v", "1=v", "2=v", "101=v", "2=v", "3=v", "102=v"}
	}
	require.ElementsMatch(t, want, got)
	p, err := table.Progress(t.Context(), 0)
	require.NoError(t, err)
	require.EqualValues(t, 9, p.Offsets[0].Offset)
	require.Equal(t, "9", string(p.Position))
}

// A fault at every operation of a job's life, each kind of fault: then the disk
// heals and the job starts over with its whole log. Nothing is lost, nothing twice.
func TestFaultAtEveryOperation(t *testing.T) {
	plans := map[string]func(int) fault.Plan{
		"fails once": fault.FailOnce, "fails from there on": fault.FailFrom, "reply lost": fault.LostReply,
		"device full": fault.NoSpaceFrom, "short": fault.ShortOnce,
	}
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		for name, plan := range plans {
			t.Run(name, func(t *testing.T) {
				for k := 0; ; k++ {
					w := newWorld(t, def)
					w.io.SetPlan(plan(k))
					var last tideline.Prepared
					err := job(t.Context(), t, w, &last)
					struck := len(w.io.Injected()) > 0
					w.io.SetPlan(fault.Plan{})
					if err != nil {
						require.True(t, struck, "operation %d: %v", k, err)
						require.NoError(t, job(t.Context(), t, w, &last), "replay after a fault at operation %d", k)
					}
					checkJob(t, w)
					if !struck {
						require.Greater(t, k, 20)
						return
					}
				}
			})
		}
	})
}

// The process dies at every operation; what the disk kept is all there is.
func TestCrashAtEveryOperation(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		type moment struct {
			op   string
			disk *mem.FS
		}
		var moments []moment
		w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
			if op.Kind.Mutates() {
				moments = append(moments, moment{op.String() + " kept nothing", w.disk.CrashClone(mem.KeepNone)},
					moment{op.String() + " kept all", w.disk.CrashClone(mem.KeepAll)},
					moment{op.String() + " kept some", w.disk.CrashClone(mem.KeepFraction(uint64(len(moments)), 50))})
			}
			return fault.Decision{}
		}})
		var last tideline.Prepared
		require.NoError(t, job(t.Context(), t, w, &last))
		require.Greater(t, len(moments), 60)
		for _, m := range moments {
			after := &world{t: t, disk: m.disk, io: fault.Wrap(m.disk, fault.Plan{}), path: w.path, def: def}
			require.NoError(t, job(t.Context(), t, after, &last), m.op)
			checkJob(t, after)
		}
	})
}

// Damage is named and never answered with a part of the rows.
func TestDamagedTables(t *testing.T) {
	dataFile := func(w *world) string {
		b := w.files()[0]
		name, err := w.reader().DataPath(b, b.Files[0])
		require.NoError(w.t, err)
		return name
	}
	truncate := func(w *world, name string, to int) {
		info, err := w.disk.Stat(w.t.Context(), name)
		require.NoError(w.t, err)
		data := make([]byte, info.Size)
		f, err := w.disk.Open(w.t.Context(), name)
		require.NoError(w.t, err)
		_, err = f.ReadAt(data, 0)
		require.NoError(w.t, err)
		require.NoError(w.t, f.Close())
		require.NoError(w.t, w.disk.Overwrite(w.t.Context(), name, data[:min(to, len(data))]))
	}
	cases := []struct {
		name string
		do   func(w *world)
	}{
		{"data file missing", func(w *world) { require.NoError(w.t, w.disk.Delete(w.t.Context(), dataFile(w))) }},
		{"data file truncated", func(w *world) { truncate(w, dataFile(w), 100) }},
		{"data file empty", func(w *world) { truncate(w, dataFile(w), 0) }},
		{"snapshot truncated", func(w *world) { truncate(w, path.Snapshot(w.path, "", 1), 40) }},
		{"manifest list truncated", func(w *world) { truncate(w, path.Manifest(w.path, w.latest().DeltaManifestList), 60) }},
		{"manifest list missing", func(w *world) {
			require.NoError(w.t, w.disk.Delete(w.t.Context(), path.Manifest(w.path, w.latest().DeltaManifestList)))
		}},
		{"schema truncated", func(w *world) { truncate(w, path.SchemaFile(w.path, "", 0), 10) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, keyed())
			_, writer := w.session()
			put(t, writer, 1, "a")
			commit(t, writer)
			c.do(w)
			table, err := tideline.Open(t.Context(), w.path, tideline.Options{IO: w.disk})
			if err == nil {
				defer func() { require.NoError(t, table.Close(t.Context())) }()
				var r *tideline.Reader
				if r, err = table.Scan().Read(t.Context()); err == nil {
					require.False(t, r.Next(), "no partial result")
					err = r.Err()
					r.Release()
				}
			}
			require.ErrorIs(t, err, tideline.ErrCorrupt)
			var named *tideline.CorruptError
			if errors.As(err, &named) {
				require.True(t, strings.Contains(named.File, "/") || named.File != "")
			}
		})
	}
}

// A snapshot that expired under a plan is told from damage.
func TestExpiredUnderAReader(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	commit(t, writer)
	r, err := committed(table).Read(t.Context())
	require.NoError(t, err)
	defer r.Release()
	old := w.files()[0]
	w.compact()
	w.expire(2)
	name, err := w.reader().DataPath(old, old.Files[0])
	require.NoError(t, err)
	require.NoError(t, w.disk.Delete(t.Context(), name))
	require.False(t, r.Next())
	require.ErrorIs(t, r.Err(), tideline.ErrSnapshotExpired)
	_, err = table.Scan().AtSnapshot(1).Read(t.Context())
	require.ErrorIs(t, err, tideline.ErrSnapshotExpired)
	require.Equal(t, []string{"1=a"}, read(t, committed(table)))
}

// A folder that cannot be written: reading works, writing says what and where.
func TestUnwritableFolder(t *testing.T) {
	w := newWorld(t, keyed())
	_, writer := w.session()
	put(t, writer, 1, "a")
	commit(t, writer)
	w.io.SetPlan(fault.ReadOnly())
	table, writer := w.session()
	put(t, writer, 2, "b")
	require.Equal(t, []string{"1=a", "2=b"}, read(t, table.Scan()))
	_, err := writer.Commit(t.Context())
	require.ErrorIs(t, err, tideline.ErrPoisoned)
	require.ErrorContains(t, err, "read-only")
	require.Equal(t, []string{"1=a"}, read(t, committed(table)))
}

var regions = tideline.Definition{Columns: regional, PrimaryKey: []string{"region", "id"}, PartitionBy: []string{"region"}}

// REC-03: partition-buckets continue their own offsets and sequence numbers.
func TestPartitionBucketsContinueTheirOwnNumbers(t *testing.T) {
	w := newWorld(t, regions)
	_, writer := w.session()
	write := func(text string, kinds ...int8) {
		_, err := writer.Write(t.Context(), fromJSON(t, regional, text), tideline.Kinds(kinds))
		require.NoError(t, err)
	}
	write(`[{"region":"p0","id":1,"name":"a"},{"region":"p1","id":1,"name":"a"},{"region":"p1","id":2,"name":"b"},{"region":"p0","id":2,"name":"b"},{"region":"p1","id":3,"name":"c"}]`, ins, ins, ins, ins, ins)
	commit(t, writer)
	table, writer := w.session()
	write(`[{"region":"p0","id":1,"name":"A"},{"region":"p1","id":2},{"region":"p0","id":3,"name":"c"},{"region":"p1","id":4,"name":"d"}]`, upd, del, ins, ins)
	commit(t, writer)
	require.Equal(t, []string{"region=p0/0:4", "region=p1/0:5"}, ends(t, table, 0))
	for _, b := range w.files() {
		newest := b.Files[len(b.Files)-1]
		want := map[string][2]int64{"p0": {2, 3}, "p1": {3, 4}}[b.PartitionValues[0].(string)]
		require.Equal(t, want, [2]int64{newest.MinSeq, newest.MaxSeq})
	}
	require.ElementsMatch(t, []string{"p0=1=A", "p0=2=b", "p0=3=c", "p1=1=a", "p1=3=c", "p1=4=d"}, read(t, table.Scan()))
}

// REC-12: an active partition was dropped; the session ends, the replay is complete.
func TestDroppedActivePartition(t *testing.T) {
	w := newWorld(t, regions)
	table, writer := w.session()
	write := func(text string) {
		_, err := writer.Write(t.Context(), fromJSON(t, regional, text))
		require.NoError(t, err)
	}
	write(`[{"region":"p0","id":1},{"region":"p1","id":1},{"region":"p1","id":2},{"region":"p1","id":3}]`)
	commit(t, writer)
	write(`[{"region":"p0","id":2}]`)
	used := stats(t, table).UsedBytes
	w.foreign("OVERWRITE", w.drop(func(b bucketFiles) bool { return b.PartitionValues[0] != "p0" })...)
	require.ErrorIs(t, table.Refresh(t.Context()), tideline.ErrPoisoned)
	require.Equal(t, used, stats(t, table).UsedBytes)
	require.Equal(t, []string{"region=p1/0:3"}, ends(t, table, 0))
	require.NoError(t, writer.Close(t.Context()))
	table, writer = w.session()
	write(`[{"region":"p0","id":1},{"region":"p0","id":2}]`)
	require.Len(t, read(t, table.Scan()), 5)
	commit(t, writer)
	require.Equal(t, []string{"region=p0/0:2", "region=p1/0:3"}, ends(t, table, 0))
}
