package snapshot

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/fs/mem"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

const root = "/w/shop.db/orders"

// world is one table on a store in memory, with sessions of our engine and with
// another engine that knows nothing of progress.
type world struct {
	t     *testing.T
	ctx   context.Context
	io    *fault.FS
	disk  *mem.FS
	names int
	clock int64
	waits []time.Duration
	types []schema.Type
	opts  schema.Options
}

// newWorld makes a table partitioned by region. kind: "pk", "append" (two buckets
// each) or "unaware".
func newWorld(t *testing.T, kind string, options ...string) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), disk: mem.New(), clock: 1_700_000_000_000}
	w.io = fault.Wrap(w.disk, fault.Plan{})
	fields := []schema.Field{
		{ID: 0, Name: "region", Type: schema.Type{Kind: schema.VarChar, Length: schema.MaxLength}},
		{ID: 1, Name: "id", Type: schema.Type{Kind: schema.Int}},
		{ID: 2, Name: "v", Type: schema.Type{Kind: schema.BigInt, Nullable: true}},
	}
	opts := map[string]string{"bucket": "2"}
	var primary []string
	switch kind {
	case "pk":
		primary = []string{"region", "id"}
	case "append":
		opts["bucket-key"] = "id"
	case "unaware":
		opts["bucket"] = "-1"
	}
	for i := 0; i < len(options); i += 2 {
		opts[options[i]] = options[i+1]
	}
	s, err := schema.New(fields, []string{"region"}, primary, opts, w.clock)
	require.NoError(t, err)
	w.types = partitionTypes(s)
	w.opts, err = schema.ParseOptions(s)
	require.NoError(t, err)
	require.NoError(t, w.table().CreateTable(w.ctx, s))
	return w
}

func (w *world) uuid() string {
	w.names++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", w.names)
}

// table is a fresh handle, as a new process would have.
func (w *world) table() *Table {
	return &Table{IO: w.io, Root: root, Env: Env{
		Now:         func() int64 { w.clock++; return w.clock },
		LocalMillis: func() int64 { return w.clock },
		UUID:        w.uuid,
		Wait:        func(ctx context.Context, d time.Duration) error { w.waits = append(w.waits, d); return ctx.Err() },
	}}
}

func (w *world) partition(region string) []byte {
	data, err := row.Encode(w.types, []row.Value{region})
	require.NoError(w.t, err)
	return data
}

func key(region string, bucket int) progress.Key {
	return progress.KeyOf([]path.KV{{Key: "region", Value: region}}, bucket)
}

// file puts a data file on the disk and describes it.
func (w *world) file(region string, bucket int, rows, minSeq int64) manifest.FileMeta {
	w.names++
	f := manifest.FileMeta{
		Name: fmt.Sprintf("data-%06d-0.parquet", w.names), Size: 4, Rows: rows, MinKey: row.EmptyRow, MaxKey: row.EmptyRow,
		KeyStats:   manifest.Stats{Min: row.EmptyRow, Max: row.EmptyRow},
		ValueStats: manifest.Stats{Min: row.EmptyRow, Max: row.EmptyRow}, HasStatsCols: true, ValueStatsCols: []string{},
		MinSeq: minSeq, MaxSeq: minSeq + rows - 1,
	}
	dir := path.DataDir(root, w.opts, []path.KV{{Key: "region", Value: region}}, bucket)
	w.put(fs.Join(dir, f.Name), []byte("PAR1"))
	return f
}

func (w *world) put(name string, data []byte) {
	out, err := w.disk.Create(w.ctx, name)
	require.NoError(w.t, err)
	_, err = out.Write(data)
	require.NoError(w.t, err)
	require.NoError(w.t, out.Commit())
	require.NoError(w.t, w.disk.Sync(w.ctx, name))
}

// part is one bucket of a prepare: rows continue the bucket's end.
type part struct {
	region string
	bucket int
	rows   int64
	files  int
}

// session prepares and commits as the coordinator does.
type session struct {
	w        *world
	table    *Table
	user     string
	id       string
	adopted  *manifest.Snapshot
	progress *Progress
	ends     map[progress.Key]int64
	seq      int64
	ident    int64
}

func (w *world) session(user string) *session {
	s := &session{w: w, table: w.table(), user: user, id: w.uuid(), ends: map[progress.Key]int64{}}
	s.table.Session(s.id)
	s.open()
	return s
}

