package tideline

import (
	"context"
	"fmt"
	"slices"

	"github.com/tideline-db/tideline/actors"
	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/predicate"
	"github.com/tideline-db/tideline/paimon/schema"
	"github.com/tideline-db/tideline/snapshot"
)

// Scan describes a read. It is immutable: each method returns a changed copy, so
// a scan can be kept and refined. Errors of its parts appear at Plan or Read.
type Scan struct {
	table      *Table
	columns    []string
	where      []*predicate.Predicate
	limit      int64
	batchRows  int
	snapshotID int64
	tag        string
	committed  bool
	candidates bool
	partition  func(map[string]string) bool
	bucket     func(int) bool
}

// Scan begins a read of the table: without further calls the union of the
// committed rows and of the rows in memory, all columns.
func (t *Table) Scan() Scan { return Scan{table: t, limit: -1} }

// Select keeps these columns, in this order. A dotted name selects a member of a
// ROW column and keeps the nesting. None selects no column: rows are counted.
func (s Scan) Select(columns ...string) Scan {
	s.columns = append([]string{}, columns...)
	return s
}

// Where keeps the rows for which the predicate is true; several are joined by And.
func (s Scan) Where(p *predicate.Predicate) Scan {
	s.where = append(slices.Clone(s.where), p)
	return s
}

// Limit ends the read after n rows. Which ones is not defined.
func (s Scan) Limit(n int64) Scan { s.limit = n; return s }

// BatchRows bounds the rows of one batch.
func (s Scan) BatchRows(n int) Scan { s.batchRows = n; return s }

// CommittedOnly reads the latest snapshot without the rows in memory. It works in
// every state of the session.
func (s Scan) CommittedOnly() Scan { s.committed = true; return s }

// AtSnapshot reads one snapshot, in the schema that it names, without the rows in
// memory.
func (s Scan) AtSnapshot(id int64) Scan { s.snapshotID = id; return s }

// AtTag reads a tagged snapshot.
func (s Scan) AtTag(name string) Scan { s.tag = name; return s }

// Candidates skips the exact filter: every row for which the predicate is true
// is returned, and possibly others. It shows what pruning alone achieves.
func (s Scan) Candidates() Scan { s.candidates = true; return s }

// Partitions keeps the partitions for which keep is true, given the text of each
// partition value.
func (s Scan) Partitions(keep func(map[string]string) bool) Scan { s.partition = keep; return s }

// Buckets keeps the buckets for which keep is true.
func (s Scan) Buckets(keep func(bucket int) bool) Scan { s.bucket = keep; return s }

// Split is a planned unit of reading: one partition-bucket, or a part of one
// whose rows nothing else can replace. A split with memory carries a ticket: it
// can be read once, before the ticket expires.
type Split struct {
	Partition map[string]string
	Bucket    int
	Files     []manifest.FileMeta // committed files of the split
	Committed int64               // offsets below are read from files
	Visible   int64               // offsets below are visible; equal to Committed without memory
	Ticket    int64               // 0: committed rows only

	plan   *Plan
	files  snapshot.BucketFiles
	memory *actors.PinnedBucket
}

// Plan is one consistent picture of the table, cut into splits.
type Plan struct {
	Snapshot *manifest.Snapshot // nil: no snapshot yet
	// Frontier is the write epoch up to which memory is in the picture, 0 without.
	Frontier int64
	Splits   []Split

	scan    Scan
	schema  *schema.Schema
	view    *projection
	session *actors.Session
	pinned  *actors.Pinned // nil without memory
}

// plan takes the picture. The caller releases what it pinned.
func (s Scan) plan(ctx context.Context) (_ *Plan, err error) {
	t := s.table
	if err := t.open(); err != nil {
		return nil, err
	}
	if s.batchRows < 0 || s.limit < -1 || s.snapshotID < 0 {
		return nil, errs.Invalid("negative limit, batch size or snapshot id in a scan of table %s", t.path)
	}
	p := &Plan{scan: s, schema: t.schema}
	if err := s.choose(ctx, p); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.release()
		}
	}()
	if p.view, err = newProjection(p.schema, s); err != nil {
		return nil, err
	}
	var files []snapshot.BucketFiles
	if p.Snapshot != nil {
		if err := t.committed.CheckIndexes(ctx, p.Snapshot); err != nil {
			return nil, err
		}
		if files, err = t.committed.Files(ctx, p.Snapshot, p.filter()); err != nil {
			return nil, err
		}
	}
	p.split(files)
	return p, nil
}

