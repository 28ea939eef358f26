package snapshot

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
)

// The two chains: a foreign commit lands between plan and publish.
func TestForeignCommitsBetweenPlanAndPublish(t *testing.T) {
	cases := map[string]struct {
		foreign func(w *world)
		rows    int64
	}{
		"append":  {func(w *world) { w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 7, 50)) }, 3 + 7 + 2},
		"compact": {func(w *world) { w.compact("eu", 0) }, 3 + 2},
		"analyze": {func(w *world) { w.foreign(manifest.KindAnalyze, nil) }, 3 + 2},
		"several": {func(w *world) {
			w.foreign(manifest.KindAppend, nil, w.add("eu", 1, 7, 50))
			w.compact("eu", 0)
		}, 3 + 7 + 2},
		"overwrite of another partition": {func(w *world) {
			w.foreign(manifest.KindOverwrite, nil, w.add("us", 0, 4, 0))
		}, 3 + 4 + 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "pk")
			s := w.session("loader")
			s.commit(part{"eu", 0, 3, 1})
			req := s.prepare(part{"eu", 0, 2, 1})
			w.before(fault.CreateIfAbsent, "snapshot-2", func() { c.foreign(w) })
			r, err := s.table.Commit(w.ctx, req)
			require.NoError(t, err)
			require.Equal(t, 2, r.Attempts)
			require.Len(t, w.waits, 1)
			require.Equal(t, c.rows, r.Snapshot.TotalRecordCount)
			require.EqualValues(t, 2, r.Snapshot.DeltaRecordCount)
			require.EqualValues(t, 5, w.end("eu", 0))
			require.Subset(t, w.liveNames(), names(req))
			var rows int64
			for _, b := range w.files() {
				for _, f := range b.Files {
					rows += f.Rows
				}
			}
			require.Equal(t, c.rows, rows)
			w.requireNoLeftovers()
		})
	}
}

// requireNoLeftovers checks that every manifest, list and progress file belongs
// to a snapshot of the table.
func (w *world) requireNoLeftovers() {
	w.t.Helper()
	used := map[string]bool{}
	table := w.diskTable()
	ids, err := table.Snapshots(w.ctx)
	require.NoError(w.t, err)
	for _, id := range ids {
		s, err := table.Snapshot(w.ctx, id)
		require.NoError(w.t, err)
		lists, err := table.manifestList(w.ctx, s)
		require.NoError(w.t, err)
		for _, e := range lists {
			used[e.Name] = true
		}
		used[s.BaseManifestList], used[s.DeltaManifestList] = true, true
		used[fs.Base(s.Properties[manifest.PropertyOffsets])] = true
	}
	for _, dir := range []string{"manifest", "metadata"} {
		entries, err := w.disk.List(w.ctx, fs.Join(root, dir))
		require.NoError(w.t, err)
		for _, e := range entries {
			require.True(w.t, used[e.Name], "%s/%s belongs to no snapshot", dir, e.Name)
		}
	}
}

