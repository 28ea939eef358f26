package tideline_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/fs/mem"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/schema"
	"github.com/tideline-db/tideline/snapshot"
)

// world is one table on a store in memory that can fail, with handles of the
// engine and with another engine that knows nothing of progress.
type bucketFiles = snapshot.BucketFiles

type world struct {
	t     *testing.T
	disk  *mem.FS
	io    *fault.FS
	path  string
	def   tideline.Definition
	names int
}

// keyed and listed are the two kinds of table that most scenarios run on.
func keyed(options ...string) tideline.Definition {
	return tideline.Definition{Columns: people, PrimaryKey: []string{"id"}, Options: optionMap(options)}
}

func listed(options ...string) tideline.Definition {
	m := optionMap(options)
	if m["bucket"] == "" {
		m["bucket"], m["bucket-key"] = "1", "id"
	}
	return tideline.Definition{Columns: people, Options: m}
}

var regional = arrow.NewSchema([]arrow.Field{
	{Name: "region", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

func optionMap(pairs []string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func newWorld(t *testing.T, def tideline.Definition) *world {
	t.Helper()
	w := &world{t: t, disk: mem.New(), path: "/wh/shop.db/people", def: def}
	w.io = fault.Wrap(w.disk, fault.Plan{})
	table, err := tideline.Create(t.Context(), w.path, def, tideline.Options{IO: w.disk})
	require.NoError(t, err)
	require.NoError(t, table.Close(t.Context()))
	return w
}

// open gives a new handle, as another process would have; it is closed at the
// end of the test.
func (w *world) open(change ...func(*tideline.Options)) *tideline.Table {
	w.t.Helper()
	o := tideline.Options{IO: w.io, CommitUser: "ours"}
	for _, c := range change {
		c(&o)
	}
	table, err := tideline.Open(w.t.Context(), w.path, o)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, table.Close(context.Background())) })
	return table
}

// session is open and a writer on it.
func (w *world) session(change ...func(*tideline.Options)) (*tideline.Table, *tideline.Writer) {
	w.t.Helper()
	table := w.open(change...)
	writer, err := table.Writer(w.t.Context())
	require.NoError(w.t, err)
	return table, writer
}

func user(name string) func(*tideline.Options) {
	return func(o *tideline.Options) { o.CommitUser = name }
}

func put(t *testing.T, w *tideline.Writer, pairs ...any) tideline.Ack {
	t.Helper()
	ack, err := w.Write(t.Context(), rows(t, pairs...))
	require.NoError(t, err)
	return ack
}

// putAt writes rows at the caller's offsets.
func putAt(t *testing.T, w *tideline.Writer, offsets []int64, pairs ...any) tideline.Ack {
	t.Helper()
	ack, err := w.Write(t.Context(), rows(t, pairs...), tideline.Offsets(offsets))
	require.NoError(t, err)
	return ack
}

// remove deletes keys.
func remove(t *testing.T, w *tideline.Writer, ids ...int) {
	t.Helper()
	var pairs []any
	var kinds []int8
	for _, id := range ids {
		pairs, kinds = append(pairs, id, nil), append(kinds, tideline.Delete)
	}
	_, err := w.Write(t.Context(), rows(t, pairs...), tideline.Kinds(kinds))
	require.NoError(t, err)
}

func prepare(t *testing.T, w *tideline.Writer, options ...tideline.PrepareOption) tideline.Prepared {
	t.Helper()
	p, err := w.PrepareCommit(t.Context(), options...)
	require.NoError(t, err)
	return p
}

func commit(t *testing.T, w *tideline.Writer, options ...tideline.PrepareOption) tideline.Commit {
	t.Helper()
	c, err := w.Commit(t.Context(), options...)
	require.NoError(t, err)
	return c
}

func publish(t *testing.T, table *tideline.Table, p tideline.Prepared) tideline.Commit {
	t.Helper()
	c, err := table.Commit(t.Context(), p)
	require.NoError(t, err)
	return c
}

func stats(t *testing.T, table *tideline.Table) tideline.Stats {
	t.Helper()
	s, err := table.Stats(t.Context())
	require.NoError(t, err)
	return s
}

// ends are the committed ends as "region=a/0:5" or "0:5".
func ends(t *testing.T, table *tideline.Table, snapshot int64) []string {
	t.Helper()
	p, err := table.Progress(t.Context(), snapshot)
	require.NoError(t, err)
	out := []string{}
	for _, o := range p.Offsets {
		line := ""
		for k, v := range o.Partition {
			line += k + "=" + v + "/"
		}
		out = append(out, fmt.Sprintf("%s%d:%d", line, o.Bucket, o.Offset))
	}
	return out
}

// fromJSON makes a batch of any schema.
func fromJSON(t *testing.T, s *arrow.Schema, text string) arrow.RecordBatch {
	t.Helper()
	r, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(text))
	require.NoError(t, err)
	t.Cleanup(r.Release)
	return r
}

func committed(table *tideline.Table) tideline.Scan { return table.Scan().CommittedOnly() }