// choose fixes the snapshot and, for a union, pins the memory that goes with it.
func (s Scan) choose(ctx context.Context, p *Plan) (err error) {
	t := s.table
	switch {
	case s.snapshotID > 0 && s.tag != "":
		return errs.Invalid("a scan reads either a snapshot or a tag, not both")
	case s.snapshotID > 0:
		p.Snapshot, err = t.committed.Snapshot(ctx, s.snapshotID)
	case s.tag != "":
		p.Snapshot, err = t.committed.Tag(ctx, s.tag)
	default:
		session := t.session.Load()
		if session == nil || s.committed {
			p.Snapshot, err = t.committed.Latest(ctx, 0)
			return err
		}
		if err := session.Poisoned(); err != nil {
			return fmt.Errorf("rows in memory cannot be read any more (CommittedOnly can): %w", err)
		}
		p.session = session
		if p.pinned, err = session.Pin(ctx, s.wants); err != nil {
			return err
		}
		p.Snapshot, p.Frontier = p.pinned.Snapshot.Snapshot, p.pinned.Frontier
		return nil
	}
	if err != nil {
		return err
	}
	if p.Snapshot.SchemaID != t.schema.ID {
		if p.schema, err = t.committed.Schema(ctx, p.Snapshot.SchemaID); err != nil {
			return err
		}
		o, err := schema.ParseOptions(p.schema)
		if err != nil {
			return err
		}
		return o.CheckRead(p.schema)
	}
	return nil
}

// wants says whether the scan needs the memory of a bucket.
func (s Scan) wants(h *actors.Handle) bool {
	if s.bucket != nil && !s.bucket(int(h.ID.Bucket)) {
		return false
	}
	return s.partition == nil || s.partition(partitionTexts(h.Part.PartitionKVs))
}

// filter is what planning files may leave out.
func (p *Plan) filter() snapshot.Filter {
	f := snapshot.Filter{Bucket: p.scan.bucket, Key: p.view.keyOnly}
	if !p.schema.IsPrimaryKey() {
		f.Key, f.Value = nil, p.view.where
	}
	return f
}

// split joins files and memory by partition-bucket. All files of a bucket stay
// in one split with its memory; buckets without memory are split apart by file
// when their rows cannot meet.
func (p *Plan) split(files []snapshot.BucketFiles) {
	memory := map[bucket.ID]*actors.PinnedBucket{} // not yet in a split
	if p.pinned != nil {
		for i := range p.pinned.Buckets {
			b := &p.pinned.Buckets[i]
			memory[b.Handle.ID] = b
		}
	}
	for _, f := range files {
		texts := partitionTexts(f.PartitionKVs)
		if p.scan.partition != nil && !p.scan.partition(texts) {
			continue
		}
		split := Split{Partition: texts, Bucket: f.Bucket, Files: f.Files, plan: p, files: f}
		id := bucket.ID{Partition: f.PartitionText, Bucket: int32(f.Bucket)}
		if m := memory[id]; m != nil && string(m.Handle.Part.PartitionRow) == string(f.Partition) {
			split.memory, split.Committed, split.Visible = m, m.Begin, m.End
			delete(memory, id)
		}
		p.Splits = append(p.Splits, split)
	}
	if p.pinned != nil {
		for i := range p.pinned.Buckets {
			b := &p.pinned.Buckets[i]
			if memory[b.Handle.ID] != b {
				continue
			}
			p.Splits = append(p.Splits, Split{
				Partition: partitionTexts(b.Handle.Part.PartitionKVs), Bucket: int(b.Handle.ID.Bucket),
				Committed: b.Begin, Visible: b.End, plan: p, memory: b,
				files: snapshot.BucketFiles{PartitionValues: b.Handle.Part.PartitionValues},
			})
		}
	}
}

