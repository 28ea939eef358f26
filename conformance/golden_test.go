package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

// sharedFolder is the folder of reference tables beside the repository; tests that
// need it are skipped where it is absent.
func sharedFolder(t *testing.T) string {
	t.Helper()
	root, err := repositoryRoot()
	require.NoError(t, err)
	dir := filepath.Join(filepath.Dir(root), "shared")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no folder of reference tables beside the repository")
	}
	return dir
}

// goldenWarehouse copies a reference table into a warehouse of its own, because
// readers may write hints. It is named default.t.
func goldenWarehouse(t *testing.T, table string) string {
	t.Helper()
	w := t.TempDir()
	require.NoError(t, os.CopyFS(TablePath(w, "default", "t"), os.DirFS(table)))
	return w
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func readLines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	if strings.TrimSpace(string(b)) == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\n"), "\n")
}

// The expectations of the reference tables were worked out without the oracles. If
// an oracle, the notation or the comparison is wrong, it shows here first.
func TestOraclesAgreeWithGolden(t *testing.T) {
	oracles := startOracles(t)
	shared := sharedFolder(t)
	hello, err := ReadSchema(filepath.Join(shared, "paimon/hello_world/default.db/hello"))
	require.NoError(t, err)
	for _, o := range oracles {
		t.Run("hello_world/"+o.Name(), func(t *testing.T) {
			w := goldenWarehouse(t, filepath.Join(shared, "paimon/hello_world/default.db/hello"))
			got, err := o.Dump(w, "default.t", 0)
			require.NoError(t, err)
			requireSameRows(t, hello, "expected", []string{`{"id":1,"name":"Alice"}`, `{"id":2,"name":"Bob"}`}, o.Name(), got)
		})
	}
	folders, err := filepath.Glob(filepath.Join(shared, "golden", "*", "table"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, table := range folders {
		name := filepath.Base(filepath.Dir(table))
		latest := filepath.Join(filepath.Dir(table), "expected", "latest.jsonl")
		if !exists(latest) {
			continue // rows taken from a test of another implementation, not decoded
		}
		// A plain read honours scan.fallback-branch, and there latest.jsonl is main alone.
		if f := filepath.Join(filepath.Dir(latest), "fallback.jsonl"); exists(f) {
			latest = f
		}
		s, err := ReadSchema(table)
		require.NoError(t, err)
		want := readLines(t, latest)
		for _, o := range oracles {
			t.Run(name+"/"+o.Name(), func(t *testing.T) {
				reason := goldenException(o.Name(), name)
				if o.Name() == "python" && !avroManifests(t, table) {
					reason = "pypaimon reads no ORC or Parquet manifests"
				}
				if strings.HasPrefix(reason, kills) {
					return
				}
				w := goldenWarehouse(t, table)
				got, err := o.Dump(w, "default.t", 0)
				diff := ""
				if err == nil {
					diff, err = Diff(s, "expected", want, o.Name(), got)
				}
				if reason != "" {
					require.True(t, err != nil || diff != "", "listed as an exception (%s) but agrees now: remove it", reason)
					return
				}
				require.NoError(t, err)
				require.Empty(t, diff)
				// Reads of a snapshot fall back to the branch as well; pypaimon is asked for the newest only.
				if o.Name() == "java" && filepath.Base(latest) == "latest.jsonl" {
					requireGoldenSnapshots(t, o, w, filepath.Dir(latest))
				}
			})
		}
	}
}

// requireGoldenSnapshots compares what an oracle reads at each snapshot. The files
// name the fields of the snapshot's own schema.
func requireGoldenSnapshots(t *testing.T, o *Oracle, w, expected string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(expected, "snapshot-*.jsonl"))
	require.NoError(t, err)
	root := TablePath(w, "default", "t")
	for _, f := range files {
		var id, schemaID int64
		if _, err := fmt.Sscanf(filepath.Base(f), "snapshot-%d.jsonl", &id); err != nil {
			continue // merged states and changes
		}
		var snapshot struct{ SchemaID *int64 }
		b, err := os.ReadFile(filepath.Join(root, "snapshot", fmt.Sprintf("snapshot-%d", id)))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &snapshot))
		if snapshot.SchemaID != nil {
			schemaID = *snapshot.SchemaID
		}
		s, err := readSchemaFile(filepath.Join(root, "schema", fmt.Sprintf("schema-%d", schemaID)))
		require.NoError(t, err)
		got, err := o.Dump(w, "default.t", id)
		require.NoError(t, err, "snapshot %d", id)
		requireSameRows(t, s, "expected", readLines(t, f), fmt.Sprintf("%s at snapshot %d", o.Name(), id), got)
	}
}

// avroManifests tells whether all manifests of a table are in the format's own
// encoding; older releases could be told to write others.
func avroManifests(t *testing.T, table string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(table, "manifest", "*"))
	require.NoError(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		if !strings.HasPrefix(string(b), "Obj\x01") {
			return false
		}
	}
	return true
}

// We read a reference table as expected, or refuse it by the name of what we lack.
// Anything else would be a wrong answer.
func TestWeReadGoldenOrRefuse(t *testing.T) {
	tables, err := filepath.Glob(filepath.Join(sharedFolder(t), "golden", "*", "table"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	read := 0
	for _, table := range tables {
		name, expected := filepath.Base(filepath.Dir(table)), filepath.Join(filepath.Dir(table), "expected", "latest.jsonl")
		if !exists(expected) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got, err := (&ours{}).Dump(goldenWarehouse(t, table), "default.t", 0)
			if errors.Is(err, tideline.ErrUnsupported) {
				t.Log(err)
				return
			}
			require.NoError(t, err)
			s, err := ReadSchema(table)
			require.NoError(t, err)
			requireSameRows(t, s, "expected", readLines(t, expected), "tideline", got)
			read++
		})
	}
	require.Positive(t, read)
	t.Logf("read %d of %d", read, len(tables))
}
