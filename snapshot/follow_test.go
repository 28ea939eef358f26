package snapshot

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
)

func TestProgressIsInheritedOverForeignCommits(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1}, part{"us", 1, 4, 1})
	w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 7, 50))
	w.compact("eu", 0)
	w.foreign(manifest.KindAnalyze, nil)
	p := w.progress()
	require.EqualValues(t, 3, p.End(key("eu", 0)))
	require.EqualValues(t, 4, p.End(key("us", 1)))
	require.Equal(t, []byte("p1"), p.Position)
	require.EqualValues(t, 1, p.FromSnapshot)
	require.EqualValues(t, 1, p.Identifiers["loader"])

	require.NoError(t, s.refresh())
	require.EqualValues(t, 4, s.adopted.ID)
	r := s.commit(part{"eu", 0, 2, 1})
	require.EqualValues(t, 5, w.end("eu", 0))
	require.EqualValues(t, 4, w.end("us", 1), "carried on by our next commit")
	require.EqualValues(t, 5, r.Progress.FromSnapshot)
}

func TestOverwritesClearProgress(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1}, part{"us", 1, 4, 1})
	w.foreign(manifest.KindOverwrite, nil, append(w.remove(inRegion("us")), w.add("us", 0, 1, 0))...)
	p := w.progress()
	require.EqualValues(t, 3, p.End(key("eu", 0)))
	require.EqualValues(t, 0, p.End(key("us", 1)))
	require.True(t, p.Cleared)
	require.Equal(t, []byte("p1"), p.Position)

	w.foreign(manifest.KindOverwrite, nil, w.remove(all)...)
	p = w.progress()
	require.EqualValues(t, 0, p.End(key("eu", 0)))
	require.Nil(t, p.Position)
	require.EqualValues(t, 1, p.Identifiers["loader"], "identifiers outlive an overwrite")
	require.True(t, p.Found)
}

// A partition whose rows cancelled each other out has no file that an overwrite of
// the whole table could delete.
func TestOverwriteOfTheWholeTableClearsWhatHasNoFiles(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1}, part{"us", 1, 4, 0})
	w.foreign(manifest.KindOverwrite, nil, w.remove(all)...)
	require.Zero(t, w.progress().Offsets.Len())
	require.ErrorIs(t, s.refresh(), errs.ErrPoisoned)
}

// An engine that knows offsets but not our record, as paimon-cpp.
func TestRecordLeftBehind(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	r := s.commit(part{"eu", 0, 3, 1})
	offsets := map[string]string{manifest.PropertyOffsets: r.Snapshot.Properties[manifest.PropertyOffsets]}
	w.foreign(manifest.KindCompact, offsets)
	p := w.progress()
	require.Equal(t, []byte("p1"), p.Position, "same offsets: the position still stands for them")
	require.EqualValues(t, 1, p.Identifiers["loader"])

	w.foreign(manifest.KindAppend, map[string]string{manifest.PropertyOffsets: w.offsets("eu", 0, 9)})
	p = w.progress()
	require.EqualValues(t, 9, p.End(key("eu", 0)))
	require.Nil(t, p.Position, "other offsets: the position would be replayed wrongly")
	require.EqualValues(t, 1, p.Identifiers["loader"])
}

func TestPositionBelongsToItsCommitOnly(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	req := s.prepare(part{"eu", 0, 2, 1})
	req.Position, req.HasPosition = nil, false
	_, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.Nil(t, w.progress().Position)
	require.NoError(t, s.refresh())
	req = s.prepare(part{"eu", 0, 2, 1})
	req.Position = nil
	_, err = s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.Equal(t, []byte{}, w.progress().Position)
}

func TestLargePositionHasAFileOfItsOwn(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	req.Position = make([]byte, progress.MaxPositionBytes)
	req.Position[100] = 7
	_, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.Equal(t, req.Position, w.progress().Position)
}

