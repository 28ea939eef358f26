package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/paimon/schema"
)

func TestFirstCommitMakesACompleteTable(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1}, part{"eu", 1, 2, 1}, part{"us", 0, 4, 2})
	r, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.EqualValues(t, 1, r.SnapshotID)
	require.Equal(t, 1, r.Attempts)
	require.False(t, r.AlreadyThere)
	require.Empty(t, r.Warnings)
	require.True(t, Same(r.Snapshot, w.latest()))

	snap := r.Snapshot
	require.Equal(t, 3, snap.Version)
	require.Equal(t, manifest.KindAppend, snap.CommitKind)
	require.Equal(t, "loader", snap.CommitUser)
	require.EqualValues(t, 1, snap.CommitIdentifier)
	require.EqualValues(t, 3+2+4+4, snap.TotalRecordCount)
	require.EqualValues(t, 3+2+4+4, snap.DeltaRecordCount)
	require.EqualValues(t, 0, *snap.NextRowID)
	for list, size := range map[string]*int64{snap.BaseManifestList: snap.BaseManifestListSize, snap.DeltaManifestList: snap.DeltaManifestListSize} {
		info, err := w.disk.Stat(w.ctx, path.Manifest(root, list))
		require.NoError(t, err)
		require.Equal(t, info.Size, *size)
	}
	require.ElementsMatch(t, names(req), w.liveNames())

	p := w.progress()
	require.EqualValues(t, 3, p.End(key("eu", 0)))
	require.EqualValues(t, 2, p.End(key("eu", 1)))
	require.EqualValues(t, 4, p.End(key("us", 0)))
	require.EqualValues(t, 0, p.End(key("us", 1)))
	require.Equal(t, []byte("p1"), p.Position)
	require.Equal(t, map[string]int64{"loader": 1}, p.Identifiers)
	require.Equal(t, "/w/shop.db/orders/metadata/"+snap.UUID+".offsets", snap.Properties["realtime.offsets"])

	for hint, want := range map[string]string{"LATEST": "1", "EARLIEST": "1"} {
		data, err := fs.ReadAll(w.ctx, w.disk, fs.Join(path.SnapshotDir(root, ""), hint), 10)
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
	consumers, err := s.table.Consumers(w.ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"tideline-loader": 1}, consumers)
}

func TestNothingPreparedPublishesNothing(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	for _, req := range []CommitRequest{s.prepare(), s.prepare(part{"eu", 0, 0, 0})} {
		req.Position, req.HasPosition = nil, false
		r, err := s.table.Commit(w.ctx, req)
		require.NoError(t, err)
		require.Equal(t, CommitResult{}, r)
	}
	require.Nil(t, w.latest())
}

func TestAPositionAloneIsPublishedOnce(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare()
	req.Position, req.HasPosition = []byte("here"), true
	first, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.EqualValues(t, 1, first.SnapshotID)
	again, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.True(t, again.AlreadyThere)
	require.EqualValues(t, 1, again.SnapshotID)
	require.EqualValues(t, 1, w.latest().ID)
}

func TestRowsThatCancelledOutStillAdvanceProgress(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	r := s.commit(part{"eu", 1, 5, 0})
	require.EqualValues(t, 1, r.SnapshotID)
	require.EqualValues(t, 5, w.end("eu", 1))
	require.Empty(t, w.liveNames())
}

func TestMessagesOfSeveralPreparesAreFoldedInAnyOrder(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	first, second := s.prepare(part{"eu", 0, 3, 1}), s.prepare(part{"eu", 0, 2, 1})
	second.Messages = append(second.Messages, first.Messages...)
	_, err := s.table.Commit(w.ctx, second)
	require.NoError(t, err)
	require.EqualValues(t, 5, w.end("eu", 0))
	require.Len(t, w.liveNames(), 2)
}

func TestRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	cases := map[string]func(*CommitRequest){
		"no user":                 func(r *CommitRequest) { r.User = "" },
		"user too long":           func(r *CommitRequest) { r.User = strings.Repeat("u", 300) },
		"session is no uuid":      func(r *CommitRequest) { r.SessionID = "x" },
		"position too long":       func(r *CommitRequest) { r.Position = make([]byte, progress.MaxPositionBytes+1) },
		"negative bucket":         func(r *CommitRequest) { r.Messages[0].Bucket = -1 },
		"bucket out of range":     func(r *CommitRequest) { r.Messages[0].Bucket = 2 },
		"empty range with files":  func(r *CommitRequest) { r.Messages[0].End = r.Messages[0].Begin },
		"range backwards":         func(r *CommitRequest) { r.Messages[0].End = -1 },
		"begin below follows":     func(r *CommitRequest) { r.Messages[0].Follows = 1 },
		"offsets exhausted":       func(r *CommitRequest) { r.Messages[0].End = 1<<63 - 1 },
		"file name is a path":     func(r *CommitRequest) { r.Messages[0].Files[0].Name = "../x" },
		"file twice":              func(r *CommitRequest) { r.Messages[0].Files = append(r.Messages[0].Files, r.Messages[0].Files[0]) },
		"side file is a path":     func(r *CommitRequest) { r.Messages[0].Files[0].ExtraFiles = []string{"/etc/passwd"} },
		"partition text is wrong": func(r *CommitRequest) { r.Messages[0].PartitionText = "region=us" },
		"partition row is broken": func(r *CommitRequest) { r.Messages[0].Partition = []byte{1} },
		"ranges overlap": func(r *CommitRequest) {
			r.Messages = append(r.Messages, Message{Partition: r.Messages[0].Partition, Begin: 1, End: 4})
		},
		"ranges leave a hole": func(r *CommitRequest) {
			r.Messages = append(r.Messages, Message{Partition: r.Messages[0].Partition, Follows: 4, Begin: 4, End: 6})
		},
	}
	for name, breakIt := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "pk")
			s := w.session("loader")
			req := s.prepare(part{"eu", 0, 3, 1})
			breakIt(&req)
			_, err := s.table.Commit(w.ctx, req)
			require.ErrorIs(t, err, errs.ErrInvalid)
			require.Nil(t, w.latest())
		})
	}
}

func TestStoreWithoutCreateIfAbsentIsRefused(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	w.io.SetPlan(fault.Plan{Capabilities: &fs.Capabilities{AtomicRename: true, List: true}})
	_, err := s.table.Commit(w.ctx, req)
	require.ErrorIs(t, err, errs.ErrUnsupported)
}

// A commit that is retried changes nothing; the snapshot that holds it is named,
// and the newest one too.
func TestCommittingTheSameValueTwice(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	first := s.prepare(part{"eu", 0, 3, 1})
	_, err := s.table.Commit(w.ctx, first)
	require.NoError(t, err)
	again, err := s.table.Commit(w.ctx, first)
	require.NoError(t, err)
	require.True(t, again.AlreadyThere)
	require.EqualValues(t, 1, again.SnapshotID)

	require.NoError(t, s.refresh())
	s.commit(part{"eu", 0, 2, 1})
	w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 7, 100))
	old, err := w.table().Commit(w.ctx, first) // a new process, with the request of the old one
	require.NoError(t, err)
	require.True(t, old.AlreadyThere)
	require.EqualValues(t, 1, old.SnapshotID)
	require.EqualValues(t, 3, old.LatestID)
	require.EqualValues(t, 3, w.latest().ID)
}

func TestRetryOfACommitWithoutFiles(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 0})
	for i, there := range []bool{false, true} {
		r, err := s.table.Commit(w.ctx, req)
		require.NoError(t, err)
		require.Equal(t, there, r.AlreadyThere, i)
	}
	other := w.session("loader")
	req.SessionID = other.id
	_, err := other.table.Commit(w.ctx, req)
	require.ErrorIs(t, err, errs.ErrFenced)
}

