package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
)

// Progress is what the table says of the input that it holds: the committed end
// of every partition-bucket, and the caller's own marks. It is immutable.
type Progress struct {
	Offsets *progress.Offsets // nil: none
	// Position is the caller's, for exactly the writes below Offsets; nil for none,
	// an empty one is not nil.
	Position []byte
	// Identifiers is the newest commit identifier of each user. It survives what
	// resets the offsets.
	Identifiers map[string]int64
	// Found: a snapshot that carries progress is behind this one, FromSnapshot.
	// Without it nothing was ever committed with progress, and every bucket is at 0.
	Found        bool
	FromSnapshot int64
	// Cleared: an overwrite by somebody else removed some or all offsets.
	Cleared bool

	record progress.Record // Identifiers in the order that the format keeps
	path   string          // base name of the offsets file; equal ones hold equal offsets
}

// End is the committed end offset of a bucket, 0 when it has none.
func (p *Progress) End(k progress.Key) int64 {
	if p == nil {
		return 0
	}
	end, _ := p.Offsets.GetKey(k)
	return end
}

// ErrProgressGone: the table once had progress and lost it, for instance because
// another engine expired the snapshots that carried it. The table can be read,
// and written with explicit recovery offsets only.
var ErrProgressGone = fmt.Errorf("progress is gone, open with recovery offsets: %w", errs.ErrSnapshotExpired)

// loadedProgress is the content of one immutable progress file.
type loadedProgress struct {
	offsets *progress.Offsets
	content []byte // of a record file
}

// Progress returns the progress that holds at snap: its own, or inherited from
// the nearest ancestor over snapshots of engines that do not know it. An
// OVERWRITE on the way removes what it touched. nil snap: an empty table.
func (t *Table) Progress(ctx context.Context, snap *manifest.Snapshot) (*Progress, error) {
	if snap == nil {
		return &Progress{}, nil
	}
	var younger []*manifest.Snapshot // without progress, newest first
	s := snap
	for s != nil && s.Properties[manifest.PropertyOffsets] == "" {
		younger = append(younger, s)
		before, err := t.before(ctx, s)
		if err != nil {
			return nil, err
		}
		if before == nil && s.ID > 1 {
			if err := t.neverHadProgress(ctx, snap, s.ID-1); err != nil {
				return nil, err
			}
		}
		s = before
	}
	p := &Progress{}
	if s != nil {
		var err error
		if p, err = t.own(ctx, s); err != nil {
			return nil, err
		}
	}
	for i := len(younger) - 1; i >= 0; i-- {
		s := younger[i]
		if s.CommitKind != manifest.KindOverwrite || p.Offsets.Len() == 0 {
			continue
		}
		d, err := t.delta(ctx, s)
		if err != nil {
			return nil, err
		}
		o, err := t.overwrite(ctx, s, d)
		if err != nil {
			return nil, err
		}
		p = p.without(o)
	}
	return p, nil
}

// progressAfter is Progress of s, given that of the snapshot before it.
func (t *Table) progressAfter(ctx context.Context, before *Progress, s *manifest.Snapshot, o *Overwrite) (*Progress, error) {
	switch value := s.Properties[manifest.PropertyOffsets]; {
	case value == "":
		return before.without(o), nil
	case s.Properties[progress.RecordProperty] == "" && fs.Base(value) == before.path:
		return before, nil
	default:
		return t.own(ctx, s)
	}
}

// neverHadProgress fails when the search for progress ended at an expired
// snapshot although a file of ours says that there was some.
func (t *Table) neverHadProgress(ctx context.Context, snap *manifest.Snapshot, missing int64) error {
	users, err := t.named(ctx, t.consumerDir(), "consumer-"+consumerPrefix, false)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return fmt.Errorf("snapshot %d of table %s has no progress, and its ancestor %d is gone while the consumer file of user %q is there: %w",
			snap.ID, t.Root, missing, users[0], ErrProgressGone)
	}
	for _, branch := range []string{t.Branch, path.MainBranch} {
		dir := progress.MetadataDir(t.Root, branch)
		entries, err := t.IO.List(ctx, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if progress.IsProgressFile(e.Name) {
				return fmt.Errorf("snapshot %d of table %s has no progress, and its ancestor %d is gone while progress file %s is there: %w",
					snap.ID, t.Root, missing, fs.Join(dir, e.Name), ErrProgressGone)
			}
		}
	}
	return nil
}

