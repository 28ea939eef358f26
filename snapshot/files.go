package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/predicate"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// BucketFiles are the live data files of one partition-bucket at one snapshot.
// Partitions that differ as values but share a directory (null, empty, blank)
// are separate, with equal PartitionText.
type BucketFiles struct {
	Partition       []byte      // BinaryRow bytes without arity
	PartitionValues []row.Value // in the order of the partition keys
	PartitionText   string      // text of progress.Canonical, "" when unpartitioned
	PartitionKVs    []path.KV   // the same, key by key and unescaped
	Bucket          int
	TotalBuckets    int // as recorded by the newest file, -1 for unaware buckets
	Files           []manifest.FileMeta
	Dir             string // where files without an external path lie
}

// Filter leaves out what a reader cannot need. The zero value keeps everything.
type Filter struct {
	// Partition keeps the partitions for which it is true.
	Partition func(values []row.Value) bool
	// Bucket keeps the buckets for which it is true.
	Bucket func(bucket int) bool
	// Key is a predicate over key columns: it may drop a file of any table whose
	// statistics rule it out.
	Key *predicate.Predicate
	// Value drops files of tables without a primary key only: in others a dropped
	// file could uncover an older version.
	Value *predicate.Predicate
}

// Files plans the data files of snap: the live entries of its base and delta
// manifests, grouped, sorted by (partition, bucket) and inside by sequence. A
// missing manifest is errs.ErrSnapshotExpired when the snapshot is gone as well,
// else errs.ErrCorrupt.
func (t *Table) Files(ctx context.Context, snap *manifest.Snapshot, f Filter) ([]BucketFiles, error) {
	s, err := t.Schema(ctx, snap.SchemaID)
	if err != nil {
		return nil, err
	}
	opts, err := schema.ParseOptions(s)
	if err != nil {
		return nil, err
	}
	entries, err := t.liveEntries(ctx, snap, func(e *manifest.ListEntry) bool { return f.mayHold(e) })
	if err != nil {
		return nil, err
	}
	g := newGrouping(t, s, opts)
	prune, err := t.newPruner(ctx, s, f)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		e := &entries[i]
		if f.Bucket != nil && !f.Bucket(e.Bucket) {
			continue
		}
		b, err := g.bucket(e)
		if err != nil {
			return nil, t.explain(ctx, snap, err)
		}
		if f.Partition != nil && !f.Partition(b.PartitionValues) {
			continue
		}
		keep, err := prune.keep(ctx, &e.File)
		if err != nil {
			return nil, err
		}
		if keep {
			b.Files = append(b.Files, e.File)
		}
	}
	return g.sorted(), nil
}

// Indexes are the live index files of snap, nil when it has none.
func (t *Table) Indexes(ctx context.Context, snap *manifest.Snapshot) ([]manifest.IndexEntry, error) {
	if snap.IndexManifest == "" {
		return nil, nil
	}
	if err := path.CheckName(snap.IndexManifest); err != nil {
		return nil, errs.Corrupt(path.Snapshot(t.Root, t.Branch, snap.ID), -1, "index manifest name %q", snap.IndexManifest)
	}
	full := path.Manifest(t.Root, snap.IndexManifest)
	data, err := fs.ReadAll(ctx, t.IO, full, manifestBytesMax)
	if err != nil {
		return nil, t.explain(ctx, snap, err)
	}
	entries, err := manifest.ReadIndex(data, full)
	return slices.DeleteFunc(entries, func(e manifest.IndexEntry) bool { return e.Kind != manifest.Add }), err
}

// CheckIndexes refuses a snapshot some of whose rows are deleted by vectors: the
// option that made them may have been switched off since. Other indexes only make
// reading quicker.
func (t *Table) CheckIndexes(ctx context.Context, snap *manifest.Snapshot) error {
	entries, err := t.Indexes(ctx, snap)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type == manifest.IndexDeletionVectors {
			return errs.Unsupported("snapshot %d of table %s has deletion vectors (index file %s), which are not applied", snap.ID, t.Root, e.Name)
		}
	}
	return nil
}

// mayHold skips manifests whose bucket range the filter rules out: an ADD and
// its DELETE share the bucket, so both are skipped together.
func (f *Filter) mayHold(e *manifest.ListEntry) bool {
	if f.Bucket == nil || e.MinBucket == nil || e.MaxBucket == nil || *e.MaxBucket-*e.MinBucket > 1<<12 {
		return true
	}
	for b := *e.MinBucket; b <= *e.MaxBucket; b++ {
		if f.Bucket(b) {
			return true
		}
	}
	return false
}