func (s *session) open() {
	var err error
	s.adopted, err = s.table.Latest(s.w.ctx, 0)
	require.NoError(s.w.t, err)
	s.progress, err = s.table.Progress(s.w.ctx, s.adopted)
	require.NoError(s.w.t, err)
	s.ident = s.progress.Identifiers[s.user]
	for k, e := range s.progress.Offsets.All() {
		s.ends[k] = e.End
	}
}

// prepare makes the next prepared commit of the session.
func (s *session) prepare(parts ...part) CommitRequest {
	s.ident++
	req := CommitRequest{
		User: s.user, Identifier: s.ident, Adopted: s.adopted, AdoptedProgress: s.progress,
		SessionID: s.id, Options: s.w.opts, BucketCount: s.w.opts.Bucket,
		Position: []byte("p" + strconv.FormatInt(s.ident, 10)), HasPosition: true,
	}
	for _, p := range parts {
		k := key(p.region, p.bucket)
		m := Message{
			Partition: s.w.partition(p.region), PartitionText: k.Partition, Bucket: p.bucket,
			Follows: s.ends[k], Begin: s.ends[k], End: s.ends[k] + p.rows,
		}
		for range p.files {
			m.Files = append(m.Files, s.w.file(p.region, p.bucket, p.rows, s.seq))
			s.seq += p.rows
		}
		s.ends[k] = m.End
		req.Messages = append(req.Messages, m)
	}
	return req
}

// commit publishes and adopts.
func (s *session) commit(parts ...part) CommitResult {
	s.w.t.Helper()
	r, err := s.table.Commit(s.w.ctx, s.prepare(parts...))
	require.NoError(s.w.t, err)
	require.NoError(s.w.t, s.refresh())
	return r
}

func (s *session) refresh() error {
	c, err := s.table.Follow(s.w.ctx, s.adopted, s.progress)
	if err != nil {
		return err
	}
	if err := c.Check(nil); err != nil {
		return err
	}
	s.adopted, s.progress = c.Latest, c.Progress
	return nil
}

// foreign commits as an engine that carries no properties over, unless props is
// given. It rewrites nothing: base is the previous base and delta.
func (w *world) foreign(kind string, props map[string]string, entries ...manifest.Entry) *manifest.Snapshot {
	w.t.Helper()
	latest := w.latest()
	s := &manifest.Snapshot{
		Version: 3, ID: 1, CommitUser: "flink", CommitIdentifier: 9223372036854775807, CommitKind: kind,
		TimeMillis: w.clock, Properties: props,
	}
	var list []manifest.ListEntry
	if latest != nil {
		var err error
		list, err = w.table().manifestList(w.ctx, latest)
		require.NoError(w.t, err)
		s.ID, s.TotalRecordCount = latest.ID+1, latest.TotalRecordCount
	}
	for _, e := range entries {
		n := e.File.Rows
		if e.Kind == manifest.Delete {
			n = -n
		}
		s.TotalRecordCount += n
		s.DeltaRecordCount += n
	}
	s.BaseManifestList = w.list(list)
	s.DeltaManifestList = w.list(w.manifest(entries))
	require.NoError(w.t, w.disk.CreateIfAbsent(w.ctx, path.Snapshot(root, "", s.ID), s.Marshal()))
	require.NoError(w.t, w.disk.Overwrite(w.ctx, path.LatestHint(root, ""), []byte(strconv.FormatInt(s.ID, 10))))
	return s
}

func (w *world) manifest(entries []manifest.Entry) []manifest.ListEntry {
	if len(entries) == 0 {
		return nil
	}
	name := "manifest-" + w.uuid() + "-0"
	data, err := manifest.Write(entries, syncMarker(name))
	require.NoError(w.t, err)
	w.put(path.Manifest(root, name), data)
	summary, err := manifest.SummarizeList(name, int64(len(data)), entries, w.types)
	require.NoError(w.t, err)
	return []manifest.ListEntry{summary}
}

func (w *world) list(entries []manifest.ListEntry) string {
	name := "manifest-list-" + w.uuid() + "-0"
	data, err := manifest.WriteList(entries, syncMarker(name))
	require.NoError(w.t, err)
	w.put(path.Manifest(root, name), data)
	return name
}

func (w *world) entry(kind int, region string, bucket int, f manifest.FileMeta) manifest.Entry {
	return manifest.Entry{Kind: kind, Partition: w.partition(region), PartArity: 1, Bucket: bucket, TotalBuckets: w.opts.Bucket, File: f}
}

