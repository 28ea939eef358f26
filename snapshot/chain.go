package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/progress"
)

// Chain is what happened to the table after a session adopted a snapshot: the
// snapshots (Adopted, Latest], oldest first, and the progress that holds at
// Latest. It is immutable.
type Chain struct {
	Adopted         *manifest.Snapshot // nil: the session began with an empty table
	AdoptedProgress *Progress
	Latest          *manifest.Snapshot // nil: the table has no snapshot
	Changes         []Change
	Progress        *Progress
	// MaxSeq holds, for each bucket that received files from somebody else, the
	// highest sequence number among them: watermarks rise to it on adoption.
	MaxSeq map[progress.Key]int64
}

// Change is one snapshot of a chain.
type Change struct {
	Snapshot *manifest.Snapshot
	Kind     string // commit kind
	// Session is the session that published the snapshot, "" for other engines.
	// Ours: it is that of the Table that was asked.
	Session string
	Ours    bool
	// Overwrites says what an OVERWRITE replaced; nil for other kinds.
	Overwrites *Overwrite
	// Moved lists the buckets whose progress changed with this snapshot, unless it
	// is ours.
	Moved map[progress.Key]Move
	// MaxSeq is the highest sequence number of the files added per bucket; nil for
	// our own snapshots.
	MaxSeq map[progress.Key]int64
}

// Move is a change of the committed end of one bucket; 0 stands for none.
type Move struct{ From, To int64 }

// Overwrite is the set of partitions that an OVERWRITE touched.
type Overwrite struct {
	All        bool            // no earlier file survived
	Partitions map[string]bool // by the text of their directory
}

// Touches reports whether rows of the bucket's partition may have been replaced.
func (o *Overwrite) Touches(k progress.Key) bool {
	return o != nil && (o.All || o.Partitions[k.Partition])
}

// Session names the session on whose behalf this handle follows and commits from
// now on. The name is stored in each snapshot that it publishes, which tells them
// from those of an earlier session of the same user.
func (t *Table) Session(id string) { t.session.Store(&id) }

func (t *Table) sessionID() string {
	if id := t.session.Load(); id != nil {
		return *id
	}
	return ""
}