// Rules 1 to 4 and 7 of the model, and the fence, as a commit meets them.
func TestCommitAppliesTheRulesOfAdoption(t *testing.T) {
	cases := map[string]struct {
		happens func(w *world, s *session)
		want    error
		says    string
	}{
		"overwrite of everything": {func(w *world, _ *session) {
			w.foreign(manifest.KindOverwrite, nil, append(w.remove(all), w.add("us", 0, 1, 0))...)
		}, errs.ErrPoisoned, "overwrote"},
		"overwrite of the touched partition": {func(w *world, _ *session) {
			w.foreign(manifest.KindOverwrite, nil, w.remove(inRegion("eu"))...)
		}, errs.ErrPoisoned, "overwrote"},
		"overwrite that carries the old progress along": {func(w *world, s *session) {
			w.foreign(manifest.KindOverwrite, s.adopted.Properties, w.remove(inRegion("eu"))...)
		}, errs.ErrPoisoned, "overwrote"},
		"rollback": {func(w *world, _ *session) { w.rollback(1) }, errs.ErrPoisoned, "rolled back"},
		"rollback and new snapshots of the same ids": {func(w *world, _ *session) {
			w.rollback(1)
			w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 1, 9))
			w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 1, 9))
		}, errs.ErrPoisoned, "replaced under its id"},
		"overwriting rename": {func(w *world, _ *session) { w.clobber(2) }, errs.ErrPoisoned, "replaced under its id"},
		"a zombie publishes the same rows": {func(w *world, s *session) {
			zombie := *s
			zombie.id, zombie.table = w.uuid(), w.table()
			zombie.ends = map[progress.Key]int64{key("eu", 0): 3, key("us", 1): 4}
			_, err := zombie.table.Commit(w.ctx, zombie.prepare(part{"eu", 0, 2, 1}))
			require.NoError(w.t, err)
		}, errs.ErrFenced, "moved progress of partition region=eu bucket 0 from 3 to 5"},
		"a zombie publishes in another active bucket": {func(w *world, s *session) {
			zombie := *s
			zombie.id, zombie.table = w.uuid(), w.table()
			zombie.ends = map[progress.Key]int64{key("us", 1): 4}
			_, err := zombie.table.Commit(w.ctx, zombie.prepare(part{"us", 1, 2, 1}))
			require.NoError(w.t, err)
		}, errs.ErrFenced, "moved progress of partition region=us bucket 1 from 4 to 6"},
		"progress was edited backwards": {func(w *world, s *session) {
			props := map[string]string{manifest.PropertyOffsets: w.offsets("eu", 0, 1, "us", 1, 4)}
			w.foreign(manifest.KindAppend, props)
		}, errs.ErrPoisoned, "back from 3 to 1"},
	}
	for name, c := range cases {
		for _, when := range []string{"before the plan", "before the publication"} {
			t.Run(name+" "+when, func(t *testing.T) {
				w := newWorld(t, "pk")
				s := w.session("loader")
				s.commit(part{"us", 1, 4, 1})
				s.commit(part{"eu", 0, 3, 1})
				req := s.prepare(part{"eu", 0, 2, 1})
				if when == "before the plan" {
					c.happens(w, s)
				} else {
					w.before(fault.CreateIfAbsent, "snapshot-3", func() { w.io.SetPlan(fault.Plan{}); c.happens(w, s) })
				}
				before := len(w.liveNames())
				_, err := s.table.Commit(w.ctx, req)
				if when != "before the plan" && (name == "rollback" || name == "overwriting rename") {
					// Only the next look can see that the base is not there any more.
					require.NoError(t, err)
					require.ErrorIs(t, s.refresh(), errs.ErrPoisoned)
					return
				}
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "not published")
				if when == "before the plan" {
					require.Len(t, w.liveNames(), before)
				}
				require.NotSubset(t, w.liveNames(), names(req))
				_, err = w.disk.Stat(w.ctx, s.table.mustPath(t, req))
				require.NoError(t, err, "prepared data files stay")
			})
		}
	}
}

func (t *Table) mustPath(test *testing.T, req CommitRequest) string {
	s, err := t.LatestSchema(context.Background())
	require.NoError(test, err)
	text, err := newNaming(s)
	require.NoError(test, err)
	folds, err := foldMessages(req.Messages, req.BucketCount, text)
	require.NoError(test, err)
	files, err := dataFiles(t.Root, req.Options, folds)
	require.NoError(test, err)
	return files[0]
}

// offsets writes an offsets file as another engine that knows the format would.
func (w *world) offsets(list ...any) string {
	var o *progress.Offsets
	for i := 0; i < len(list); i += 3 {
		var err error
		o, err = o.With([]path.KV{{Key: "region", Value: list[i].(string)}}, list[i+1].(int), int64(list[i+2].(int)))
		require.NoError(w.t, err)
	}
	name := progress.OffsetsFile(root, "", w.uuid())
	data, err := o.Marshal()
	require.NoError(w.t, err)
	w.put(name, data)
	return name
}

func TestOnlyActiveBucketsCount(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"us", 1, 4, 1}, part{"eu", 0, 3, 1})
	req := s.prepare(part{"eu", 0, 2, 1})
	req.Active = []progress.Key{key("eu", 0)}
	w.foreign(manifest.KindOverwrite, nil, w.remove(inRegion("us"))...)
	_, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.EqualValues(t, 5, w.end("eu", 0))
	require.EqualValues(t, 0, w.end("us", 1), "a dropped partition begins at 0")
}

func TestPublishedSnapshotsAreComparedAtTheNextCommit(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	first, second := s.prepare(part{"eu", 0, 3, 1}), s.prepare(part{"eu", 1, 2, 1})
	r, err := s.table.Commit(w.ctx, first)
	require.NoError(t, err)
	w.clobber(1)
	second.Published = []*manifest.Snapshot{r.Snapshot}
	_, err = s.table.Commit(w.ctx, second)
	require.ErrorIs(t, err, errs.ErrPoisoned)
	require.ErrorIs(t, s.table.Verify(w.ctx, r.Snapshot), errs.ErrPoisoned)
}