func TestProgressThatIsGone(t *testing.T) {
	lose := map[string]func(w *world){
		"consumer ignored": func(w *world) {
			w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
			w.expire(2)
		},
		"offsets file only": func(w *world) {
			w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
			w.expire(2)
			require.NoError(w.t, w.disk.Delete(w.ctx, path.Consumer(root, "", "tideline-loader")))
		},
		"consumer file only": func(w *world) {
			offsets := w.latest().Properties[manifest.PropertyOffsets]
			w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
			w.expire(2)
			require.NoError(w.t, w.disk.Delete(w.ctx, offsets))
		},
		"offsets file deleted": func(w *world) {
			require.NoError(w.t, w.disk.Delete(w.ctx, w.latest().Properties[manifest.PropertyOffsets]))
		},
	}
	for name, happens := range lose {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "pk")
			s := w.session("loader")
			s.commit(part{"eu", 0, 3, 1})
			happens(w)
			_, err := w.table().Progress(w.ctx, w.latest())
			require.ErrorIs(t, err, ErrProgressGone)
			_, err = w.table().Files(w.ctx, w.latest(), Filter{})
			require.NoError(t, err, "the table can still be read")
		})
	}
	t.Run("never had any", func(t *testing.T) {
		w := newWorld(t, "pk")
		for range 3 {
			w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
		}
		w.expire(3)
		p := w.progress()
		require.False(t, p.Found)
		require.EqualValues(t, 0, p.End(key("eu", 1)))
	})
	t.Run("crash after the consumer file, before the first snapshot", func(t *testing.T) {
		w := newWorld(t, "pk")
		require.NoError(t, w.table().protect(w.ctx, "loader", 1))
		require.False(t, w.progress().Found)
		w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
		require.False(t, w.progress().Found)
	})
}

// Recovery offsets stand in for the progress of the adopted snapshot.
func TestCommitOnRecoveryOffsets(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
	w.expire(2)
	offsets, err := (*progress.Offsets)(nil).With([]path.KV{{Key: "region", Value: "eu"}}, 0, 3)
	require.NoError(t, err)
	table := w.table()
	again := &session{w: w, table: table, user: "loader", id: w.uuid(), adopted: w.latest(),
		progress: &Progress{Offsets: offsets, Found: true}, ends: map[progress.Key]int64{key("eu", 0): 3}, ident: 1}
	table.Session(again.id)
	again.commit(part{"eu", 0, 2, 1})
	require.EqualValues(t, 5, w.end("eu", 0))
}

func TestMovedTableStillFindsItsProgress(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	w.foreign(manifest.KindAppend, map[string]string{manifest.PropertyOffsets: "/elsewhere/t/metadata/" + fs.Base(s.adopted.Properties[manifest.PropertyOffsets])})
	require.EqualValues(t, 3, w.end("eu", 0))
	w.foreign(manifest.KindAppend, map[string]string{manifest.PropertyOffsets: "../../../etc/passwd"})
	_, err := w.table().Progress(w.ctx, w.latest())
	require.ErrorIs(t, err, errs.ErrCorrupt)
}

func TestConsumerFollowsTheNewestProgress(t *testing.T) {
	w := newWorld(t, "pk")
	next := func() int64 {
		c, err := w.table().Consumers(w.ctx)
		require.NoError(t, err)
		return c["tideline-loader"]
	}
	w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	require.EqualValues(t, 2, next())
	w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
	require.NoError(t, s.refresh())
	require.EqualValues(t, 2, next(), "the foreign snapshot carries nothing")
	s.commit(part{"eu", 0, 3, 1})
	require.EqualValues(t, 4, next())

	w.rollback(2)
	s = w.session("loader")
	s.commit(part{"eu", 0, 1, 1})
	require.EqualValues(t, 3, next(), "lowered again after a rollback")
}

// A crash between the consumer file and the raise leaves an older number.
func TestConsumerIsWrittenBeforeTheSnapshot(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	consumer, snapshot := -1, -1
	for _, op := range w.io.Log() {
		if op.Kind == "overwrite" && fs.Base(op.Name) == "consumer-tideline-loader" && consumer < 0 {
			consumer = op.Index
		}
		if op.Kind == "create-if-absent" && fs.Base(op.Name) == "snapshot-1" {
			snapshot = op.Index
		}
	}
	require.Greater(t, consumer, -1)
	require.Greater(t, snapshot, consumer)
}