func TestRangesOfSomebodyElse(t *testing.T) {
	change := map[string]func(w *world, r *CommitRequest){
		"other user":           func(_ *world, r *CommitRequest) { r.User = "other" },
		"other identifier":     func(_ *world, r *CommitRequest) { r.Identifier = 9 },
		"replay by a new file": func(w *world, r *CommitRequest) { r.Messages[0].Files[0] = w.file("eu", 0, 3, 0) },
	}
	for name, edit := range change {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "pk")
			s := w.session("loader")
			req := s.prepare(part{"eu", 0, 3, 1})
			_, err := s.table.Commit(w.ctx, req)
			require.NoError(t, err)
			before := w.liveNames()
			req.Messages[0].Files = append([]manifest.FileMeta{}, req.Messages[0].Files...)
			edit(w, &req)
			if name != "replay by a new file" {
				req.Messages[0].Files[0].Name = w.file("eu", 0, 3, 0).Name
			}
			_, err = s.table.Commit(w.ctx, req)
			require.ErrorIs(t, err, errs.ErrFenced)
			require.Equal(t, before, w.liveNames())
			require.EqualValues(t, 1, w.latest().ID)
		})
	}
}

// COM-16: where the newest progress stands relative to the ranges.
func TestCoverage(t *testing.T) {
	folds := []fold{
		{key: key("eu", 0), follows: 3, begin: 3, end: 5},
		{key: key("eu", 1), follows: 0, begin: 2, end: 4}, // a gap of the caller's offsets
	}
	cases := []struct {
		name     string
		eu0, eu1 int64
		want     coverage
		err      error
	}{
		{"pending", 3, 0, pending, nil},
		{"covered exactly", 5, 4, covered, errs.ErrFenced},
		{"covered and more", 9, 4, covered, errs.ErrFenced},
		{"one covered", 5, 0, partly, errs.ErrFenced},
		{"inside a range", 4, 0, partly, errs.ErrFenced},
		{"inside the gap", 3, 1, partly, errs.ErrFenced},
		{"an earlier prepare is missing", 2, 0, partly, errs.ErrConflict},
		{"mixed", 2, 4, partly, errs.ErrFenced},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &Progress{}
			var err error
			for b, end := range []int64{c.eu0, c.eu1} {
				p.Offsets, err = p.Offsets.With([]path.KV{{Key: "region", Value: "eu"}}, b, end)
				require.NoError(t, err)
			}
			require.Equal(t, c.want, cover(folds, p))
			err = checkFollows(folds, p, 7)
			if c.err == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.err)
				require.Contains(t, err.Error(), "not published")
			}
		})
	}
}

func TestPreparesArePublishedInOrderOnly(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	first, second := s.prepare(part{"eu", 0, 3, 1}), s.prepare(part{"eu", 0, 2, 1})
	_, err := s.table.Commit(w.ctx, second)
	require.ErrorIs(t, err, errs.ErrConflict)
	for _, req := range []CommitRequest{first, second} {
		_, err := s.table.Commit(w.ctx, req)
		require.NoError(t, err)
	}
	require.EqualValues(t, 5, w.end("eu", 0))
}

func TestAppendFilesAreRenumberedOnTheNewestSnapshot(t *testing.T) {
	w := newWorld(t, "append")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 2}) // two files of 3 rows
	req := s.prepare(part{"eu", 0, 4, 1}, part{"us", 0, 2, 1})
	kept := req.Messages[0].Files[0]
	w.before(fault.CreateIfAbsent, "snapshot-2", func() { w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 10, 6)) })
	_, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.Equal(t, kept, req.Messages[0].Files[0], "the request is not changed")

	var ranges [][2]int64
	for _, b := range w.files() {
		for _, f := range b.Files {
			ranges = append(ranges, [2]int64{f.MinSeq, f.MaxSeq})
		}
	}
	require.Equal(t, [][2]int64{{0, 2}, {3, 5}, {6, 15}, {16, 19}, {0, 1}}, ranges)
}

