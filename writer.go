package tideline

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/actors"
	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
	"github.com/tideline-db/tideline/paimon/manifest"
)

// Writer holds the table's single writer lease. A row is visible to every reader
// of this table handle when Write returns; it is durable when a commit that was
// prepared after it returns.
//
// A writer serves one goroutine at a time and refuses a second one with
// ErrInvalid. PrepareCommit and Commit hold it only for the cut: while files are
// written, the owner may write on in another goroutine. A goroutine that does not
// own the writer commits with BetweenWrites.
type Writer struct {
	table    *Table
	actor    *actors.Writer
	preparer *bucket.Preparer
}

// Writer takes the writer lease. A second active writer is refused; after Close
// the next one continues the numbers of the first.
func (t *Table) Writer(ctx context.Context) (*Writer, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	s, err := t.start(ctx)
	if err != nil {
		return nil, err
	}
	a, err := s.Writer(ctx)
	if err != nil {
		return nil, err
	}
	w := &Writer{table: t, actor: a, preparer: bucket.NewPreparer(a.Memory())}
	t.auto.start(w)
	return w, nil
}

// Ack says what a write did: the epoch that made it visible, the rows accepted
// and the replayed rows that were skipped because a snapshot covers them.
type Ack = actors.Ack

// WriteOption adds to a write.
type WriteOption func(*writeOptions)

type writeOptions struct {
	kinds   []RowKind
	offsets []int64
	try     bool
}

// RowKind says what a row does to its key.
type RowKind = int8

// The row kinds, as Paimon numbers them.
const (
	Insert       RowKind = 0 // +I
	UpdateBefore RowKind = 1 // -U
	UpdateAfter  RowKind = 2 // +U
	Delete       RowKind = 3 // -D
)

// Kinds gives the kind of each row; without it every row is an Insert.
func Kinds(kinds []RowKind) WriteOption { return func(o *writeOptions) { o.kinds = kinds } }

// Offsets gives each row's position in the caller's log: strictly increasing per
// bucket, gaps allowed. Replayed rows below the committed end are skipped and
// counted. A session takes offsets either always or never.
func Offsets(offsets []int64) WriteOption { return func(o *writeOptions) { o.offsets = offsets } }

// Try makes Write return ErrOverloaded at once instead of waiting for memory.
func Try() WriteOption { return func(o *writeOptions) { o.try = true } }

// Write makes a batch visible, all of it or nothing. Columns are matched by name
// and must have the Arrow types of the table's schema. On ErrInvalid nothing was
// accepted and the writer stays usable. The record is copied: it may be released
// or changed when Write returns. ctx counts until memory is granted; what was
// accepted is carried through.
func (w *Writer) Write(ctx context.Context, record arrow.RecordBatch, options ...WriteOption) (Ack, error) {
	var o writeOptions
	for _, option := range options {
		option(&o)
	}
	prepared, err := w.preparer.Prepare(record, o.kinds, o.offsets)
	if err != nil {
		return Ack{}, err
	}
	ack, err := w.accept(ctx, prepared, o.try)
	if err == nil {
		w.preparer.Recycle(prepared)
	}
	return ack, err
}

// Batch is a validated, sorted batch on its way to WritePrepared.
type Batch struct{ prepared *bucket.Prepared }

// Rows is the number of rows in the batch.
func (b *Batch) Rows() int { return b.prepared.Rows }

// Prepare does the part of Write that may run on any goroutine, several at a
// time: validation, partitioning and sorting.
func (w *Writer) Prepare(record arrow.RecordBatch, options ...WriteOption) (*Batch, error) {
	var o writeOptions
	for _, option := range options {
		option(&o)
	}
	prepared, err := w.preparer.Prepare(record, o.kinds, o.offsets)
	if err != nil {
		return nil, err
	}
	return &Batch{prepared}, nil
}

// WritePrepared makes a batch of Prepare visible. A batch is written once; of
// the options only Try has a meaning here.
func (w *Writer) WritePrepared(ctx context.Context, b *Batch, options ...WriteOption) (Ack, error) {
	var o writeOptions
	for _, option := range options {
		option(&o)
	}
	if b == nil || b.prepared == nil {
		return Ack{}, errs.Invalid("the batch is nil or was written already; nothing was written")
	}
	ack, err := w.accept(ctx, b.prepared, o.try)
	if err == nil {
		b.prepared = nil
	}
	return ack, err
}

func (w *Writer) accept(ctx context.Context, p *bucket.Prepared, try bool) (Ack, error) {
	ack, err := w.actor.Write(ctx, p, try)
	if err == nil {
		w.table.auto.wrote(p.Bytes)
	}
	return ack, err
}

// Seal closes the building segment of every bucket. Nothing else changes: data
// stays in memory and readable.
func (w *Writer) Seal(context.Context) error { return w.actor.Seal() }

