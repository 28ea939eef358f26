package snapshot

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/local"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/predicate"
	"github.com/tideline-db/tideline/paimon/progress"
)

func lines[T any](t *testing.T, name string) []T {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	var out []T
	for s := bufio.NewScanner(f); s.Scan(); {
		var v T
		require.NoError(t, json.Unmarshal(s.Bytes(), &v))
		out = append(out, v)
	}
	return out
}

type goldenFile struct {
	Snapshot       string
	Bucket         int
	TotalBuckets   int
	Level          int
	File           string
	External       bool
	SchemaID       int64
	RowCount       int64
	MinSequence    int64
	MaxSequence    int64
	DeleteRowCount *int64
	FirstRowID     *int64
	ValueStatsCols []string
	ExtraFiles     []string
}

func (g goldenFile) line() string {
	return fmt.Sprint(g.Bucket, g.TotalBuckets, g.Level, g.File, g.External, g.SchemaID, g.RowCount, g.MinSequence, g.MaxSequence,
		text(g.DeleteRowCount), text(g.FirstRowID), g.ValueStatsCols, g.ExtraFiles)
}

func text(n *int64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

type goldenSnapshot struct {
	Name         string
	SchemaID     int64
	CommitKind   string
	PhysicalRows *int64
	LiveFiles    int
	Partitions   int
}

// Every reference table with Avro manifests: the planned files are the ones that
// an independent decoder found.
func TestFilesOfReferenceTables(t *testing.T) {
	root := golden.Dir(t)
	dirs, err := os.ReadDir(root)
	require.NoError(t, err)
	compared := 0
	for _, dir := range dirs {
		expected := filepath.Join(root, dir.Name(), "expected")
		if _, err := os.Stat(filepath.Join(expected, "files.jsonl")); err != nil {
			continue
		}
		t.Run(dir.Name(), func(t *testing.T) {
			table := &Table{IO: local.New(local.Options{}), Root: filepath.Join(root, dir.Name(), "table")}
			want := map[string][]string{}
			for _, g := range lines[goldenFile](t, filepath.Join(expected, "files.jsonl")) {
				want[g.Snapshot] = append(want[g.Snapshot], g.line())
			}
			var snapshots []goldenSnapshot
			data, err := os.ReadFile(filepath.Join(expected, "snapshots.json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, &snapshots))
			for _, s := range snapshots {
				if !strings.HasPrefix(s.Name, "snapshot-") {
					continue
				}
				if comparePlan(t, table, s, want[s.Name]) {
					compared++
				}
			}
		})
	}
	require.Greater(t, compared, 80)
}

func comparePlan(t *testing.T, table *Table, want goldenSnapshot, files []string) bool {
	ctx := t.Context()
	id, ok := path.SnapshotID(want.Name)
	require.True(t, ok)
	snap, err := table.Snapshot(ctx, id)
	require.NoError(t, err)
	require.Equal(t, want.SchemaID, snap.SchemaID)
	require.Equal(t, want.CommitKind, snap.CommitKind)
	buckets, err := table.Files(ctx, snap, Filter{})
	if errors.Is(err, errs.ErrUnsupported) {
		require.ErrorContains(t, err, "only Avro manifests are read")
		return false
	}
	require.NoError(t, err, want.Name)
	got := []string{}
	partitions := map[string]bool{}
	var rows int64
	for _, b := range buckets {
		partitions[string(b.Partition)] = true
		highest := int64(-1)
		for _, f := range b.Files {
			g := goldenFile{
				Bucket: b.Bucket, TotalBuckets: b.TotalBuckets, Level: f.Level, File: f.Name, External: f.ExternalPath != nil, SchemaID: f.SchemaID,
				RowCount: f.Rows, MinSequence: f.MinSeq, MaxSequence: f.MaxSeq, DeleteRowCount: f.DeleteRows, FirstRowID: f.FirstRowID,
				ValueStatsCols: f.ValueStatsCols, ExtraFiles: f.ExtraFiles,
			}
			got = append(got, g.line())
			rows += f.Rows
			highest = max(highest, f.MaxSeq)
			if f.ExternalPath == nil {
				name, err := table.DataPath(b, f)
				require.NoError(t, err)
				info, err := table.IO.Stat(ctx, name)
				require.NoError(t, err)
				require.Equal(t, f.Size, info.Size)
			}
		}
		top, err := table.MaxSequence(ctx, snap, b.Partition, b.Bucket)
		require.NoError(t, err)
		require.GreaterOrEqual(t, top, highest)
	}
	require.Equal(t, snap.TotalRecordCount, rows)
	if want.PhysicalRows != nil {
		require.Equal(t, *want.PhysicalRows, rows)
	}
	require.Equal(t, want.LiveFiles, len(got))
	require.Equal(t, want.Partitions, len(partitions))
	slices.Sort(got)
	slices.Sort(files)
	require.Equal(t, strings.Join(files, "\n"), strings.Join(got, "\n"))
	return true
}

type goldenOffset struct {
	Snapshot  any
	Partition map[string]string
	Bucket    int
	Offset    int64
}

// The tables that paimon-cpp wrote in real time: their recorded progress path
// leads nowhere any more.
func TestProgressOfRealtimeReferenceTables(t *testing.T) {
	root := golden.Dir(t)
	for _, name := range []string{"cpp-realtime-pk", "cpp-realtime-append"} {
		t.Run(name, func(t *testing.T) {
			table := &Table{IO: local.New(local.Options{}), Root: filepath.Join(root, name, "table")}
			latest, err := table.Latest(t.Context(), 0)
			require.NoError(t, err)
			for id := int64(1); id <= latest.ID; id++ {
				snap, err := table.Snapshot(t.Context(), id)
				require.NoError(t, err)
				_, err = table.IO.Stat(t.Context(), snap.Properties["realtime.offsets"])
				require.ErrorIs(t, err, fs.ErrNotExist)
				p, err := table.Progress(t.Context(), snap)
				require.NoError(t, err)
				require.True(t, p.Found)
				found := 0
				for _, o := range lines[goldenOffset](t, filepath.Join(root, name, "realtime", "offsets.jsonl")) {
					if n := strings.TrimPrefix(fmt.Sprint(o.Snapshot), "snapshot-"); n != fmt.Sprint(id) {
						continue
					}
					var kvs []path.KV
					for k, v := range o.Partition {
						kvs = append(kvs, path.KV{Key: k, Value: v})
					}
					require.Equal(t, o.Offset, p.End(progress.KeyOf(kvs, o.Bucket)))
					found++
				}
				require.Equal(t, p.Offsets.Len(), found)
				require.Positive(t, found)
			}
		})
	}
}

// A predicate that keeps nothing of a file drops it, one that may match keeps it.
func TestPruningByStatistics(t *testing.T) {
	root := golden.Dir(t)
	table := &Table{IO: local.New(local.Options{}), Root: filepath.Join(root, "pq-pk-2000rows", "table")}
	snap, err := table.Snapshot(t.Context(), 2)
	require.NoError(t, err)
	count := func(sql string) (n int) {
		p, err := predicate.Parse(sql)
		require.NoError(t, err)
		files, err := table.Files(t.Context(), snap, Filter{Key: p})
		require.NoError(t, err)
		for _, b := range files {
			n += len(b.Files)
		}
		return n
	}
	all, err := table.Files(t.Context(), snap, Filter{})
	require.NoError(t, err)
	require.Equal(t, len(all[0].Files), count("id >= -1000000"))
	require.Zero(t, count("id < -1000000"))
}
