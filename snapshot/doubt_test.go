package snapshot

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/fs/mem"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
)

func onSnapshot(n int64, d fault.Decision, kinds ...fault.Kind) fault.Rule {
	return fault.Rule{Kinds: kinds, Match: func(name string) bool { return name == path.Snapshot(root, "", n) }, Do: d}
}

func TestLostReplyOfThePublication(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	w.io.SetPlan(fault.Plan{Rules: []fault.Rule{onSnapshot(1, fault.Decision{Action: fault.FailAfter}, fault.CreateIfAbsent)}})
	r, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.EqualValues(t, 1, r.SnapshotID)
	require.False(t, r.AlreadyThere)
	require.Len(t, w.io.Injected(), 1)
}

// The store answers a create with "exists" although it was ours that it stored.
func TestExistsMayBeOurOwn(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	w.io.SetPlan(fault.Plan{Rules: []fault.Rule{onSnapshot(1, fault.Decision{Action: fault.FailAfter, Err: fs.ErrExist}, fault.CreateIfAbsent)}})
	r, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.Equal(t, 1, r.Attempts)
	w.requireNoLeftovers()
}

// Rule 8: what a doubtful attempt wrote stays, because it may still land.
func TestPublicationThatMayLandLater(t *testing.T) {
	for _, lands := range []string{"before the next try", "never", "during the next try"} {
		t.Run(lands, func(t *testing.T) {
			w := newWorld(t, "pk")
			s := w.session("loader")
			s.commit(part{"eu", 0, 3, 1})
			req := s.prepare(part{"eu", 0, 2, 1})
			var late []byte
			w.io.SetPlan(fault.Plan{Rules: []fault.Rule{onSnapshot(2, fault.Decision{Action: fault.Fail}, fault.CreateIfAbsent)}})
			before := w.manifests()
			_, err := s.table.Commit(w.ctx, req)
			require.ErrorIs(t, err, errs.ErrOutcomeUnknown)
			require.Greater(t, len(w.manifests()), len(before), "the files of the attempt are kept")
			late = w.lateSnapshot(s, req)
			put := func() { require.NoError(t, w.disk.CreateIfAbsent(w.ctx, path.Snapshot(root, "", 2), late)) }
			w.io.SetPlan(fault.Plan{})
			switch lands {
			case "before the next try":
				put()
			case "during the next try":
				w.before(fault.CreateIfAbsent, "snapshot-2", put)
			}
			r, err := s.table.Commit(w.ctx, req)
			require.NoError(t, err)
			require.Equal(t, lands != "never", r.AlreadyThere)
			require.EqualValues(t, 2, r.SnapshotID)
			require.EqualValues(t, 5, w.end("eu", 0))
			require.Len(t, w.liveNames(), 2)
		})
	}
}

func (w *world) manifests() []fs.Info {
	list, err := w.disk.List(w.ctx, fs.Join(root, "manifest"))
	require.NoError(w.t, err)
	return list
}

// lateSnapshot rebuilds the content of the failed PUT from the files that the
// attempt left: the newest lists and the newest offsets file.
func (w *world) lateSnapshot(s *session, req CommitRequest) []byte {
	var lists []string
	for _, m := range w.manifests() {
		if len(m.Name) > 13 && m.Name[:13] == "manifest-list" {
			lists = append(lists, m.Name)
		}
	}
	n := len(lists) // names carry a growing number
	uuid := lists[n-1][len("manifest-list-") : len(lists[n-1])-2]
	snap := *s.adopted
	snap.ID, snap.UUID, snap.CommitIdentifier = 2, uuid, req.Identifier
	snap.BaseManifestList, snap.DeltaManifestList = lists[n-2], lists[n-1]
	snap.BaseManifestListSize, snap.DeltaManifestListSize = nil, nil
	snap.Properties = map[string]string{manifest.PropertyOffsets: root + "/metadata/" + uuid + ".offsets"}
	return snap.Marshal()
}

