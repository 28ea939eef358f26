package snapshot

import (
	"context"
	"math"

	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/progress"
)

// delta is what the delta manifests of one snapshot say.
type delta struct {
	entries    []manifest.Entry
	partitions map[string]bool        // every partition with an entry, by text
	maxSeq     map[progress.Key]int64 // of the files added
	totals     map[string]int         // buckets per partition, of the files added
}

func (t *Table) delta(ctx context.Context, s *manifest.Snapshot) (*delta, error) {
	lists, err := t.list(ctx, s, s.DeltaManifestList)
	if err != nil {
		return nil, err
	}
	d := &delta{partitions: map[string]bool{}, maxSeq: map[progress.Key]int64{}, totals: map[string]int{}}
	for i := range lists {
		entries, err := t.manifest(ctx, s, lists[i].Name)
		if err != nil {
			return nil, err
		}
		d.entries = append(d.entries, entries...)
	}
	text, err := t.naming(ctx, s.SchemaID)
	if err != nil {
		return nil, err
	}
	for i := range d.entries {
		e := &d.entries[i]
		key, err := text.key(e.Partition, e.Bucket)
		if err != nil {
			return nil, err
		}
		d.partitions[key.Partition] = true
		if e.Kind == manifest.Add {
			raise(d.maxSeq, key, e.File.MaxSeq)
			d.totals[key.Partition] = e.TotalBuckets
		}
	}
	return d, nil
}

func (t *Table) naming(ctx context.Context, schemaID int64) (*naming, error) {
	s, err := t.Schema(ctx, schemaID)
	if err != nil {
		return nil, err
	}
	return newNaming(s)
}

// overwrite works out which partitions an OVERWRITE touched. It touched all of
// them when no earlier file survived, and also when it changed deletion vectors,
// whose partitions are not looked up.
func (t *Table) overwrite(ctx context.Context, s *manifest.Snapshot, d *delta) (*Overwrite, error) {
	o := &Overwrite{Partitions: d.partitions}
	lists, err := t.list(ctx, s, s.BaseManifestList)
	if err != nil {
		return nil, err
	}
	var before []manifest.Entry
	for i := range lists {
		entries, err := t.manifest(ctx, s, lists[i].Name)
		if err != nil {
			return nil, err
		}
		before = append(before, entries...)
	}
	removed := make(map[string]bool, len(d.entries))
	for i := range d.entries {
		if d.entries[i].Kind == manifest.Delete {
			removed[manifest.Identity(d.entries[i])] = true
		}
	}
	live, err := manifest.Live(before)
	if err != nil {
		return nil, err
	}
	o.All = true
	for i := range live {
		if !removed[manifest.Identity(live[i])] {
			o.All = false
			break
		}
	}
	if o.All || s.ID == 1 {
		return o, nil
	}
	previous, err := t.Snapshot(ctx, s.ID-1)
	if err != nil {
		return nil, err
	}
	o.All = previous.IndexManifest != s.IndexManifest
	return o, nil
}

// summary is what commits of an append table and the check of bucket counts need
// to know about all live files, kept up to date by the deltas of new snapshots.
// Its numbers are watermarks: they do not fall when files go away.
type summary struct {
	at     *manifest.Snapshot
	maxSeq map[progress.Key]int64
	totals map[string]int
}

// summaryStepsMax bounds how many deltas are read before everything is read anew.
const summaryStepsMax = 256

// summarize returns the summary of latest, from the one kept in the table when
// that belongs to an ancestor that is still stored unchanged.
func (t *Table) summarize(ctx context.Context, latest *manifest.Snapshot) (*summary, error) {
	if latest == nil {
		return &summary{}, nil
	}
	old := t.summary.Load()
	if old != nil && old.at != nil && Same(old.at, latest) {
		return old, nil
	}
	next, err := t.extendSummary(ctx, old, latest)
	if err != nil {
		return nil, err
	}
	if next == nil {
		if next, err = t.newSummary(ctx, latest); err != nil {
			return nil, err
		}
	}
	t.summary.Store(next)
	return next, nil
}

// extendSummary returns nil when everything has to be read.
func (t *Table) extendSummary(ctx context.Context, old *summary, latest *manifest.Snapshot) (*summary, error) {
	if old == nil || old.at == nil || old.at.ID >= latest.ID || latest.ID-old.at.ID > summaryStepsMax {
		return nil, nil
	}
	stored, err := t.readSnapshot(ctx, old.at.ID)
	if err != nil || !Same(stored, old.at) {
		return nil, nil
	}
	next := &summary{at: latest, maxSeq: clone(old.maxSeq), totals: clone(old.totals)}
	for id := old.at.ID + 1; id <= latest.ID; id++ {
		s := latest
		if id < latest.ID {
			if s, err = t.Snapshot(ctx, id); err != nil {
				return nil, err
			}
		}
		if s.CommitKind == manifest.KindOverwrite {
			return nil, nil
		}
		d, err := t.delta(ctx, s)
		if err != nil {
			return nil, err
		}
		for k, v := range d.maxSeq {
			raise(next.maxSeq, k, v)
		}
		for p, n := range d.totals {
			next.totals[p] = n
		}
	}
	return next, nil
}

func (t *Table) newSummary(ctx context.Context, latest *manifest.Snapshot) (*summary, error) {
	files, err := t.Files(ctx, latest, Filter{})
	if err != nil {
		return nil, err
	}
	next := &summary{at: latest, maxSeq: map[progress.Key]int64{}, totals: map[string]int{}}
	for _, b := range files {
		for i := range b.Files {
			raise(next.maxSeq, progress.Key{Partition: b.PartitionText, Bucket: b.Bucket}, b.Files[i].MaxSeq)
		}
		next.totals[b.PartitionText] = b.TotalBuckets
	}
	return next, nil
}

func clone[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	return out
}

// maxSequence is the largest number that may be given to a row.
const maxSequence = math.MaxInt64 - 1