// own reads the progress that s itself carries. An engine that moves or copies
// offsets without knowing the record leaves that behind: it is then taken from
// the nearest ancestor that has one; a position that belongs to other offsets is
// dropped, identifiers are kept.
func (t *Table) own(ctx context.Context, s *manifest.Snapshot) (*Progress, error) {
	offsets, base, err := t.offsets(ctx, s)
	if err != nil {
		return nil, err
	}
	p := &Progress{Offsets: offsets, Found: true, FromSnapshot: s.ID, path: base}
	for a := s; a != nil; {
		if property := a.Properties[progress.RecordProperty]; property != "" {
			record, err := t.record(ctx, a, property)
			if err != nil {
				return nil, err
			}
			if fs.Base(a.Properties[manifest.PropertyOffsets]) != base {
				record.Position = nil
			}
			p.setRecord(record)
			return p, nil
		}
		if a, err = t.before(ctx, a); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Progress) setRecord(r progress.Record) {
	p.record, p.Position = r, r.Position
	p.Identifiers = make(map[string]int64, len(r.Users))
	for _, u := range r.Users {
		p.Identifiers[u.Name] = u.Identifier
	}
}

// before is the snapshot before s, nil when there is none or none any more.
func (t *Table) before(ctx context.Context, s *manifest.Snapshot) (*manifest.Snapshot, error) {
	if s.ID <= 1 {
		return nil, nil
	}
	b, err := t.readSnapshot(ctx, s.ID-1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// offsets reads the offsets file of s and returns its base name as well.
func (t *Table) offsets(ctx context.Context, s *manifest.Snapshot) (*progress.Offsets, string, error) {
	value := s.Properties[manifest.PropertyOffsets]
	base := fs.Base(value)
	if old, ok := t.loaded.get(base); ok {
		return old.offsets, base, nil
	}
	names, err := progress.Candidates(value, t.Root, t.Branch)
	if err != nil {
		return nil, "", errs.Corrupt(path.Snapshot(t.Root, t.Branch, s.ID), -1, "%v", err)
	}
	data, full, err := t.first(ctx, s, names, progress.MaxOffsetsBytes)
	if err != nil {
		return nil, "", err
	}
	offsets, err := progress.Parse(data, full)
	if err != nil {
		return nil, "", err
	}
	t.loaded.put(base, &loadedProgress{offsets: offsets}, offsets.Len()+1)
	return offsets, base, nil
}

// record reads the record of s, its file included.
func (t *Table) record(ctx context.Context, s *manifest.Snapshot, property string) (progress.Record, error) {
	r, rest, err := progress.ParseRecord(property, path.Snapshot(t.Root, t.Branch, s.ID))
	if err != nil || rest == "" {
		return r, err
	}
	names := []string{progress.PositionFile(t.Root, t.Branch, rest), progress.PositionFile(t.Root, path.MainBranch, rest)}
	old, ok := t.loaded.get(rest)
	if !ok {
		data, _, err := t.first(ctx, s, names, progress.MaxRecordBytes)
		if err != nil {
			return r, err
		}
		old = &loadedProgress{content: data}
		t.loaded.put(rest, old, len(data)>>6+1)
	}
	return r, r.ParseFile(old.content, names[0])
}

// first reads the first of the names that exists. A progress file of a retained
// snapshot that is nowhere means that the progress is gone.
func (t *Table) first(ctx context.Context, s *manifest.Snapshot, names []string, limit int64) ([]byte, string, error) {
	for _, full := range names {
		data, err := fs.ReadAll(ctx, t.IO, full, limit)
		if err == nil {
			return data, full, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
	}
	if _, err := t.readSnapshot(ctx, s.ID); errors.Is(err, fs.ErrNotExist) {
		return nil, "", errs.Wrap(errs.ErrSnapshotExpired, "snapshot %d of table %s and its progress file are gone", s.ID, t.Root)
	}
	return nil, "", fmt.Errorf("progress file %s of snapshot %d of table %s is missing: %w", fs.Base(names[0]), s.ID, t.Root, ErrProgressGone)
}

// without is the progress after an overwrite that does not carry any. The rows
// of a dropped partition are gone on purpose, so its buckets begin at 0; a
// position stays meaningful for the others unless all were dropped.
func (p *Progress) without(o *Overwrite) *Progress {
	if o == nil || p.Offsets.Len() == 0 {
		return p
	}
	next := *p
	next.Offsets = p.Offsets.Without(o.Touches)
	if next.Offsets.Len() == p.Offsets.Len() {
		return p
	}
	next.Cleared, next.path = true, ""
	if next.Offsets.Len() == 0 {
		next.Position, next.record.Position = nil, nil
	}
	return &next
}

// advance is the progress after a commit of the folds, before its files have
// names. The position is that of the request, or none: the previous one stands
// for fewer writes and would replay the difference twice.
func (p *Progress) advance(req *CommitRequest, folds []fold) (*Progress, error) {
	ranges := make([]progress.Range, len(folds))
	for i := range folds {
		f := &folds[i]
		ranges[i] = progress.Range{Partition: f.kvs, Bucket: f.key.Bucket, Begin: f.begin, End: f.end}
	}
	offsets, err := p.Offsets.Merge(ranges)
	if err != nil {
		return nil, err
	}
	next := &Progress{Offsets: offsets, Found: true}
	record := p.record.WithUser(req.User, req.Identifier)
	record.Position = nil
	if req.HasPosition {
		record.Position = append([]byte{}, req.Position...)
	}
	next.setRecord(record)
	return next, nil
}

// writeProgress stores the progress files of an attempt and names them in its
// snapshot.
func (a *attempt) writeProgress(ctx context.Context) error {
	p, s, t := a.plan.progress, &a.plan.snapshot, a.t
	full := progress.OffsetsFile(t.Root, t.Branch, s.UUID)
	p.FromSnapshot, p.path = s.ID, fs.Base(full)
	p.record.Session, p.record.Attempt = a.session, s.UUID
	data, err := p.Offsets.Marshal()
	if err != nil {
		return err
	}
	if err := a.put(ctx, full, data); err != nil {
		return err
	}
	name := progress.PositionName(s.UUID)
	property, content, err := p.record.Marshal(name)
	if err != nil {
		return err
	}
	if content != nil {
		if err := a.put(ctx, progress.PositionFile(t.Root, t.Branch, name), content); err != nil {
			return err
		}
	}
	s.Properties = map[string]string{manifest.PropertyOffsets: full, progress.RecordProperty: property}
	return nil
}

// sessionOf returns the session that published s, "" when that was no session of
// this engine. An engine that copies the properties of its predecessor does not
// have the uuid of that attempt.
func sessionOf(s *manifest.Snapshot) string {
	r, _, err := progress.ParseRecord(s.Properties[progress.RecordProperty], "")
	if err != nil || r.Attempt != s.UUID {
		return ""
	}
	return r.Session
}