// Follow reads what came after adopted, with the progress that held there. It
// fails with errs.ErrPoisoned when adopted is not in the table any more: rolled
// back, replaced under its id by another engine, or expired although its
// progress was needed. What the changes mean for a session is Chain.Check's
// answer.
func (t *Table) Follow(ctx context.Context, adopted *manifest.Snapshot, adoptedProgress *Progress) (*Chain, error) {
	for try := 1; ; try++ {
		c, err := t.follow(ctx, adopted, adoptedProgress)
		if err == nil || try == followTries || !errors.Is(err, errs.ErrSnapshotExpired) && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
}

// followTries bounds how often a snapshot may vanish under a walk before the
// walk is given up.
const followTries = 4

func (t *Table) follow(ctx context.Context, adopted *manifest.Snapshot, adoptedProgress *Progress) (*Chain, error) {
	if adoptedProgress == nil {
		adoptedProgress = &Progress{}
	}
	c := &Chain{Adopted: adopted, AdoptedProgress: adoptedProgress, Progress: adoptedProgress, MaxSeq: map[progress.Key]int64{}}
	var err error
	if c.Latest, err = t.Latest(ctx, idOf(adopted)); err != nil {
		return nil, err
	}
	if idOf(c.Latest) < idOf(adopted) {
		return nil, errs.Wrap(errs.ErrPoisoned, "table %s was rolled back: its newest snapshot is %d, snapshot %d was adopted", t.Root, idOf(c.Latest), idOf(adopted))
	}
	if c.Latest == nil {
		return c, nil
	}
	gone, err := t.checkAdopted(ctx, c)
	if err != nil {
		return nil, err
	}
	if gone {
		return c, t.jump(ctx, c)
	}
	for next := idOf(adopted) + 1; next <= c.Latest.ID; next++ {
		if err := t.step(ctx, c, next); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// checkAdopted compares the stored adopted snapshot with the one in memory.
// gone: it expired, and the session never relied on any progress, so nothing is
// lost by going on from the newest snapshot.
func (t *Table) checkAdopted(ctx context.Context, c *Chain) (gone bool, err error) {
	id := idOf(c.Adopted)
	if id == 0 {
		earliest, err := t.Earliest(ctx)
		return earliest > 1, err
	}
	if id == c.Latest.ID {
		if !Same(c.Adopted, c.Latest) {
			return false, t.replaced(c.Adopted, c.Latest)
		}
		return false, nil
	}
	stored, err := t.readSnapshot(ctx, id)
	switch {
	case err == nil && !Same(c.Adopted, stored):
		return false, t.replaced(c.Adopted, stored)
	case errors.Is(err, fs.ErrNotExist) && c.AdoptedProgress.Offsets.Len() == 0:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, errs.Wrap(errs.ErrPoisoned, "adopted snapshot %d of table %s is gone although its progress was still needed", id, t.Root)
	}
	return false, err
}

// jump replaces the walk when the adopted snapshot is gone: progress and
// sequence numbers are read from the newest one, and any progress found there
// was moved by somebody else.
func (t *Table) jump(ctx context.Context, c *Chain) error {
	after, err := t.Progress(ctx, c.Latest)
	if err != nil {
		return err
	}
	files, err := t.Files(ctx, c.Latest, Filter{})
	if err != nil {
		return err
	}
	ch := Change{Snapshot: c.Latest, Kind: c.Latest.CommitKind, Moved: diff(c.AdoptedProgress, after), MaxSeq: map[progress.Key]int64{}}
	for _, b := range files {
		for _, f := range b.Files {
			raise(ch.MaxSeq, progress.Key{Partition: b.PartitionText, Bucket: b.Bucket}, f.MaxSeq)
		}
	}
	c.Progress, c.MaxSeq, c.Changes = after, ch.MaxSeq, []Change{ch}
	return nil
}

// step appends the change that snapshot id made.
func (t *Table) step(ctx context.Context, c *Chain, id int64) error {
	s := c.Latest
	if id != s.ID {
		var err error
		if s, err = t.Snapshot(ctx, id); err != nil {
			return err
		}
	}
	ch := Change{Snapshot: s, Kind: s.CommitKind, Session: sessionOf(s)}
	ch.Ours = ch.Session != "" && ch.Session == t.sessionID()
	var d *delta
	if !ch.Ours || s.CommitKind == manifest.KindOverwrite {
		var err error
		if d, err = t.delta(ctx, s); err != nil {
			return err
		}
		ch.MaxSeq = d.maxSeq
		for k, v := range d.maxSeq {
			raise(c.MaxSeq, k, v)
		}
	}
	if s.CommitKind == manifest.KindOverwrite {
		var err error
		if ch.Overwrites, err = t.overwrite(ctx, s, d); err != nil {
			return err
		}
	}
	after, err := t.progressAfter(ctx, c.Progress, s, ch.Overwrites)
	if err != nil {
		return err
	}
	if !ch.Ours {
		ch.Moved = diff(c.Progress, after)
	}
	c.Progress = after
	c.Changes = append(c.Changes, ch)
	return nil
}

// Check applies the rules of adoption to the changes, for a commit, for a plan
// and before adopting alike. active says which buckets the session holds in
// memory; nil: all of them. Buckets in memory that have no progress yet are asked
// about with CheckOverwrites.
//
//	OVERWRITE touching an active bucket          errs.ErrPoisoned
//	progress of an active bucket moved forward   errs.ErrFenced
//	  by somebody else
//	progress of an active bucket went back       errs.ErrPoisoned
func (c *Chain) Check(active func(progress.Key) bool) error {
	if active == nil {
		active = func(progress.Key) bool { return true }
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Overwrites != nil {
			for k := range c.AdoptedProgress.Offsets.All() {
				if ch.Overwrites.Touches(k) && active(k) {
					return ch.check(k)
				}
			}
		}
		for _, k := range sortedKeys(ch.Moved) {
			if !active(k) {
				continue
			}
			if err := ch.check(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckOverwrites fails with errs.ErrPoisoned when an OVERWRITE touched one of
// the buckets, whether they have progress or not.
func (c *Chain) CheckOverwrites(keys []progress.Key) error {
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Overwrites == nil {
			continue
		}
		for _, k := range keys {
			if err := ch.check(k); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ch *Change) check(k progress.Key) error {
	by := func(sentinel error, what string, args ...any) error {
		return errs.Wrap(sentinel, "snapshot %d of user %q %s", ch.Snapshot.ID, ch.Snapshot.CommitUser, fmt.Sprintf(what, args...))
	}
	if ch.Overwrites.Touches(k) {
		return by(errs.ErrPoisoned, "overwrote %s: reopen and replay", keyText(k))
	}
	m, moved := ch.Moved[k]
	switch {
	case !moved:
		return nil
	case m.To < m.From:
		return by(errs.ErrPoisoned, "set progress of %s back from %d to %d: reopen and replay", keyText(k), m.From, m.To)
	default:
		return by(errs.ErrFenced, "moved progress of %s from %d to %d: another writer owns it", keyText(k), m.From, m.To)
	}
}

func (t *Table) replaced(was, is *manifest.Snapshot) error {
	return errs.Wrap(errs.ErrPoisoned, "snapshot %d of table %s was replaced under its id: it was committed by user %q as %d and is now by user %q as %d",
		was.ID, t.Root, was.CommitUser, was.CommitIdentifier, is.CommitUser, is.CommitIdentifier)
}

// diff lists the buckets whose end differs; a bucket without progress is at 0.
func diff(before, after *Progress) map[progress.Key]Move {
	if before == after || before.path != "" && before.path == after.path {
		return nil
	}
	moved := map[progress.Key]Move{}
	for k := range before.Offsets.All() {
		if from, to := before.End(k), after.End(k); from != to {
			moved[k] = Move{from, to}
		}
	}
	for k := range after.Offsets.All() {
		if from, to := before.End(k), after.End(k); from != to {
			moved[k] = Move{from, to}
		}
	}
	return moved
}

func raise(m map[progress.Key]int64, k progress.Key, v int64) {
	if old, ok := m[k]; !ok || v > old {
		m[k] = v
	}
}

func idOf(s *manifest.Snapshot) int64 {
	if s == nil {
		return 0
	}
	return s.ID
}

func sortedKeys[V any](m map[progress.Key]V) []progress.Key {
	return slices.SortedFunc(maps.Keys(m), compareKeys)
}