// add is a new file of the other engine.
func (w *world) add(region string, bucket int, rows, minSeq int64) manifest.Entry {
	return w.entry(manifest.Add, region, bucket, w.file(region, bucket, rows, minSeq))
}

// remove lists the live files that keep rejects, as DELETE entries.
func (w *world) remove(gone func(BucketFiles) bool) []manifest.Entry {
	var entries []manifest.Entry
	for _, b := range w.files() {
		if !gone(b) {
			continue
		}
		for _, f := range b.Files {
			entries = append(entries, manifest.Entry{
				Kind: manifest.Delete, Partition: b.Partition, PartArity: 1, Bucket: b.Bucket, TotalBuckets: b.TotalBuckets, File: f,
			})
		}
	}
	return entries
}

func all(BucketFiles) bool { return true }

func inRegion(region string) func(BucketFiles) bool {
	return func(b BucketFiles) bool { return b.PartitionValues[0] == region }
}

// compact replaces all files of a bucket by one at level 5.
func (w *world) compact(region string, bucket int) *manifest.Snapshot {
	entries := w.remove(func(b BucketFiles) bool { return inRegion(region)(b) && b.Bucket == bucket })
	var rows, top int64
	for _, e := range entries {
		rows += e.File.Rows
		top = max(top, e.File.MaxSeq)
	}
	f := w.file(region, bucket, rows, 0)
	f.MaxSeq, f.Level = top, 5
	return w.foreign(manifest.KindCompact, nil, append(entries, w.entry(manifest.Add, region, bucket, f))...)
}

func (w *world) latest() *manifest.Snapshot {
	s, err := w.diskTable().Latest(w.ctx, 0)
	require.NoError(w.t, err)
	return s
}

// diskTable looks past injected faults.
func (w *world) diskTable() *Table {
	t := w.table()
	t.IO = w.disk
	return t
}

func (w *world) files() []BucketFiles {
	latest := w.latest()
	if latest == nil {
		return nil
	}
	files, err := w.diskTable().Files(w.ctx, latest, Filter{})
	require.NoError(w.t, err)
	return files
}

// liveNames are the names of the live data files.
func (w *world) liveNames() []string {
	var names []string
	for _, b := range w.files() {
		for _, f := range b.Files {
			names = append(names, f.Name)
		}
	}
	return names
}

func names(req CommitRequest) []string {
	var out []string
	for _, m := range req.Messages {
		for _, f := range m.Files {
			out = append(out, f.Name)
		}
	}
	return out
}

// progress at the newest snapshot, as a new process reads it.
func (w *world) progress() *Progress {
	p, err := w.diskTable().Progress(w.ctx, w.latest())
	require.NoError(w.t, err)
	return p
}

func (w *world) end(region string, bucket int) int64 { return w.progress().End(key(region, bucket)) }

// rollback deletes every snapshot above id, as the rollback of other engines does.
func (w *world) rollback(id int64) {
	for n := w.latest().ID; n > id; n-- {
		require.NoError(w.t, w.disk.Delete(w.ctx, path.Snapshot(root, "", n)))
	}
	require.NoError(w.t, w.disk.Overwrite(w.ctx, path.LatestHint(root, ""), []byte(strconv.FormatInt(id, 10))))
}

// clobber replaces snapshot id by another engine's overwriting rename: a snapshot
// on the same base, without our files.
func (w *world) clobber(id int64) {
	stored, err := w.diskTable().Snapshot(w.ctx, id)
	require.NoError(w.t, err)
	s := *stored
	s.CommitUser, s.CommitIdentifier, s.UUID, s.Properties = "spark", 1, "", nil
	s.DeltaManifestList, s.DeltaManifestListSize = w.list(nil), nil
	require.NoError(w.t, w.disk.Overwrite(w.ctx, path.Snapshot(root, "", id), s.Marshal()))
}

// expire deletes the snapshots below id.
func (w *world) expire(id int64) {
	ids, err := w.diskTable().Snapshots(w.ctx)
	require.NoError(w.t, err)
	for _, n := range ids {
		if n < id {
			require.NoError(w.t, w.disk.Delete(w.ctx, path.Snapshot(root, "", n)))
		}
	}
}

// before runs do once, just before the first operation of the kind on a name that
// ends like this.
func (w *world) before(kind fault.Kind, suffix string, do func()) {
	done := false
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if !done && op.Kind == kind && len(op.Name) >= len(suffix) && op.Name[len(op.Name)-len(suffix):] == suffix {
			done = true
			do()
		}
		return fault.Decision{}
	}})
}