func TestUnawareBucketsNumberFromZero(t *testing.T) {
	w := newWorld(t, "unaware")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 2})
	s.commit(part{"eu", 0, 4, 1})
	for _, b := range w.files() {
		require.Equal(t, -1, b.TotalBuckets)
		require.Len(t, b.Files, 3)
		require.EqualValues(t, 0, b.Files[0].MinSeq)
	}
	require.EqualValues(t, 7, w.end("eu", 0))
}

func TestBucketCountIsChecked(t *testing.T) {
	t.Run("altered option", func(t *testing.T) {
		w := newWorld(t, "pk")
		s := w.session("loader")
		req := s.prepare(part{"eu", 0, 3, 1})
		w.alter(func(s *schema.Schema) { s.Options["bucket"] = "4" })
		_, err := s.table.Commit(w.ctx, req)
		require.ErrorIs(t, err, errs.ErrConflict)
		require.ErrorContains(t, err, "rescale")
	})
	t.Run("partition with another count", func(t *testing.T) {
		w := newWorld(t, "pk")
		e := w.add("eu", 0, 3, 0)
		e.TotalBuckets = 4
		w.foreign(manifest.KindAppend, nil, e)
		s := w.session("loader")
		_, err := s.table.Commit(w.ctx, s.prepare(part{"eu", 0, 3, 1}))
		require.ErrorIs(t, err, errs.ErrConflict)
		s.ends = map[progress.Key]int64{}
		_, err = s.table.Commit(w.ctx, s.prepare(part{"us", 0, 3, 1}))
		require.NoError(t, err)
	})
	t.Run("altered key", func(t *testing.T) {
		w := newWorld(t, "pk")
		s := w.session("loader")
		req := s.prepare(part{"eu", 0, 3, 1})
		w.alter(func(s *schema.Schema) { s.PrimaryKeys = []string{"region"} })
		_, err := s.table.Commit(w.ctx, req)
		require.Error(t, err)
	})
}

func (w *world) alter(edit func(*schema.Schema)) {
	old, err := w.diskTable().LatestSchema(w.ctx)
	require.NoError(w.t, err)
	s := *old
	s.ID++
	s.Options = clone(old.Options)
	edit(&s)
	require.NoError(w.t, w.disk.CreateIfAbsent(w.ctx, path.SchemaFile(root, "", s.ID), s.Marshal()))
}

func TestSnapshotNamesTheNewestSchema(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	w.alter(func(s *schema.Schema) {
		s.HighestFieldID++
		s.Fields = append(s.Fields[:len(s.Fields):len(s.Fields)], schema.Field{ID: s.HighestFieldID, Name: "note", Type: schema.Type{Kind: schema.VarChar, Length: 9, Nullable: true}})
	})
	r := s.commit(part{"eu", 0, 2, 1})
	require.EqualValues(t, 1, r.Snapshot.SchemaID)
}

func TestFieldsOfTheBaseAreCarriedForward(t *testing.T) {
	w := newWorld(t, "pk")
	base := w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 7, 0))
	watermark, next := int64(77), int64(5)
	base.Watermark, base.NextRowID, base.IndexManifest, base.Statistics = &watermark, &next, "index-manifest-1", "stat-1"
	base.TimeMillis = w.clock + 1_000_000
	require.NoError(t, w.disk.Overwrite(w.ctx, path.Snapshot(root, "", 1), base.Marshal()))
	s := w.session("loader")
	r := s.commit(part{"eu", 1, 2, 1})
	require.EqualValues(t, 77, *r.Snapshot.Watermark)
	require.EqualValues(t, 5, *r.Snapshot.NextRowID)
	require.Equal(t, "index-manifest-1", r.Snapshot.IndexManifest)
	require.Equal(t, "stat-1", r.Snapshot.Statistics)
	require.EqualValues(t, 9, r.Snapshot.TotalRecordCount)
	require.Equal(t, base.TimeMillis, r.Snapshot.TimeMillis, "time does not run backwards")
}