func TestOutcomeStaysUnknownWhileNothingCanBeRead(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	req := s.prepare(part{"eu", 0, 3, 1})
	w.io.SetPlan(fault.Plan{Rules: []fault.Rule{
		onSnapshot(1, fault.Decision{Action: fault.FailAfter}, fault.CreateIfAbsent),
		onSnapshot(1, fault.Decision{Action: fault.Fail}, fault.Open),
	}})
	_, err := s.table.Commit(w.ctx, req)
	require.ErrorIs(t, err, errs.ErrOutcomeUnknown)
	w.io.SetPlan(fault.Plan{})
	r, err := s.table.Commit(w.ctx, req)
	require.NoError(t, err)
	require.True(t, r.AlreadyThere)
}

// After a doubtful publication that did happen, whatever comes on top, asking
// again gives the truth.
func TestDoubtIsResolvedUnderForeignCommits(t *testing.T) {
	cases := map[string]func(w *world){
		"append":    func(w *world) { w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 1, 9)) },
		"compact":   func(w *world) { w.compact("eu", 0) },
		"overwrite": func(w *world) { w.foreign(manifest.KindOverwrite, nil, w.remove(all)...) },
	}
	for name, happens := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "pk")
			s := w.session("loader")
			req := s.prepare(part{"eu", 0, 3, 1})
			w.io.SetPlan(fault.Plan{Rules: []fault.Rule{
				onSnapshot(1, fault.Decision{Action: fault.FailAfter}, fault.CreateIfAbsent),
				onSnapshot(1, fault.Decision{Action: fault.Fail}, fault.Open),
			}})
			_, err := s.table.Commit(w.ctx, req)
			require.ErrorIs(t, err, errs.ErrOutcomeUnknown)
			w.io.SetPlan(fault.Plan{})
			happens(w)
			r, err := s.table.Commit(w.ctx, req)
			require.NoError(t, err)
			require.True(t, r.AlreadyThere)
			require.EqualValues(t, 1, r.SnapshotID)
			require.EqualValues(t, 2, w.latest().ID)
		})
	}
}

func TestFailedSyncGivesThePreparedFilesUp(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	s.commit(part{"eu", 0, 3, 1})
	req := s.prepare(part{"eu", 0, 3, 1})
	w.io.SetPlan(fault.Plan{Rules: []fault.Rule{{Kinds: []fault.Kind{fault.Sync}, Do: fault.Decision{Action: fault.Fail}}}})
	_, err := s.table.Commit(w.ctx, req)
	require.ErrorIs(t, err, errs.ErrPoisoned)
	require.ErrorIs(t, err, fault.ErrInjected)
	w.requireNoLeftovers()
	w.io.SetPlan(fault.Plan{})
	_, err = s.table.Commit(w.ctx, req)
	require.ErrorIs(t, err, errs.ErrPoisoned, "a second sync that claims success is not believed")
}

// script is a session's life that an error may strike anywhere.
func script(w *world, s *session) error {
	for i := range 3 {
		req := s.prepare(part{"eu", i % 2, 2, 1}, part{"us", 0, 1, 1})
		if _, err := s.table.Commit(w.ctx, req); err != nil {
			return fmt.Errorf("commit %d: %w", i+1, &failed{req, err})
		}
		if err := s.refresh(); err != nil {
			return fmt.Errorf("refresh %d: %w", i+1, err)
		}
	}
	return nil
}

type failed struct {
	req CommitRequest
	err error
}

func (f *failed) Error() string { return f.err.Error() }
func (f *failed) Unwrap() error { return f.err }

