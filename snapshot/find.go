package snapshot

import (
	"context"
	"errors"
	"reflect"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
)

// Same reports whether two readings of a snapshot file have the same content.
func Same(a, b *manifest.Snapshot) bool {
	return a == b || a != nil && b != nil && reflect.DeepEqual(*a, *b)
}

// Verify compares a snapshot in memory with what is stored under its id now.
// Another engine that publishes by an overwriting rename may have replaced it,
// or it was rolled back: errs.ErrPoisoned. Where newer snapshots exist and this
// one is gone it expired, errs.ErrSnapshotExpired, and nothing can be said.
func (t *Table) Verify(ctx context.Context, snap *manifest.Snapshot) error {
	stored, err := t.Snapshot(ctx, snap.ID)
	switch {
	case err == nil && Same(stored, snap):
		return nil
	case err == nil:
		return t.replaced(snap, stored)
	case errors.Is(err, fs.ErrNotExist):
		return errs.Wrap(errs.ErrPoisoned, "snapshot %d of table %s was rolled back", snap.ID, t.Root)
	case errors.Is(err, errs.ErrCorrupt):
		return errs.Wrap(errs.ErrPoisoned, "snapshot %d of table %s was replaced by something unreadable: %v", snap.ID, t.Root, err)
	}
	return err
}

// find looks for the snapshot that holds exactly the files of c, newest first.
// User and identifier alone prove nothing: an earlier session of the same user
// counts on from the same numbers and replays equal ranges.
func (t *Table) find(ctx context.Context, c *committer) (found, latest *manifest.Snapshot, err error) {
	latest, err = t.Latest(ctx, idOf(c.req.Adopted))
	if err != nil {
		return nil, nil, err
	}
	for id := idOf(latest); id > 0; id-- {
		s := latest
		if id != latest.ID {
			s, err = t.readSnapshot(ctx, id)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, latest, nil
			}
			if err != nil {
				return nil, nil, err
			}
		}
		if s.CommitUser != c.req.User || s.CommitIdentifier != c.req.Identifier || s.CommitKind != manifest.KindAppend {
			continue
		}
		ours, err := t.holds(ctx, c, s)
		if err != nil || ours {
			return s, latest, err
		}
	}
	return nil, latest, nil
}

// holds reports whether s added all files of c. A commit without files is known
// by its session and by the ends of its ranges, if it has any.
func (t *Table) holds(ctx context.Context, c *committer, s *manifest.Snapshot) (bool, error) {
	want := map[string]bool{}
	for i := range c.folds {
		for k := range c.folds[i].files {
			want[c.folds[i].files[k].Name] = true
		}
	}
	if len(want) == 0 {
		if c.session == "" || sessionOf(s) != c.session {
			return false, nil
		}
		p, err := t.Progress(ctx, s)
		return err == nil && (len(c.folds) == 0 || cover(c.folds, p) == covered), err
	}
	d, err := t.delta(ctx, s)
	if err != nil {
		return false, err
	}
	for i := range d.entries {
		if d.entries[i].Kind == manifest.Add {
			delete(want, d.entries[i].File.Name)
		}
	}
	return len(want) == 0, nil
}
