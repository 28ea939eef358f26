package tideline_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	tidefs "github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/fs/mem"
	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/paimon/schema"
)

// VAL-04: realtime.enabled false refuses the writer, not the reader; absent is fine.
func TestRealtimeEnabled(t *testing.T) {
	w := newWorld(t, keyed())
	w.alter(func(s *schema.Schema) { s.Options["realtime.enabled"] = "false" })
	table := w.open()
	require.Empty(t, read(t, table.Scan()))
	_, err := table.Writer(t.Context())
	require.ErrorIs(t, err, tideline.ErrUnsupported)
	require.ErrorContains(t, err, "realtime.enabled")
	w.alter(func(s *schema.Schema) { s.Options["realtime.enabled"] = "true" })
	_, writer := w.session()
	put(t, writer, 1, "a")
	commit(t, writer)
}

// VAL-06, VAL-07, VAL-17: what would be answered wrongly is refused by name.
func TestRefusedOptions(t *testing.T) {
	for option, value := range map[string]string{
		"merge-engine": "partial-update", "changelog-producer": "lookup", "sequence.field": "name",
		"deletion-vectors.enabled": "true", "data-evolution.enabled": "true", "rowkind.field": "name",
		"file.format": "orc", "bucket": "-2", "bucket ": "1", "made-up-option": "1",
		"index-file-in-data-file-dir": "maybe",
	} {
		t.Run(option, func(t *testing.T) {
			disk := mem.New()
			_, err := tideline.Create(t.Context(), "/t", keyed(option, value), tideline.Options{IO: disk})
			require.Error(t, err)
			require.ErrorContains(t, err, strings.TrimSpace(option))
			_, err = disk.Stat(t.Context(), "/t/schema/schema-0")
			require.ErrorIs(t, err, fs.ErrNotExist, "nothing was created")
		})
	}
	t.Run("an append table refuses row kinds", func(t *testing.T) {
		w := newWorld(t, listed())
		_, writer := w.session()
		for _, kind := range []int8{tideline.Delete, tideline.UpdateAfter, tideline.UpdateBefore, 4, -1} {
			_, err := writer.Write(t.Context(), rows(t, 1, "a"), tideline.Kinds([]int8{kind}))
			require.ErrorIs(t, err, tideline.ErrInvalid)
		}
	})
}

// VAL-11: options that steer writers of other engines are accepted; nothing compacts.
func TestHarmlessOptions(t *testing.T) {
	w := newWorld(t, keyed("num-sorted-run.compaction-trigger", "2", "num-sorted-run.stop-trigger", "3", "write-buffer-size", "1 kb", "snapshot.time-retained", "1 h"))
	table, writer := w.session()
	for i := range 6 {
		put(t, writer, i, "x")
		commit(t, writer)
	}
	require.Equal(t, 6, w.fileCount())
	require.Len(t, read(t, table.Scan()), 6)
}

// Bad batches are refused before anything is accepted, and the writer stays usable.
func TestRefusedBatches(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	wrongType := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	missing := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	more := arrow.NewSchema(append(people.Fields(), arrow.Field{Name: "extra", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), nil)
	twice := arrow.NewSchema(append(people.Fields(), people.Field(0)), nil)
	nullKey := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, people.Field(1)}, nil)
	cases := map[string]struct {
		batch   arrow.RecordBatch
		options []tideline.WriteOption
	}{
		"no record":       {nil, nil},
		"wrong type":      {fromJSON(t, wrongType, `[{"id":1,"name":"a"}]`), nil},
		"extra column":    {fromJSON(t, more, `[{"id":1,"name":"a","extra":1}]`), nil},
		"column twice":    {array.NewRecordBatch(twice, append(rows(t, 1, "a").Columns(), rows(t, 1, "a").Column(0)), 1), nil},
		"null key":        {fromJSON(t, nullKey, `[{"id":1,"name":"a"},{"id":null,"name":"b"}]`), nil},
		"kinds too short": {rows(t, 1, "a", 2, "b"), []tideline.WriteOption{tideline.Kinds([]int8{0})}},
		"unknown kind":    {rows(t, 1, "a", 2, "b"), []tideline.WriteOption{tideline.Kinds([]int8{0, 9})}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := writer.Write(t.Context(), c.batch, c.options...)
			require.ErrorIs(t, err, tideline.ErrInvalid)
		})
	}
	_, err := writer.Write(t.Context(), fromJSON(t, missing, `[{"id":5}]`))
	if err != nil { // a missing column is either refused or null
		require.ErrorIs(t, err, tideline.ErrInvalid)
	}
	put(t, writer, 1, "a")
	require.Contains(t, read(t, table.Scan()), "1=a")
	batch, err := writer.Prepare(rows(t, 2, "b"))
	require.NoError(t, err)
	_, err = writer.WritePrepared(t.Context(), batch)
	require.NoError(t, err)
	_, err = writer.WritePrepared(t.Context(), batch)
	require.ErrorIs(t, err, tideline.ErrInvalid, "a batch is written once")
	require.NoError(t, writer.Discard(t.Context()))
}

// PRJ-08, B10: names of the format's own columns.
func TestReservedColumnNames(t *testing.T) {
	for _, name := range []string{"_SEQUENCE_NUMBER", "_VALUE_KIND", "_REALTIME_OFFSET", "_KEY_id"} {
		columns := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
		for _, key := range [][]string{nil, {"id"}} {
			_, err := tideline.Create(t.Context(), "/t", tideline.Definition{Columns: columns, PrimaryKey: key}, tideline.Options{IO: mem.New()})
			require.Error(t, err, name)
			require.ErrorContains(t, err, name)
		}
	}
}