// An error at every index, before and after its effect, once and from then on:
// the table stays whole, what was reported is true, and committing the same value
// again settles it.
func TestErrorAtEveryIndex(t *testing.T) {
	plans := map[string]func(int) fault.Plan{"once": fault.FailOnce, "lost reply": fault.LostReply, "from then on": fault.FailFrom, "no space": fault.NoSpaceFrom, "short": fault.ShortOnce}
	for name, plan := range plans {
		t.Run(name, func(t *testing.T) {
			clean := newWorld(t, "append")
			clean.foreign(manifest.KindAppend, nil, clean.add("eu", 0, 5, 0))
			s := clean.session("loader")
			start := clean.io.Count()
			require.NoError(t, script(clean, s))
			total := clean.io.Count() - start
			require.Greater(t, total, 60)
			settled := 0
			for k := range total {
				settled += strike(t, plan(k), fmt.Sprintf("%s at %d", name, k))
			}
			require.Positive(t, settled)
		})
	}
}

func strike(t *testing.T, plan fault.Plan, name string) (settled int) {
	w := newWorld(t, "append")
	w.foreign(manifest.KindAppend, nil, w.add("eu", 0, 5, 0))
	s := w.session("loader")
	w.io.SetPlan(plan)
	err := script(w, s)
	w.io.SetPlan(fault.Plan{})
	var f *failed
	if errors.As(err, &f) {
		there := map[string]bool{}
		for _, n := range w.liveNames() {
			there[n] = true
		}
		published := there[names(f.req)[0]]
		if !errors.Is(err, errs.ErrOutcomeUnknown) {
			require.False(t, published, "%s: %v", name, err)
			w.requireWhole()
		}
		if errors.Is(err, errs.ErrPoisoned) {
			_, again := s.table.Commit(w.ctx, f.req)
			require.ErrorIs(t, again, errs.ErrPoisoned, name)
			return 0
		}
		r, again := s.table.Commit(w.ctx, f.req)
		require.NoError(t, again, "%s: %v", name, err)
		require.Equal(t, published, r.AlreadyThere, name)
		settled = 1
	}
	w.requireWhole()
	seen := map[string]bool{}
	for _, n := range w.liveNames() {
		require.False(t, seen[n], name)
		seen[n] = true
	}
	return settled
}

// requireWhole reads everything that every snapshot refers to.
func (w *world) requireWhole() {
	w.t.Helper()
	table := w.diskTable()
	ids, err := table.Snapshots(w.ctx)
	require.NoError(w.t, err)
	for _, id := range ids {
		s, err := table.Snapshot(w.ctx, id)
		require.NoError(w.t, err)
		files, err := table.Files(w.ctx, s, Filter{})
		require.NoError(w.t, err)
		var rows int64
		for _, b := range files {
			for _, f := range b.Files {
				name, err := table.DataPath(b, f)
				require.NoError(w.t, err)
				_, err = w.disk.Stat(w.ctx, name)
				require.NoError(w.t, err)
				rows += f.Rows
			}
		}
		require.Equal(w.t, s.TotalRecordCount, rows)
		_, err = table.Progress(w.ctx, s)
		require.NoError(w.t, err)
	}
}

// A power loss at every operation: whatever the disk kept, the table that comes
// back is whole, and every commit that was acknowledged is in it.
func TestPowerLossAtEveryOperation(t *testing.T) {
	w := newWorld(t, "pk")
	s := w.session("loader")
	type clone struct {
		disk  *mem.FS
		acked int64
		what  string
	}
	var clones []clone
	var acked int64
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind.Mutates() {
			for _, keep := range []mem.Keep{mem.KeepNone, mem.KeepAll, mem.KeepFraction(uint64(op.Index), 50)} {
				clones = append(clones, clone{w.disk.CrashClone(keep), acked, op.String()})
			}
		}
		return fault.Decision{}
	}})
	for i := range 2 {
		r, err := s.table.Commit(w.ctx, s.prepare(part{"eu", i, 2, 1}))
		require.NoError(t, err)
		acked = r.SnapshotID
		require.NoError(t, s.refresh())
	}
	require.Greater(t, len(clones), 40)
	for _, c := range clones {
		after := *w
		after.disk = c.disk
		after.io = fault.Wrap(c.disk, fault.Plan{})
		after.requireWhole()
		latest := after.latest()
		require.GreaterOrEqual(t, idOf(latest), c.acked, c.what)
	}
}
