package tideline

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/tideline-db/tideline/actors"
	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/paimon/schema"
	"github.com/tideline-db/tideline/snapshot"
)

// Table is an open handle on one Paimon table. Its methods may be called from
// any goroutine. Reading needs no session; the first Writer starts one, which
// lives until Close.
type Table struct {
	path      string
	options   Options
	committed *snapshot.Table
	schema    *schema.Schema // newest at open; a session finishes with it
	table     schema.Options
	runtime   actors.Runtime
	owned     bool // the runtime is of our own making, and Close ends it

	session  atomic.Pointer[actors.Session]
	starting chan struct{} // capacity 1: one goroutine starts or ends the session
	closed   atomic.Bool
	done     bool // closed to the end; held by starting
	auto     autoCommit
}

// Open opens an existing table. A table that uses what this engine would answer
// wrongly is refused by name with ErrUnsupported.
func Open(ctx context.Context, path string, o Options) (*Table, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t, err := newTable(path, o)
	if err != nil {
		return nil, err
	}
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// newTable makes the handle without touching storage.
func newTable(path string, o Options) (*Table, error) {
	if path == "" {
		return nil, errs.Invalid("the path of the table is empty")
	}
	runtime, owned := o.Runtime, false
	if runtime == nil {
		runtime, owned = actors.NewRuntime(nil), true
	}
	t := &Table{path: path, options: o, runtime: runtime, owned: owned, starting: make(chan struct{}, 1)}
	t.committed = &snapshot.Table{
		IO: o.IO, Root: fs.Join(path), Branch: o.Branch,
		Env:      snapshot.Env{Now: runtime.WallMillis, LocalMillis: runtime.LocalMillis, UUID: runtime.UUID, Wait: runtime.Wait},
		External: o.external,
	}
	t.auto.table, t.auto.left = t, make(chan struct{}, 1)
	return t, nil
}

// external maps the recorded URI of a data file by the longest prefix given.
func (o Options) external(uri string) (string, error) {
	from := ""
	for prefix := range o.MapPath {
		if strings.HasPrefix(uri, prefix) && len(prefix) > len(from) {
			from = prefix
		}
	}
	if from == "" {
		return "", errs.Unsupported("data file %s lies outside the table and no path mapping covers it", uri)
	}
	rest := strings.TrimPrefix(uri, from)
	for _, part := range strings.Split(rest, "/") {
		if part == ".." {
			return "", errs.Corrupt(uri, -1, "the path of an external data file climbs out of its folder")
		}
	}
	return o.MapPath[from] + rest, nil
}

// load reads the newest schema and refuses what cannot be read right.
func (t *Table) load(ctx context.Context) error {
	s, err := t.committed.LatestSchema(ctx)
	if err != nil {
		return fmt.Errorf("open table %s: %w", t.path, err)
	}
	o, err := schema.ParseOptions(s)
	if err != nil {
		return err
	}
	if err := o.CheckRead(s); err != nil {
		return err
	}
	t.schema, t.table = s, o
	if t.options.TicketTTL == 0 {
		t.options.TicketTTL = o.TicketTTL
	}
	if t.options.ReadBatchRows == 0 {
		t.options.ReadBatchRows = max(defaultReadBatchRows, o.ReadBatchSize)
	}
	return nil
}

// Schema is the schema this handle works with, the newest at open.
func (t *Table) Schema() *schema.Schema { return t.schema }

// Path is the path the table was opened with.
func (t *Table) Path() string { return t.path }

// Committed gives access to the committed side: snapshots, files, schemas.
func (t *Table) Committed() *snapshot.Table { return t.committed }

// BucketOffset is the committed end of one bucket. Partition holds the text of
// each partition value by its key.
type BucketOffset struct {
	Partition map[string]string
	Bucket    int
	Offset    int64
}

// Progress is what a snapshot says of the input it covers.
type Progress struct {
	Snapshot int64          // the snapshot asked, 0 when the table has none
	Offsets  []BucketOffset // committed end per bucket, sorted
	Position []byte         // the writer's opaque position; nil when there is none
	Found    bool           // false: no commit with progress is known
}

// Progress returns the recovery offsets and the position at a snapshot; id 0 is
// the latest one.
func (t *Table) Progress(ctx context.Context, id int64) (Progress, error) {
	var snap *manifest.Snapshot
	var err error
	if id > 0 {
		snap, err = t.committed.Snapshot(ctx, id)
	} else {
		snap, err = t.committed.Latest(ctx, 0)
	}
	if err != nil {
		return Progress{}, err
	}
	p, err := t.committed.Progress(ctx, snap)
	if err != nil {
		return Progress{}, err
	}
	out := Progress{Position: p.Position, Found: p.Found}
	if snap != nil {
		out.Snapshot = snap.ID
	}
	for _, e := range p.Offsets.All() {
		out.Offsets = append(out.Offsets, BucketOffset{Partition: partitionTexts(e.Partition), Bucket: e.Bucket, Offset: e.End})
	}
	return out, nil
}

// Snapshot returns the latest snapshot, nil when the table has none.
func (t *Table) Snapshot(ctx context.Context) (*manifest.Snapshot, error) {
	return t.committed.Latest(ctx, 0)
}

// start returns the session, starting it when there is none yet.
func (t *Table) start(ctx context.Context) (*actors.Session, error) {
	if s := t.session.Load(); s != nil {
		return s, nil
	}
	select {
	case t.starting <- struct{}{}:
		defer func() { <-t.starting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := t.session.Load(); s != nil {
		return s, nil
	}
	if t.closed.Load() {
		return nil, errs.Wrap(errs.ErrClosed, "table %s", t.path)
	}
	if err := t.writable(); err != nil {
		return nil, err
	}
	memory, err := bucket.NewTable(t.schema, t.table)
	if err != nil {
		return nil, err
	}
	t.committed.Session(t.runtime.UUID())
	recovery, err := t.recovery()
	if err != nil {
		return nil, err
	}
	settings := actors.Settings{
		CommitUser: t.options.CommitUser, MemoryBytesMax: t.options.MemoryBytesMax,
		TicketTTL: t.options.TicketTTL, AutoCommit: t.options.AutoCommit.enabled(), RecoveryProgress: recovery,
	}
	if settings.AutoCommit {
		settings.OnFull = t.auto.trigger
	}
	s, err := actors.Open(ctx, t.runtime, t.committed, memory, settings)
	if err != nil {
		return nil, err
	}
	t.session.Store(s)
	return s, nil
}

// writable refuses tables and stores that cannot be written safely, at open of
// the writer and not at the first flush.
func (t *Table) writable() error {
	if err := t.table.CheckWrite(t.schema); err != nil {
		return err
	}
	if !t.options.IO.Capabilities().AtomicCreate {
		return errs.Unsupported("the store of table %s has no create-if-absent, so two committers could overwrite each other's snapshots", t.path)
	}
	return nil
}

// recovery turns the caller's recovery offsets into progress.
func (t *Table) recovery() (*snapshot.Progress, error) {
	if t.options.RecoveryOffsets == nil {
		return nil, nil
	}
	offsets := &progress.Offsets{}
	for _, o := range t.options.RecoveryOffsets {
		kvs := make([]path.KV, len(t.schema.PartitionKeys))
		if len(o.Partition) != len(kvs) {
			return nil, errs.Invalid("recovery offset of partition %v: want exactly the keys %v", o.Partition, t.schema.PartitionKeys)
		}
		for i, key := range t.schema.PartitionKeys {
			text, ok := o.Partition[key]
			if !ok {
				return nil, errs.Invalid("recovery offset of partition %v: want exactly the keys %v", o.Partition, t.schema.PartitionKeys)
			}
			kvs[i] = path.KV{Key: key, Value: text}
		}
		var err error
		if offsets, err = offsets.With(kvs, o.Bucket, o.Offset); err != nil {
			return nil, err
		}
	}
	return &snapshot.Progress{Offsets: offsets, Found: true}, nil
}

// Refresh adopts what was committed since, by this handle or others, and
// reclaims the memory that it covers. Without a session there is nothing to do.
func (t *Table) Refresh(ctx context.Context) error {
	s := t.session.Load()
	if s == nil {
		return t.open()
	}
	_, err := s.Refresh(ctx)
	return err
}

func (t *Table) open() error {
	if t.closed.Load() {
		return errs.Wrap(errs.ErrClosed, "table %s", t.path)
	}
	return nil
}

// Close ends the session and frees its memory. Rows that were not committed are
// gone, by contract: replay them from the committed offsets. Readers that were
// opened before stay usable. Closing twice is fine.
func (t *Table) Close(ctx context.Context) error {
	t.closed.Store(true)
	select { // a second Close waits for the first, and finishes what a cancelled one began
	case t.starting <- struct{}{}:
		defer func() { <-t.starting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.done {
		return nil
	}
	t.auto.stop(t.auto.writer.Load())
	if s := t.session.Load(); s != nil {
		if err := s.Close(ctx); err != nil {
			return err
		}
	}
	t.auto.finish()
	if t.owned {
		t.runtime.Close()
	}
	t.done = true
	return nil
}
