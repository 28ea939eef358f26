package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Env is everything from outside that a plan or a commit needs besides storage.
// All four are required for a table that commits; reading needs none of them.
type Env struct {
	// Now is the wall clock in milliseconds since the epoch.
	Now func() int64
	// LocalMillis is the local wall clock encoded as if it were UTC, as the
	// format stores creation times of data files.
	LocalMillis func() int64
	// UUID returns a fresh lower-case random UUID.
	UUID func() string
	// Wait returns after d, or earlier with the context's error.
	Wait func(ctx context.Context, d time.Duration) error
}

// Table is the committed side of one table or of one of its branches. It holds
// no session state; its caches are of immutable files only. It is safe for
// concurrent use, except that commits of one session must not overlap.
type Table struct {
	IO     fs.FileIO
	Root   string
	Branch string // "" = main
	Env    Env
	// External maps the recorded URI of a data file outside the table to a name
	// that IO understands. nil: such files are refused by name.
	External func(uri string) (string, error)

	schemas   cache[int64, *schema.Schema]
	manifests cache[string, []manifest.Entry]
	loaded    cache[string, *loadedProgress]
	session   atomic.Pointer[string]
	summary   atomic.Pointer[summary]
	protected atomic.Pointer[protection]
	unsynced  cache[string, bool] // data files whose sync failed once
}

// Size limits of the small files, checked before anything is allocated.
const (
	schemaBytesMax   = 64 << 20
	snapshotBytesMax = 16 << 20
	manifestBytesMax = 1 << 30
	hintBytesMax     = 4 << 10
)

// Schema returns schema version id. It is read once.
func (t *Table) Schema(ctx context.Context, id int64) (*schema.Schema, error) {
	if s, ok := t.schemas.get(id); ok {
		return s, nil
	}
	name := path.SchemaFile(t.Root, t.Branch, id)
	data, err := fs.ReadAll(ctx, t.IO, name, schemaBytesMax)
	if err != nil {
		return nil, fmt.Errorf("schema %d of table %s: %w", id, t.Root, err)
	}
	s, err := schema.Parse(data, name)
	if err != nil {
		return nil, err
	}
	if s.ID != id {
		return nil, errs.Corrupt(name, -1, "the file says that it is schema %d", s.ID)
	}
	t.schemas.put(id, s, 1)
	return s, nil
}

// LatestSchema returns the schema with the highest id. A directory without one
// is no table: the error matches fs.ErrNotExist.
func (t *Table) LatestSchema(ctx context.Context) (*schema.Schema, error) {
	ids, err := t.numbered(ctx, path.SchemaDir(t.Root, t.Branch), path.SchemaID)
	if err != nil {
		return nil, fmt.Errorf("schemas of table %s: %w", t.Root, err)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("there is no table, %s holds no schema: %w", path.SchemaDir(t.Root, t.Branch), fs.ErrNotExist)
	}
	return t.Schema(ctx, ids[len(ids)-1])
}

// CreateTable makes the table by publishing s as its first schema. Exactly one
// of several creators wins, the others get fs.ErrExist. After a doubtful error
// the stored schema decides.
func (t *Table) CreateTable(ctx context.Context, s *schema.Schema) error {
	if s.ID != 0 {
		return errs.Invalid("the first schema of table %s has id %d, not 0", t.Root, s.ID)
	}
	name := path.SchemaFile(t.Root, t.Branch, 0)
	content := s.Marshal()
	err := t.IO.CreateIfAbsent(ctx, name, content)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("table %s exists already, nothing was changed: %w", t.Root, fs.ErrExist)
	}
	data, readErr := fs.ReadAll(ctx, t.IO, name, schemaBytesMax)
	switch {
	case readErr == nil && string(data) == string(content):
		return nil
	case readErr == nil:
		return fmt.Errorf("table %s exists already, nothing was changed: %w", t.Root, fs.ErrExist)
	case fs.IsRefused(err) && fs.IsRefused(readErr):
		return fmt.Errorf("table %s was not created: %w", t.Root, err)
	}
	return errs.Wrap(errs.ErrOutcomeUnknown, "creating table %s: %v", t.Root, err)
}

// branchRoot holds snapshot/, schema/, tag/, consumer/ and metadata/.
func (t *Table) branchRoot() string { return path.Branch(t.Root, t.Branch) }

// partitionTypes returns the types of the partition keys in their order.
func partitionTypes(s *schema.Schema) []schema.Type {
	at := s.PartitionIndexes()
	types := make([]schema.Type, len(at))
	for i, f := range at {
		types[i] = s.Fields[f].Type
	}
	return types
}

func keyText(k progress.Key) string {
	if k.Partition == "" {
		return fmt.Sprintf("bucket %d", k.Bucket)
	}
	return fmt.Sprintf("partition %s bucket %d", k.Partition, k.Bucket)
}
