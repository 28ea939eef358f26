package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
)

// probesMax bounds the walk forward from a hint before the directory is listed.
const probesMax = 32

// latestTries bounds how often a newest snapshot may vanish between being found
// and being read.
const latestTries = 8

// Latest returns the newest snapshot, nil when the table has none. It walks
// forward from the LATEST hint or from atLeast, whichever is higher, and lists
// the directory when neither exists; hints may be stale, absent or garbage. The
// answer can be older than atLeast: then snapshots were rolled back.
func (t *Table) Latest(ctx context.Context, atLeast int64) (*manifest.Snapshot, error) {
	for try := 1; ; try++ {
		id, err := t.latestID(ctx, atLeast)
		if err != nil || id == 0 {
			return nil, err
		}
		s, err := t.readSnapshot(ctx, id)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || try == latestTries {
			return s, err
		}
	}
}

func (t *Table) latestID(ctx context.Context, atLeast int64) (int64, error) {
	start := max(t.hint(ctx, path.LatestHint(t.Root, t.Branch)), atLeast)
	if start > 0 {
		id, more, err := t.probe(ctx, start)
		if err != nil {
			return 0, err
		}
		if id > 0 && !more {
			return id, nil
		}
	}
	ids, err := t.Snapshots(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	// A listing may lag behind; one more walk forward costs one look-up.
	top := ids[len(ids)-1]
	for more := true; more; {
		var id int64
		if id, more, err = t.probe(ctx, top); err != nil {
			return 0, err
		}
		if id == 0 {
			return top, nil // vanished since the listing: the caller's read decides
		}
		top = id
	}
	return top, nil
}

// probe walks forward from start while the next id exists. 0: start itself does
// not exist. more: it stopped at its limit.
func (t *Table) probe(ctx context.Context, start int64) (id int64, more bool, err error) {
	for id = start - 1; id < start+probesMax; id++ {
		ok, err := t.exists(ctx, path.Snapshot(t.Root, t.Branch, id+1))
		if err != nil {
			return 0, false, err
		}
		if !ok {
			if id < start {
				return 0, false, nil
			}
			return id, false, nil
		}
	}
	return id, true, nil
}

func (t *Table) exists(ctx context.Context, name string) (bool, error) {
	_, err := t.IO.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// hint reads a hint file; anything that is not a positive number is 0. Hints are
// never needed for a right answer, so errors are not reported.
func (t *Table) hint(ctx context.Context, name string) int64 {
	data, err := fs.ReadAll(ctx, t.IO, name, hintBytesMax)
	if err != nil {
		return 0
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || id < 0 || id > maxID {
		return 0
	}
	return id
}

// maxID keeps id arithmetic away from overflow.
const maxID = 1 << 62

// Snapshots lists the ids of the retained snapshots, ascending.
func (t *Table) Snapshots(ctx context.Context) ([]int64, error) {
	ids, err := t.numbered(ctx, path.SnapshotDir(t.Root, t.Branch), path.SnapshotID)
	if err != nil {
		return nil, fmt.Errorf("snapshots of table %s: %w", t.Root, err)
	}
	if len(ids) > 0 && ids[0] == 0 {
		ids = ids[1:]
	}
	return ids, nil
}

// Earliest returns the oldest retained snapshot id, 0 when there is none.
func (t *Table) Earliest(ctx context.Context) (int64, error) {
	ids, err := t.Snapshots(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}

// numbered lists the ids of the files of dir, ascending. A missing directory is
// empty.
func (t *Table) numbered(ctx context.Context, dir string, idOf func(base string) (int64, bool)) ([]int64, error) {
	entries, err := t.IO.List(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, e := range entries {
		if id, ok := idOf(e.Name); ok && !e.IsDir && id <= maxID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Snapshot reads snapshot id. A missing one below the newest is
// errs.ErrSnapshotExpired, any other missing one matches fs.ErrNotExist.
func (t *Table) Snapshot(ctx context.Context, id int64) (*manifest.Snapshot, error) {
	s, err := t.readSnapshot(ctx, id)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	latest, listErr := t.latestID(ctx, 0)
	if listErr == nil && id > 0 && id < latest {
		return nil, errs.Wrap(errs.ErrSnapshotExpired, "snapshot %d of table %s is gone, the newest is %d", id, t.Root, latest)
	}
	if listErr == nil && latest > 0 {
		return nil, fmt.Errorf("table %s has no snapshot %d, the newest is %d: %w", t.Root, id, latest, fs.ErrNotExist)
	}
	return nil, err
}

func (t *Table) readSnapshot(ctx context.Context, id int64) (*manifest.Snapshot, error) {
	name := path.Snapshot(t.Root, t.Branch, id)
	s, err := t.readSnapshotFile(ctx, name)
	if err != nil {
		return nil, err
	}
	if s.ID != id {
		return nil, errs.Corrupt(name, -1, "the file says that it is snapshot %d", s.ID)
	}
	return s, nil
}

func (t *Table) readSnapshotFile(ctx context.Context, name string) (*manifest.Snapshot, error) {
	data, err := fs.ReadAll(ctx, t.IO, name, snapshotBytesMax)
	if err != nil {
		return nil, err
	}
	return manifest.ParseSnapshot(data, name)
}