func TestFollowReportsSequencesAndSessions(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 7, 50), w.add("us", 1, 2, 5))
	_, err := s.table.Commit(w.ctx, s.prepare(part{"eu", 0, 1, 1}))
	require.NoError(t, err)
	c, err := s.table.Follow(w.ctx, s.adopted, s.progress)
	require.NoError(t, err)
	require.Len(t, c.Changes, 2)
	require.False(t, c.Changes[0].Ours)
	require.True(t, c.Changes[1].Ours)
	require.Equal(t, s.id, c.Changes[1].Session)
	require.Equal(t, map[progress.Key]int64{key("eu", 0): 56, key("us", 1): 6}, c.MaxSeq)
	require.EqualValues(t, 4, c.Progress.End(key("eu", 0)))
	require.NoError(t, c.Check(nil))

	top, err := s.table.MaxSequence(w.ctx, c.Latest, w.partition("eu"), 0)
	require.NoError(t, err)
	require.EqualValues(t, 56, top)
	top, err = s.table.MaxSequence(w.ctx, c.Latest, w.partition("eu"), 1)
	require.NoError(t, err)
	require.EqualValues(t, -1, top)
}

// An engine that copies all properties of its predecessor is not taken for us.
func TestCopiedRecordIsNotOurs(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	w.foreign(manifest.KindAppend, s.adopted.Properties, w.add("eu", 0, 7, 50))
	c, err := s.table.Follow(w.ctx, s.adopted, s.progress)
	require.NoError(t, err)
	require.False(t, c.Changes[0].Ours)
	require.NoError(t, c.Check(nil))
}

func TestInactiveBucketsMayBeDroppedOrMoved(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1}, part{"us", 1, 4, 1})
	w.foreign(manifest.KindOverwrite, nil, w.remove(inRegion("us"))...)
	c, err := s.table.Follow(w.ctx, s.adopted, s.progress)
	require.NoError(t, err)
	active := func(region string) func(progress.Key) bool {
		return func(k progress.Key) bool { return k.Partition == "region="+region }
	}
	require.NoError(t, c.Check(active("eu")))
	require.ErrorIs(t, c.Check(active("us")), errs.ErrPoisoned)
	require.NoError(t, c.CheckOverwrites([]progress.Key{key("eu", 1)}))
	require.ErrorIs(t, c.CheckOverwrites([]progress.Key{key("us", 0)}), errs.ErrPoisoned, "in memory, no progress yet")
	require.EqualValues(t, 0, c.Progress.End(key("us", 1)))
}

func TestAdoptedSnapshotThatExpired(t *testing.T) {
	w := newWorld(t, "pk")
	w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
	s := w.session("loader") // never had progress
	for range 3 {
		w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 9))
	}
	w.expire(3)
	require.NoError(t, s.refresh())
	require.EqualValues(t, 4, s.adopted.ID)
	s.commit(part{"eu", 0, 3, 1})
	w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 9))
	w.expire(6)
	require.ErrorIs(t, s.refresh(), errs.ErrPoisoned)
}

func TestSnapshotsAndHints(t *testing.T) {
	w := newWorld(t, "pk")
	for range 40 {
		w.foreign(manifest.KindAppend, nil)
	}
	for _, hint := range []string{"", "0", "-3", "99", "1", "abc", "999999999999999999999", "\x00\xff", "2 ", "40", "39"} {
		require.NoError(t, w.disk.Overwrite(w.ctx, path.LatestHint(root, ""), []byte(hint)))
		require.EqualValues(t, 40, w.latest().ID, hint)
	}
	require.NoError(t, w.disk.Delete(w.ctx, path.LatestHint(root, "")))
	require.EqualValues(t, 40, w.latest().ID)
	s, err := w.table().Latest(w.ctx, 77)
	require.NoError(t, err)
	require.EqualValues(t, 40, s.ID, "older than asked: rolled back")

	w.expire(5)
	earliest, err := w.table().Earliest(w.ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5, earliest)
	_, err = w.table().Snapshot(w.ctx, 4)
	require.ErrorIs(t, err, errs.ErrSnapshotExpired)
	_, err = w.table().Snapshot(w.ctx, 41)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, errs.ErrSnapshotExpired)
}

// lagging lists a directory as it was a while ago.
type lagging struct{ fs.FileIO }

func (l lagging) List(ctx context.Context, dir string) ([]fs.Info, error) {
	list, err := l.FileIO.List(ctx, dir)
	return slices.DeleteFunc(list, func(i fs.Info) bool { return i.Name == "snapshot-3" || i.Name == "snapshot-2" }), err
}