func TestManifestsAreMerged(t *testing.T) {
	w := newWorld(t, "pk", "manifest.merge-min-count", "4")
	s := w.session("loader")
	for i := range 9 {
		s.commit(part{"eu", i % 2, 1, 1})
		if i == 5 {
			w.compact("eu", 0)
			require.NoError(t, s.refresh())
		}
	}
	latest := w.latest()
	lists, err := s.table.manifestList(w.ctx, latest)
	require.NoError(t, err)
	require.Less(t, len(lists), 5)
	require.Len(t, w.liveNames(), 9-3+1)
	require.EqualValues(t, 9, latest.TotalRecordCount)
	require.EqualValues(t, 9, w.end("eu", 0)+w.end("eu", 1))
	w.requireNoLeftovers()
}

func TestMergeGroups(t *testing.T) {
	sizes := func(n ...int64) (list []manifest.ListEntry) {
		for _, s := range n {
			list = append(list, manifest.ListEntry{Size: s})
		}
		return list
	}
	cases := []struct {
		list []manifest.ListEntry
		want [][2]int
	}{
		{nil, nil},
		{sizes(1, 1), nil},
		{sizes(1, 1, 1), [][2]int{{0, 3}}},
		{sizes(10, 1, 1), nil},
		{sizes(10, 1, 1, 1), [][2]int{{1, 4}}},
		{sizes(6, 6, 1, 1), [][2]int{{0, 2}}},
		{sizes(1, 10, 1, 10, 20), [][2]int{{0, 2}, {2, 4}}},
	}
	for _, c := range cases {
		require.Equal(t, c.want, mergeGroups(c.list, 10, 3), fmt.Sprint(c.list))
	}
}

func TestRetriesAreBounded(t *testing.T) {
	w := newWorld(t, "pk", "commit.max-retries", "3", "commit.min-retry-wait", "10 ms", "commit.max-retry-wait", "30 ms")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.CreateIfAbsent {
			w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 1, 0))
		}
		return fault.Decision{}
	}})
	_, err := s.table.Commit(w.ctx, req)
	require.ErrorIs(t, err, errs.ErrConflict)
	require.ErrorContains(t, err, "4 attempts")
	require.Equal(t, []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond}, w.waits)
	w.requireNoLeftovers()
	w.io.SetPlan(fault.Plan{})
	r, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.False(t, r.AlreadyThere)
}

func TestTimeoutEndsTheRetries(t *testing.T) {
	w := newWorld(t, "pk", "commit.timeout", "1 s")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.CreateIfAbsent {
			w.clock += 600
			w.foreign(manifest.KindAppend, nil)
		}
		return fault.Decision{}
	}})
	_, err := s.table.Commit(w.ctx, req)
	require.ErrorIs(t, err, errs.ErrConflict)
	require.Len(t, w.waits, 1)
}

func TestPreparedFileThatDisappearedIsAConflict(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	require.NoError(t, w.disk.Delete(w.ctx, s.table.mustPath(t, req)))
	_, err := s.table.Commit(w.ctx, req)
	require.ErrorIs(t, err, errs.ErrConflict)
	require.ErrorContains(t, err, "disappeared")
}

func TestDeleteFiles(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 2}, part{"us", 1, 1, 1})
	require.NoError(t, s.table.DeleteFiles(w.ctx, req.Messages))
	_, err := w.disk.Stat(w.ctx, s.table.mustPath(t, req))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.table.DeleteFiles(w.ctx, req.Messages), "twice is fine")
}

func TestHintsNeverFailACommit(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	w.io.SetPlan(fault.Plan{Rules: []fault.Rule{{
		Kinds: []fault.Kind{fault.Overwrite}, Match: func(n string) bool { return !strings.Contains(n, "consumer") },
		Onward: true, Do: fault.Decision{Action: fault.Fail},
	}}})
	r, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.Len(t, r.Warnings, 2)
	w.io.SetPlan(fault.Plan{})
	require.EqualValues(t, 1, w.latest().ID)
}

func TestCancelledContext(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	_, err := s.table.Commit(ctx, req)
	require.True(t, errors.Is(err, context.Canceled), err)
	require.Nil(t, w.latest())
}