// Options of a handle are checked when it is opened.
func TestHandleOptions(t *testing.T) {
	w := newWorld(t, keyed())
	for name, o := range map[string]tideline.Options{
		"user with a slash": {CommitUser: "a/b"}, "user too long": {CommitUser: strings.Repeat("u", 129)},
		"user of dots": {CommitUser: ".."}, "negative memory": {MemoryBytesMax: -1}, "negative ttl": {TicketTTL: -1},
		"negative batch": {ReadBatchRows: -1}, "negative interval": {AutoCommit: tideline.AutoCommit{Interval: -1}},
		"negative bytes": {AutoCommit: tideline.AutoCommit{Bytes: -1}},
	} {
		o.IO = w.disk
		_, err := tideline.Open(t.Context(), w.path, o)
		require.ErrorIs(t, err, tideline.ErrInvalid, name)
	}
	_, err := tideline.Open(t.Context(), "", tideline.Options{IO: w.disk})
	require.ErrorIs(t, err, tideline.ErrInvalid)
	_, err = tideline.Open(t.Context(), "/no/table", tideline.Options{IO: w.disk})
	require.ErrorIs(t, err, fs.ErrNotExist)
	table := w.open(func(o *tideline.Options) {
		o.RecoveryOffsets = []tideline.BucketOffset{{Partition: map[string]string{"x": "1"}, Offset: 1}}
	})
	_, err = table.Writer(t.Context())
	require.ErrorIs(t, err, tideline.ErrInvalid)
}

// Exactly one of several creators wins.
func TestOneCreatorWins(t *testing.T) {
	disk := mem.New()
	var all sync.WaitGroup
	won := make(chan *tideline.Table, 8)
	for i := range 8 {
		all.Go(func() {
			def := keyed("bucket", itoa(i+1))
			table, err := tideline.Create(context.Background(), "/t", def, tideline.Options{IO: disk})
			if err == nil {
				won <- table
			} else if !strings.Contains(err.Error(), "exists") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(won)
	require.Len(t, won, 1)
	require.NoError(t, (<-won).Close(t.Context()))
	_, err := tideline.Create(t.Context(), "/t", keyed("bucket", "9"), tideline.Options{IO: disk})
	require.ErrorIs(t, err, fs.ErrExist)
}

// A store on which two committers could overwrite each other is refused for writing.
func TestStoreWithoutExclusiveCreate(t *testing.T) {
	w := newWorld(t, keyed())
	w.io.SetPlan(fault.Plan{Capabilities: &tidefs.Capabilities{List: true}})
	table := w.open()
	require.Empty(t, read(t, table.Scan()))
	_, err := table.Writer(t.Context())
	require.ErrorIs(t, err, tideline.ErrUnsupported)
}

// Scans are checked before anything is read.
func TestRefusedScans(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	commit(t, writer)
	put(t, writer, 2, "b")
	for name, s := range map[string]tideline.Scan{
		"unknown column":         table.Scan().Select("nope"),
		"column twice":           table.Scan().Select("id", "id"),
		"member of a plain type": table.Scan().Select("name.x"),
		"predicate column":       table.Scan().Where(tideline.Eq("nope", 1)),
		"predicate type":         table.Scan().Where(tideline.Eq("id", "many")),
		"negative limit":         table.Scan().Limit(-2),
		"negative batch":         table.Scan().BatchRows(-1),
		"negative snapshot":      table.Scan().AtSnapshot(-1),
		"snapshot and tag":       table.Scan().AtSnapshot(1).AtTag("t"),
	} {
		_, err := s.Read(t.Context())
		require.ErrorIs(t, err, tideline.ErrInvalid, name)
		_, err = s.Plan(t.Context())
		require.ErrorIs(t, err, tideline.ErrInvalid, name)
	}
	_, err := table.Scan().AtTag("none").Read(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	commit(t, writer)
	require.Zero(t, stats(t, table).UsedBytes, "refused scans pin nothing")
}

// Vectors stay when the option that made them is switched off.
func TestDeletionVectorsAreRefusedWhateverTheOptionSays(t *testing.T) {
	table := filepath.Join(golden.Dir(t), "pq-pk-dv", "table")
	path := filepath.Join(t.TempDir(), "t")
	require.NoError(t, os.CopyFS(path, os.DirFS(table)))
	file := filepath.Join(path, "schema", "schema-0")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	off := regexp.MustCompile(`"deletion-vectors.enabled"\s*:\s*"true"`).ReplaceAll(text, []byte(`"deletion-vectors.enabled":"false"`))
	require.NotEqual(t, string(text), string(off))
	require.NoError(t, os.WriteFile(file, off, 0o600))

	opened, err := tideline.Open(t.Context(), path, tideline.Options{})
	require.NoError(t, err)
	defer opened.Close(t.Context())
	for _, scan := range []tideline.Scan{opened.Scan(), opened.Scan().CommittedOnly(), opened.Scan().AtSnapshot(6)} {
		_, err = scan.Read(t.Context())
		require.ErrorIs(t, err, tideline.ErrUnsupported)
		require.ErrorContains(t, err, "deletion vectors")
	}
}