// Prepared is a finished prepare: the rows before its cut are in data files that
// no snapshot names yet.
type Prepared struct {
	Number     int64 // in the order of the cuts
	Identifier int64 // commit identifier of its snapshot
	Rows       int64 // rows in the files, superseded ones left out
	Bytes      int64 // file bytes
	Files      int
	Buckets    int
}

// PrepareOption adds to a prepare.
type PrepareOption func(*prepareOptions)

type prepareOptions struct {
	position []byte
	has      bool
	between  bool
}

// BetweenWrites lets a goroutine that does not own the writer prepare or commit:
// the cut is taken between two calls of whoever does. It cannot be joined with
// Position, because only the owner knows which writes a position stands for.
func BetweenWrites() PrepareOption { return func(o *prepareOptions) { o.between = true } }

// Position attaches the caller's opaque position, at most 64 KiB, for instance
// the offsets of a source. It stands for exactly the writes that returned before
// the prepare, is committed with it and returned by Table.Progress.
func Position(position []byte) PrepareOption {
	return func(o *prepareOptions) { o.position, o.has = position, true }
}

// PrepareCommit cuts all buckets at one point between two writes and writes what
// lies before to data files. Several prepares may be in flight; they are
// committed in order. Cancelling ctx gives up the wait, not the prepare.
func (w *Writer) PrepareCommit(ctx context.Context, options ...PrepareOption) (Prepared, error) {
	var o prepareOptions
	for _, option := range options {
		option(&o)
	}
	if o.between && o.has {
		return Prepared{}, errs.Invalid("a position stands for exactly the writes that returned before, so only the owner of the writer can give one; nothing was prepared")
	}
	if o.between {
		p, err := w.actor.PrepareInBackground(ctx)
		return preparedOf(p), err
	}
	p, err := w.actor.PrepareCommit(ctx, o.position, o.has)
	return preparedOf(p), err
}

func preparedOf(p messages.Prepared) Prepared {
	return Prepared{Number: p.Number, Identifier: p.Identifier, Rows: p.Rows, Bytes: p.Bytes, Files: p.Files, Buckets: p.Buckets}
}

// Abort gives up the newest prepare, which must never have been handed to a
// commit: its files are deleted and its rows join the next prepare.
func (w *Writer) Abort(ctx context.Context, p Prepared) error { return w.actor.Abort(ctx, p.Number) }

// Commit is the result of a commit.
type Commit struct {
	// ID is the snapshot, 0 when there was nothing to commit.
	ID       int64
	Attempts int
	// AlreadyThere says that an earlier try had published it.
	AlreadyThere bool
	Snapshot     *manifest.Snapshot
}

// Commit publishes a prepare and every earlier one in one snapshot each, on top
// of whatever others committed meanwhile. It is idempotent: after
// ErrOutcomeUnknown, or after cancelling ctx, call it again with the same value.
// Memory is kept until Refresh adopts the snapshot.
func (t *Table) Commit(ctx context.Context, p Prepared) (Commit, error) {
	s := t.session.Load()
	if s == nil {
		if err := t.open(); err != nil {
			return Commit{}, err
		}
		return Commit{}, errs.Invalid("prepare %d was not made through this table handle; nothing was committed", p.Number)
	}
	r, err := s.Commit(ctx, p.Number)
	if err != nil {
		return Commit{}, err
	}
	return Commit{ID: r.SnapshotID, Attempts: r.Attempts, AlreadyThere: r.AlreadyThere, Snapshot: r.Snapshot}, nil
}

// Commit prepares, commits and refreshes in one.
func (w *Writer) Commit(ctx context.Context, options ...PrepareOption) (Commit, error) {
	p, err := w.PrepareCommit(ctx, options...)
	if err != nil {
		return Commit{}, err
	}
	c, err := w.table.Commit(ctx, p)
	if err != nil {
		return Commit{}, err
	}
	return c, w.table.Refresh(ctx)
}

// Close gives the lease back so that another writer can follow. Rows that no
// prepare took make it an error and poison the session: commit first, or Discard.
func (w *Writer) Close(ctx context.Context) error {
	return w.close(ctx, false)
}

func (w *Writer) close(ctx context.Context, discard bool) error {
	w.table.auto.stop(w)
	err := w.actor.Close(ctx, discard)
	if !w.actor.Closed() { // refused: somebody else is using it
		w.table.auto.start(w)
	}
	return err
}

// Discard closes the writer and gives up, on purpose, the rows that no prepare
// took. The session ends with it.
func (w *Writer) Discard(ctx context.Context) error {
	return w.close(ctx, true)
}

// Subscribe returns a channel of the commits that this handle publishes; nil
// before the first writer.
func (t *Table) Subscribe() *actors.Subscription {
	if s := t.session.Load(); s != nil {
		return s.Subscribe()
	}
	return nil
}