func partitionTexts(kvs []path.KV) map[string]string {
	texts := make(map[string]string, len(kvs))
	for _, kv := range kvs {
		texts[kv.Key] = kv.Value
	}
	return texts
}

func (p *Plan) release() {
	if p.pinned != nil {
		p.pinned.Release()
	}
}

// Plan takes a consistent picture and cuts it into splits, which Table.ReadSplits
// reads now or later, in this process. The rows in memory of each split are
// pinned by its ticket for Options.TicketTTL.
func (s Scan) Plan(ctx context.Context) (*Plan, error) {
	p, err := s.plan(ctx)
	if err != nil {
		return nil, err
	}
	if p.pinned == nil {
		return p, nil
	}
	for i := range p.Splits {
		split := &p.Splits[i]
		if split.memory == nil {
			continue
		}
		split.Ticket, err = p.session.Ticket(ctx, split.memory, split.memory.Release)
		if err != nil {
			p.abandon(ctx)
			return nil, err
		}
	}
	return p, nil
}

// abandon gives back what a failed Plan pinned: by ticket where there is one.
func (p *Plan) abandon(ctx context.Context) {
	for _, split := range p.Splits {
		if split.memory != nil && split.Ticket == 0 {
			split.memory.Release()
		}
	}
	p.Close(ctx)
}

// Close gives up the tickets that were not used. It is optional: they expire.
func (p *Plan) Close(ctx context.Context) {
	var tickets []int64
	for _, split := range p.Splits {
		if split.Ticket > 0 {
			tickets = append(tickets, split.Ticket)
		}
	}
	if len(tickets) > 0 {
		_ = p.session.GiveUp(context.WithoutCancel(ctx), tickets) // else they expire
	}
}

// Read plans and reads in one: every row that a write returned before this call
// is in it. The reader must be released.
func (s Scan) Read(ctx context.Context) (*Reader, error) {
	p, err := s.plan(ctx)
	if err != nil {
		return nil, err
	}
	return newReader(ctx, p, p.Splits, p.release)
}

// ReadSplits reads splits of one or several plans of this handle, all with the
// same scan. When the reader is built, and only then, their tickets are used up:
// after an error every split can be tried again.
func (t *Table) ReadSplits(ctx context.Context, splits ...Split) (*Reader, error) {
	if len(splits) == 0 {
		return nil, errs.Invalid("no split to read")
	}
	var tickets []int64
	plan := splits[0].plan
	for _, split := range splits {
		if split.plan == nil || split.plan.scan.table != t {
			return nil, errs.Invalid("a split was not planned by this table handle")
		}
		if split.memory != nil && split.Ticket == 0 {
			return nil, errs.Invalid("a split with rows in memory has no ticket; plan with Scan.Plan")
		}
		if split.plan.schema.ID != plan.schema.ID || !split.plan.view.arrow.Equal(plan.view.arrow) {
			return nil, errs.Invalid("splits of different scans cannot be read together")
		}
		if split.Ticket > 0 {
			tickets = append(tickets, split.Ticket)
		}
	}
	if len(tickets) == 0 {
		return newReader(ctx, plan, splits, func() {})
	}
	session := t.session.Load() // the first plan may be older than the session
	payloads, err := session.Resolve(ctx, tickets)
	if err != nil {
		return nil, err
	}
	var held []*actors.PinnedBucket
	release := func() {
		for _, b := range held {
			b.Release()
		}
	}
	for i, payload := range payloads {
		b := payload.(*actors.PinnedBucket)
		if !b.Extend() {
			release()
			return nil, errs.Wrap(errs.ErrSnapshotExpired, "ticket %d expired; plan again", tickets[i])
		}
		held = append(held, b)
	}
	r, err := newReader(ctx, plan, splits, release)
	if err != nil {
		return nil, err
	}
	if err := session.Redeem(ctx, tickets); err != nil {
		r.Release()
		return nil, err
	}
	return r, nil
}