// ---- the other engine ----

// reader is the committed side past all injected faults.
func (w *world) reader() *snapshot.Table {
	return &snapshot.Table{IO: w.disk, Root: w.path, Env: snapshot.Env{
		Now: func() int64 { return 1_700_000_000_000 }, LocalMillis: func() int64 { return 1_700_000_000_000 },
		UUID: w.uuid, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}}
}

func (w *world) uuid() string {
	w.names++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", w.names)
}

func (w *world) latest() *manifest.Snapshot {
	w.t.Helper()
	s, err := w.reader().Latest(w.t.Context(), 0)
	require.NoError(w.t, err)
	return s
}

// files are the live files of the newest snapshot.
func (w *world) files() []snapshot.BucketFiles {
	w.t.Helper()
	latest := w.latest()
	if latest == nil {
		return nil
	}
	files, err := w.reader().Files(w.t.Context(), latest, snapshot.Filter{})
	require.NoError(w.t, err)
	return files
}

func (w *world) fileCount() (n int) {
	for _, b := range w.files() {
		n += len(b.Files)
	}
	return n
}

// make writes rows into real data files with sequence numbers from first on, by a
// table of its own whose files are then moved here.
func (w *world) make(first int, level int, record arrow.RecordBatch) []manifest.Entry {
	t, ctx := w.t, w.t.Context()
	scratch, err := tideline.Create(ctx, "/scratch/"+w.uuid(), w.def, tideline.Options{IO: w.disk})
	require.NoError(t, err)
	defer func() { require.NoError(t, scratch.Close(ctx)) }()
	writer, err := scratch.Writer(ctx)
	require.NoError(t, err)
	for range first { // uses up sequence numbers of the bucket
		_, err := writer.Write(ctx, record.NewSlice(0, 1))
		require.NoError(t, err)
	}
	commit(t, writer)
	before := map[string]bool{}
	list := func() []snapshot.BucketFiles {
		s, err := scratch.Snapshot(ctx)
		require.NoError(t, err)
		if s == nil {
			return nil
		}
		files, err := scratch.Committed().Files(ctx, s, snapshot.Filter{})
		require.NoError(t, err)
		return files
	}
	for _, b := range list() {
		for _, f := range b.Files {
			before[f.Name] = true
		}
	}
	_, err = writer.Write(ctx, record)
	require.NoError(t, err)
	commit(t, writer)
	var entries []manifest.Entry
	for _, b := range list() {
		for _, f := range b.Files {
			if before[f.Name] {
				continue
			}
			from, err := scratch.Committed().DataPath(b, f)
			require.NoError(t, err)
			data, err := fs.ReadAll(ctx, w.disk, from, 1<<20)
			require.NoError(t, err)
			f.Level = level
			w.put(w.path+strings.TrimPrefix(from, scratch.Path()), data)
			entries = append(entries, manifest.Entry{
				Kind: manifest.Add, Partition: b.Partition, PartArity: len(w.def.PartitionBy), Bucket: b.Bucket, TotalBuckets: b.TotalBuckets, File: f,
			})
		}
	}
	require.NoError(t, writer.Close(ctx))
	return entries
}

func (w *world) put(name string, data []byte) {
	out, err := w.disk.Create(w.t.Context(), name)
	require.NoError(w.t, err)
	_, err = out.Write(data)
	require.NoError(w.t, err)
	require.NoError(w.t, out.Commit())
}

// drop lists live files as DELETE entries; keep says which partitions stay.
func (w *world) drop(keep func(snapshot.BucketFiles) bool) (entries []manifest.Entry) {
	for _, b := range w.files() {
		if keep != nil && keep(b) {
			continue
		}
		for _, f := range b.Files {
			entries = append(entries, manifest.Entry{
				Kind: manifest.Delete, Partition: b.Partition, PartArity: len(w.def.PartitionBy), Bucket: b.Bucket, TotalBuckets: b.TotalBuckets, File: f,
			})
		}
	}
	return entries
}

// foreign publishes entries as an engine that carries no properties over.
func (w *world) foreign(kind string, entries ...manifest.Entry) *manifest.Snapshot {
	w.t.Helper()
	ctx := w.t.Context()
	s := &manifest.Snapshot{
		Version: 3, ID: 1, CommitUser: "flink", CommitIdentifier: 9223372036854775807, CommitKind: kind,
		TimeMillis: 1_700_000_000_000,
	}
	var base []manifest.ListEntry
	if latest := w.latest(); latest != nil {
		s.ID, s.TotalRecordCount = latest.ID+1, latest.TotalRecordCount
		for _, name := range []string{latest.BaseManifestList, latest.DeltaManifestList} {
			data, err := fs.ReadAll(ctx, w.disk, path.Manifest(w.path, name), 1<<20)
			require.NoError(w.t, err)
			list, err := manifest.ReadList(data, name)
			require.NoError(w.t, err)
			base = append(base, list...)
		}
	}
	for _, e := range entries {
		n := e.File.Rows
		if e.Kind == manifest.Delete {
			n = -n
		}
		s.TotalRecordCount += n
		s.DeltaRecordCount += n
	}
	s.BaseManifestList = w.list(base)
	var delta []manifest.ListEntry
	if len(entries) > 0 {
		name := "manifest-" + w.uuid() + "-0"
		data, err := manifest.Write(entries, [16]byte{1})
		require.NoError(w.t, err)
		w.put(path.Manifest(w.path, name), data)
		var types []schema.Type
		newest, err := w.reader().LatestSchema(ctx)
		require.NoError(w.t, err)
		for _, i := range newest.PartitionIndexes() {
			types = append(types, newest.Fields[i].Type)
		}
		summary, err := manifest.SummarizeList(name, int64(len(data)), entries, types)
		require.NoError(w.t, err)
		delta = append(delta, summary)
	}
	s.DeltaManifestList = w.list(delta)
	require.NoError(w.t, w.disk.CreateIfAbsent(ctx, path.Snapshot(w.path, "", s.ID), s.Marshal()))
	w.hint(s.ID)
	return s
}