func TestListingThatLagsBehind(t *testing.T) {
	w := newWorld(t, "pk")
	for range 3 {
		w.foreign(manifest.KindAppend, nil)
	}
	require.NoError(t, w.disk.Delete(w.ctx, path.LatestHint(root, "")))
	table := w.table()
	table.IO = lagging{w.disk}
	s, err := table.Latest(w.ctx, 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, s.ID)
}

func TestMissingManifest(t *testing.T) {
	w := newWorld(t, "pk")
	w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 3, 0))
	snap := w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 3, 0))
	lists, err := w.table().manifestList(w.ctx, snap)
	require.NoError(t, err)
	require.NoError(t, w.disk.Delete(w.ctx, path.Manifest(root, lists[0].Name)))
	_, err = w.table().Files(w.ctx, snap, Filter{})
	require.ErrorIs(t, err, errs.ErrCorrupt)
	w.foreign(manifest.KindAppend, nil)
	w.expire(3)
	_, err = w.table().Files(w.ctx, snap, Filter{})
	require.ErrorIs(t, err, errs.ErrSnapshotExpired)
	require.NotErrorIs(t, err, errs.ErrCorrupt)
}

func TestHostileNames(t *testing.T) {
	w := newWorld(t, "pk")
	snap := w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 3, 0))
	bad := *snap
	bad.DeltaManifestList = "../../../../etc/passwd"
	_, err := w.table().Files(w.ctx, &bad, Filter{})
	require.ErrorIs(t, err, errs.ErrCorrupt)
	b := w.files()[0]
	for _, name := range []string{"../x", "", "a/b", "..", "c:d"} {
		_, err = w.table().DataPath(b, manifest.FileMeta{Name: name})
		require.ErrorIs(t, err, errs.ErrCorrupt, name)
	}
	uri := "file:/tmp/external/data-1.parquet"
	_, err = w.table().DataPath(b, manifest.FileMeta{Name: "data-1.parquet", ExternalPath: &uri})
	require.ErrorIs(t, err, errs.ErrUnsupported)
	table := w.table()
	table.External = func(uri string) (string, error) { return "/mapped", nil }
	name, err := table.DataPath(b, manifest.FileMeta{Name: "data-1.parquet", ExternalPath: &uri})
	require.NoError(t, err)
	require.Equal(t, "/mapped", name)
}

func TestRefs(t *testing.T) {
	w := newWorld(t, "pk")
	snap := w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 3, 0))
	require.NoError(t, w.disk.Overwrite(w.ctx, path.Tag(root, "", "v1"), snap.Marshal()))
	require.NoError(t, w.disk.Overwrite(w.ctx, path.Consumer(root, "", "other"), []byte("junk")))
	table := w.table()
	tags, err := table.Tags(w.ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"v1"}, tags)
	tagged, err := table.Tag(w.ctx, "v1")
	require.NoError(t, err)
	require.True(t, Same(snap, tagged))
	_, err = table.Tag(w.ctx, "nope")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = table.Tag(w.ctx, "../x")
	require.ErrorIs(t, err, errs.ErrInvalid)
	consumers, err := table.Consumers(w.ctx)
	require.NoError(t, err)
	require.Empty(t, consumers)
}

func TestBranchHasItsOwnChain(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	// A branch is made by copying schema and snapshot; files stay where they are.
	for _, name := range []string{"schema/schema-0", "snapshot/snapshot-1"} {
		data, err := fs.ReadAll(w.ctx, w.disk, fs.Join(root, name), 1<<20)
		require.NoError(t, err)
		require.NoError(t, w.disk.Overwrite(w.ctx, fs.Join(root, "branch/branch-b1", name), data))
	}
	branches, err := s.table.Branches(w.ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"b1"}, branches)
	b := &session{w: w, table: w.table(), user: "loader", id: w.uuid(), ends: map[progress.Key]int64{}}
	b.table.Branch = "b1"
	b.table.Session(b.id)
	b.open()
	require.EqualValues(t, 3, b.progress.End(key("eu", 0)), "progress of the main table's files")
	r := b.commit(part{"eu", 0, 2, 1})
	require.EqualValues(t, 2, r.SnapshotID)
	require.Contains(t, r.Snapshot.Properties[manifest.PropertyOffsets], root+"/branch/branch-b1/metadata/")
	require.EqualValues(t, 1, w.latest().ID, "main did not move")
	_, err = w.disk.Stat(w.ctx, root+"/branch/branch-b1/consumer/consumer-tideline-loader")
	require.NoError(t, err)
}
