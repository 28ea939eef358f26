package tideline_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/schema"
)

// The real-time tables of the C++ implementation: its input, its union reads
// before each commit, its progress and its rows. Ours must be the same, by
// continuing its table and by taking its input from the beginning.

var referenceKinds = map[string]tideline.RowKind{"+I": tideline.Insert, "-U": tideline.UpdateBefore, "+U": tideline.UpdateAfter, "-D": tideline.Delete}

func referenceTables(t *testing.T, test func(t *testing.T, dir string)) {
	for _, name := range []string{"cpp-realtime-pk", "cpp-realtime-append"} {
		t.Run(name, func(t *testing.T) { test(t, filepath.Join(golden.Dir(t), name)) })
	}
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}

// writeLines writes rows of the reference notation, in batches of a size.
func writeLines(t *testing.T, w *tideline.Writer, fields []schema.Field, rows []string, size int) {
	t.Helper()
	for chunk := range slices.Chunk(rows, size) {
		d := jsonl.NewDecoder(fields).IgnoreUnknown()
		kinds := make([]tideline.RowKind, 0, len(chunk))
		for _, line := range chunk {
			var kind struct {
				Kind string `json:"_kind"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &kind))
			kinds = append(kinds, referenceKinds[kind.Kind])
			require.NoError(t, d.Append([]byte(line)))
		}
		batch, err := d.Batch()
		require.NoError(t, err)
		_, err = w.Write(t.Context(), batch, tideline.Kinds(kinds))
		require.NoError(t, err)
		batch.Release()
	}
}

// unionLines is a union read in the reference notation.
func unionLines(t *testing.T, table *tideline.Table) []string {
	t.Helper()
	r, err := table.Scan().Read(t.Context())
	require.NoError(t, err)
	defer r.Release()
	var out bytes.Buffer
	e := jsonl.NewEncoder(&out, table.Schema().Fields)
	for r.Next() {
		require.NoError(t, e.Write(r.RecordBatch()))
	}
	require.NoError(t, r.Err())
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}

// referenceOffsets is the progress of a reference snapshot by bucket.
func referenceOffsets(t *testing.T, dir string, snapshot int) map[int]int64 {
	t.Helper()
	out := map[int]int64{}
	for _, line := range lines(t, filepath.Join(dir, "realtime", "offsets.jsonl")) {
		var o struct {
			Snapshot, Bucket int
			Offset           int64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &o))
		if o.Snapshot == snapshot {
			out[o.Bucket] = o.Offset
		}
	}
	require.NotEmpty(t, out)
	return out
}

func offsets(t *testing.T, table *tideline.Table) map[int]int64 {
	t.Helper()
	p, err := table.Progress(t.Context(), 0)
	require.NoError(t, err)
	require.True(t, p.Found)
	out := map[int]int64{}
	for _, o := range p.Offsets {
		out[o.Bucket] = o.Offset
	}
	return out
}

func TestASessionContinuesTheReferenceTable(t *testing.T) {
	referenceTables(t, func(t *testing.T, dir string) {
		path := t.TempDir() + "/moved"
		require.NoError(t, os.CopyFS(path, os.DirFS(filepath.Join(dir, "table"))))
		table, err := tideline.Open(t.Context(), path, tideline.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, table.Close(t.Context())) }()
		before := referenceOffsets(t, dir, 2)
		require.Equal(t, before, offsets(t, table), "found although the table moved")
		want := lines(t, filepath.Join(dir, "expected", "latest.jsonl"))
		require.ElementsMatch(t, want, unionLines(t, table))

		w, err := table.Writer(t.Context())
		require.NoError(t, err)
		more := []string{
			`{"_kind":"+I","k":900001,"a":1,"b":0.5,"c":"new"}`, `{"_kind":"+I","k":900002,"a":2,"b":1.5,"c":null}`,
		}
		writeLines(t, w, table.Schema().Fields, more, 2)
		for _, line := range more {
			want = append(want, strings.Replace(line, `"_kind":"+I",`, "", 1))
		}
		require.ElementsMatch(t, want, unionLines(t, table))
		_, err = w.Commit(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, want, unionLines(t, table))
		rows := int64(0)
		for bucket, end := range offsets(t, table) {
			require.GreaterOrEqual(t, end, before[bucket])
			rows += end - before[bucket]
		}
		require.EqualValues(t, len(more), rows)
		require.NoError(t, w.Close(t.Context()))
	})
}

func TestTheReferenceInputGivesTheReferenceReads(t *testing.T) {
	commits := map[string][][]string{
		"cpp-realtime-pk":     {{"write-1"}, {"write-2", "write-3"}},
		"cpp-realtime-append": {{"write-1"}, {"write-2"}},
	}
	referenceTables(t, func(t *testing.T, dir string) {
		text, err := os.ReadFile(filepath.Join(dir, "table", "schema", "schema-0"))
		require.NoError(t, err)
		s, err := schema.Parse(text, "schema-0")
		require.NoError(t, err)
		for _, size := range []int{1, 7, 1000} {
			table, err := tideline.Create(t.Context(), t.TempDir()+"/again", tideline.Definition{
				Fields: s.Fields, PrimaryKey: s.PrimaryKeys, PartitionBy: s.PartitionKeys,
				Options: map[string]string{"bucket": s.Options["bucket"], "bucket-key": s.Options["bucket-key"]},
			}, tideline.Options{})
			require.NoError(t, err)
			w, err := table.Writer(t.Context())
			require.NoError(t, err)
			for i, inputs := range commits[filepath.Base(dir)] {
				for _, input := range inputs {
					writeLines(t, w, s.Fields, lines(t, filepath.Join(dir, "input", input+".jsonl")), size)
				}
				n := string(rune('1' + i))
				require.ElementsMatch(t, lines(t, filepath.Join(dir, "realtime", "union-before-commit-"+n+".jsonl")), unionLines(t, table))
				_, err := w.Commit(t.Context())
				require.NoError(t, err)
				require.ElementsMatch(t, lines(t, filepath.Join(dir, "expected", "snapshot-"+n+".jsonl")), unionLines(t, table))
				require.Equal(t, referenceOffsets(t, dir, i+1), offsets(t, table))
			}
			require.NoError(t, w.Close(t.Context()))
			require.NoError(t, table.Close(t.Context()))
		}
	})
}