// liveEntries merges the entries of the manifests of snap that want accepts.
func (t *Table) liveEntries(ctx context.Context, snap *manifest.Snapshot, want func(*manifest.ListEntry) bool) ([]manifest.Entry, error) {
	lists, err := t.manifestList(ctx, snap)
	if err != nil {
		return nil, err
	}
	var all []manifest.Entry
	for i := range lists {
		if want != nil && !want(&lists[i]) {
			continue
		}
		entries, err := t.manifest(ctx, snap, lists[i].Name)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return manifest.Live(all)
}

// manifestList is the base list followed by the delta list. A manifest that is
// named twice would count its files twice, so it is refused.
func (t *Table) manifestList(ctx context.Context, snap *manifest.Snapshot) ([]manifest.ListEntry, error) {
	base, err := t.list(ctx, snap, snap.BaseManifestList)
	if err != nil {
		return nil, err
	}
	delta, err := t.list(ctx, snap, snap.DeltaManifestList)
	if err != nil {
		return nil, err
	}
	lists := slices.Concat(base, delta)
	seen := make(map[string]bool, len(lists))
	for i := range lists {
		if seen[lists[i].Name] {
			return nil, errs.Corrupt(path.Manifest(t.Root, snap.DeltaManifestList), -1,
				"manifest %q is listed twice by snapshot %d", lists[i].Name, snap.ID)
		}
		seen[lists[i].Name] = true
	}
	return lists, nil
}

func (t *Table) list(ctx context.Context, snap *manifest.Snapshot, name string) ([]manifest.ListEntry, error) {
	if err := path.CheckName(name); err != nil {
		return nil, errs.Corrupt(path.Snapshot(t.Root, t.Branch, snap.ID), -1, "manifest list name %q", name)
	}
	full := path.Manifest(t.Root, name)
	data, err := fs.ReadAll(ctx, t.IO, full, manifestBytesMax)
	if err != nil {
		return nil, t.explain(ctx, snap, err)
	}
	return manifest.ReadList(data, full)
}

func (t *Table) manifest(ctx context.Context, snap *manifest.Snapshot, name string) ([]manifest.Entry, error) {
	if entries, ok := t.manifests.get(name); ok {
		return entries, nil
	}
	if err := path.CheckName(name); err != nil {
		return nil, errs.Corrupt(path.Manifest(t.Root, snap.DeltaManifestList), -1, "manifest name %q", name)
	}
	full := path.Manifest(t.Root, name)
	data, err := fs.ReadAll(ctx, t.IO, full, manifestBytesMax)
	if err != nil {
		return nil, t.explain(ctx, snap, err)
	}
	entries, err := manifest.Read(data, full)
	if err != nil {
		return nil, err
	}
	t.manifests.put(name, entries, len(entries)+1)
	return entries, nil
}

// Explain turns the failure to read a file that snap refers to into what it
// means: expired when the snapshot is gone as well, corrupt when the file alone
// is missing. It asks the store and does not trust the kind of the error.
func (t *Table) Explain(ctx context.Context, snap *manifest.Snapshot, err error) error {
	return t.explain(ctx, snap, err)
}

func (t *Table) explain(ctx context.Context, snap *manifest.Snapshot, err error) error {
	if ctx.Err() != nil || errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	stored, readErr := t.readSnapshot(ctx, snap.ID)
	switch {
	case errors.Is(readErr, fs.ErrNotExist), readErr == nil && !Same(stored, snap):
		return fmt.Errorf("snapshot %d of table %s disappeared while it was read (%v): %w", snap.ID, t.Root, err, errs.ErrSnapshotExpired)
	case errors.Is(err, fs.ErrNotExist):
		return &errs.CorruptError{File: t.Root, Offset: -1, Reason: fmt.Sprintf("snapshot %d refers to a missing file: %v", snap.ID, err)}
	}
	return err
}

// DataPath is where file f of b lies: its external path when it has one.
func (t *Table) DataPath(b BucketFiles, f manifest.FileMeta) (string, error) {
	if f.ExternalPath != nil {
		if t.External == nil {
			return "", errs.Unsupported("data file %s of table %s lies outside the table at %s", f.Name, t.Root, *f.ExternalPath)
		}
		return t.External(*f.ExternalPath)
	}
	if err := path.CheckName(f.Name); err != nil {
		return "", errs.Corrupt(fs.Join(b.Dir, "?"), -1, "data file name %q", f.Name)
	}
	return fs.Join(b.Dir, f.Name), nil
}

// MaxSequence is the highest sequence number in the live files of a
// partition-bucket, -1 when it has none. Partitions that share a directory share
// their numbers.
func (t *Table) MaxSequence(ctx context.Context, snap *manifest.Snapshot, partition []byte, bucket int) (int64, error) {
	highest := int64(-1)
	if snap == nil {
		return highest, nil
	}
	s, err := t.Schema(ctx, snap.SchemaID)
	if err != nil {
		return 0, err
	}
	text, err := newNaming(s)
	if err != nil {
		return 0, err
	}
	want, err := text.key(partition, bucket)
	if err != nil {
		return 0, err
	}
	only := Filter{Bucket: func(b int) bool { return b == bucket }}
	entries, err := t.liveEntries(ctx, snap, func(e *manifest.ListEntry) bool {
		return only.mayHold(e) && !(onePartition(e) && !text.sameText(e.PartitionStats.Min, want.Partition))
	})
	if err != nil {
		return 0, err
	}
	for i := range entries {
		e := &entries[i]
		if e.Bucket == bucket && e.File.MaxSeq > highest && (bytes.Equal(e.Partition, partition) || text.sameText(e.Partition, want.Partition)) {
			highest = e.File.MaxSeq
		}
	}
	return highest, nil
}

// onePartition reports that all entries of a manifest have the same partition,
// the minimum of its statistics.
func onePartition(e *manifest.ListEntry) bool {
	st := &e.PartitionStats
	if st.Arity == 0 || len(st.NullCounts) != st.Arity || !bytes.Equal(st.Min, st.Max) {
		return false
	}
	for _, n := range st.NullCounts {
		if n != 0 {
			return false
		}
	}
	return true
}

// grouping collects entries by partition and bucket.
type grouping struct {
	t       *Table
	opts    schema.Options
	text    *naming
	parts   map[string]*partition
	buckets map[groupKey]*BucketFiles
}

type groupKey struct {
	partition string
	bucket    int
}

type partition struct {
	values []row.Value
	kvs    []path.KV
	text   string
}

func newGrouping(t *Table, s *schema.Schema, opts schema.Options) *grouping {
	text := &naming{keys: s.PartitionKeys, types: partitionTypes(s), opts: opts}
	return &grouping{t: t, opts: opts, text: text, parts: map[string]*partition{}, buckets: map[groupKey]*BucketFiles{}}
}

func (g *grouping) bucket(e *manifest.Entry) (*BucketFiles, error) {
	key := groupKey{string(e.Partition), e.Bucket}
	if b := g.buckets[key]; b != nil {
		return b, nil
	}
	p := g.parts[key.partition]
	if p == nil {
		var err error
		if p, err = g.text.decode(e.Partition); err != nil {
			return nil, err
		}
		g.parts[key.partition] = p
	}
	b := &BucketFiles{
		Partition: e.Partition, PartitionValues: p.values, PartitionText: p.text, PartitionKVs: p.kvs,
		Bucket: e.Bucket, TotalBuckets: e.TotalBuckets, Dir: path.DataDir(g.t.Root, g.opts, p.kvs, e.Bucket),
	}
	g.buckets[key] = b
	return b, nil
}

func (g *grouping) sorted() []BucketFiles {
	all := make([]BucketFiles, 0, len(g.buckets))
	for _, b := range g.buckets {
		if len(b.Files) == 0 {
			continue
		}
		slices.SortFunc(b.Files, compareFiles)
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b BucketFiles) int {
		return cmp.Or(row.Compare(g.text.types, a.PartitionValues, b.PartitionValues),
			cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.Partition, b.Partition))
	})
	return all
}

// compareFiles orders by sequence range, oldest first: the order in which append
// tables are read.
func compareFiles(a, b manifest.FileMeta) int {
	return cmp.Or(cmp.Compare(a.MinSeq, b.MinSeq), cmp.Compare(a.MaxSeq, b.MaxSeq),
		cmp.Compare(b.Level, a.Level), cmp.Compare(a.Name, b.Name))
}