func (w *world) hint(id int64) {
	require.NoError(w.t, w.disk.Overwrite(w.t.Context(), path.LatestHint(w.path, ""), []byte(strconv.FormatInt(id, 10))))
}

func (w *world) list(entries []manifest.ListEntry) string {
	name := "manifest-list-" + w.uuid() + "-0"
	data, err := manifest.WriteList(entries, [16]byte{2})
	require.NoError(w.t, err)
	w.put(path.Manifest(w.path, name), data)
	return name
}

// add is a foreign APPEND of rows with sequence numbers from first on.
func (w *world) add(first int, pairs ...any) *manifest.Snapshot {
	return w.foreign(manifest.KindAppend, w.make(first, 0, rows(w.t, pairs...))...)
}

// compact rewrites all files of a table with one bucket to one file at the top
// level, as a full compaction does; deletes are gone.
func (w *world) compact() *manifest.Snapshot {
	w.t.Helper()
	gone := w.drop(nil)
	top := int64(0)
	for _, e := range gone {
		top = max(top, e.File.MaxSeq)
	}
	table, err := tideline.Open(w.t.Context(), w.path, tideline.Options{IO: w.disk})
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, table.Close(w.t.Context())) }()
	var pairs []any
	for _, line := range read(w.t, table.Scan()) {
		id, name, _ := strings.Cut(line, "=")
		n, err := strconv.Atoi(id)
		require.NoError(w.t, err)
		if name == "(null)" {
			pairs = append(pairs, n, nil)
		} else {
			pairs = append(pairs, n, name)
		}
	}
	entries := gone
	if len(pairs) > 0 {
		entries = append(entries, w.make(max(0, int(top)+1-len(pairs)/2), 5, rows(w.t, pairs...))...)
	}
	return w.foreign(manifest.KindCompact, entries...)
}

// overwrite replaces the whole table by rows, which may be none.
func (w *world) overwrite(pairs ...any) *manifest.Snapshot {
	w.t.Helper()
	entries := w.drop(nil)
	if len(pairs) > 0 {
		entries = append(entries, w.make(0, 0, rows(w.t, pairs...))...)
	}
	return w.foreign(manifest.KindOverwrite, entries...)
}

// rollback deletes every snapshot above id.
func (w *world) rollback(id int64) {
	for n := w.latest().ID; n > id; n-- {
		require.NoError(w.t, w.disk.Delete(w.t.Context(), path.Snapshot(w.path, "", n)))
	}
	w.hint(id)
}

// clobber replaces snapshot id by another engine's overwriting rename: the same
// base, without our files.
func (w *world) clobber(id int64) {
	stored, err := w.reader().Snapshot(w.t.Context(), id)
	require.NoError(w.t, err)
	s := *stored
	s.CommitUser, s.CommitIdentifier, s.UUID, s.Properties = "spark", 1, "", nil
	s.DeltaManifestList, s.DeltaManifestListSize = w.list(nil), nil
	require.NoError(w.t, w.disk.Overwrite(w.t.Context(), path.Snapshot(w.path, "", id), s.Marshal()))
}

// expire deletes the snapshots below id; their files stay.
func (w *world) expire(id int64) {
	for n := int64(1); n < id; n++ {
		require.NoError(w.t, w.disk.Delete(w.t.Context(), path.Snapshot(w.path, "", n)))
	}
	require.NoError(w.t, w.disk.Overwrite(w.t.Context(), path.EarliestHint(w.path, ""), []byte(strconv.FormatInt(id, 10))))
}

// alter writes the next schema, changed.
func (w *world) alter(change func(*schema.Schema)) {
	latest, err := w.reader().LatestSchema(w.t.Context())
	require.NoError(w.t, err)
	s, err := schema.Parse(latest.Marshal(), "copy")
	require.NoError(w.t, err)
	s.ID++
	change(s)
	require.NoError(w.t, w.disk.CreateIfAbsent(w.t.Context(), path.SchemaFile(w.path, "", s.ID), s.Marshal()))
}
