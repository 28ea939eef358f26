package datafile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/paimon/schema"
)

// goldenTable is what the tests need of one golden table.
type goldenTable struct {
	dir     string
	schemas map[int]*schema.Schema
	files   []goldenFile // of the newest snapshot
}

type goldenFile struct {
	Snapshot string
	File     string
	SchemaID int
	RowCount int64
	path     string
}

func loadGolden(t *testing.T, dir string) goldenTable {
	t.Helper()
	g := goldenTable{dir: dir, schemas: map[int]*schema.Schema{}}
	names, err := filepath.Glob(filepath.Join(dir, "table", "schema", "schema-*"))
	require.NoError(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		s, err := schema.Parse(data, name)
		require.NoError(t, err)
		g.schemas[int(s.ID)] = s
	}
	paths := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d iofs.DirEntry, err error) error {
		paths[filepath.Base(p)] = p
		return err
	}))
	newest := 0
	for _, line := range jsonLines(t, filepath.Join(dir, "expected", "files.jsonl")) {
		var f goldenFile
		require.NoError(t, json.Unmarshal(line, &f))
		id, err := strconv.Atoi(strings.TrimPrefix(f.Snapshot, "snapshot-"))
		if err != nil || id < newest || paths[f.File] == "" {
			continue
		}
		if id > newest {
			newest, g.files = id, nil
		}
		f.path = paths[f.File]
		g.files = append(g.files, f)
	}
	return g
}

func jsonLines(t *testing.T, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	var out [][]byte
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		out = append(out, append([]byte(nil), sc.Bytes()...))
	}
	return out
}

func (g goldenTable) latest() *schema.Schema {
	var s *schema.Schema
	for _, v := range g.schemas {
		if s == nil || v.ID > s.ID {
			s = v
		}
	}
	return s
}

// read returns the rows of a file as columns of the given fields.
func (g goldenTable) read(t *testing.T, f goldenFile, fields []schema.Field) ([]arrow.RecordBatch, error) {
	t.Helper()
	ctx := context.Background()
	data, err := os.ReadFile(f.path)
	require.NoError(t, err)
	mem := checked(t)
	r, err := Open(ctx, newMemFile(data), ReaderOptions{Alloc: mem})
	require.NoError(t, err)
	require.Equal(t, f.RowCount, r.Rows(), f.path)
	m, err := Evolve(g.schemas[f.SchemaID], fields)
	if err != nil {
		return nil, err
	}
	b, err := r.ReadAs(ctx, m, ReadOptions{BatchRows: 3})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	var out []arrow.RecordBatch
	for {
		rec, err := b.Next(ctx)
		if errors.Is(err, io.EOF) {
			t.Cleanup(func() { releaseAll(out) })
			return out, nil
		}
		if err != nil {
			releaseAll(out)
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		out = append(out, rec)
	}
}

func TestGoldenAppendTables(t *testing.T) {
	root := golden.Dir(t)
	casts := map[string]bool{"pq-evolve-cast": true, "java13-append-pq-bitmap-casts": true}
	for _, name := range []string{
		"java13-append-pq-5bucket", "java13-append-pq-bitmap-casts", "java13-append-pq-pages", "pq-all-types",
		"pq-append-complex-types", "pq-append-fileindex-bitmap", "pq-append-fileindex-evolve",
		"pq-append-fileindex-sidecar", "pq-append-fixed-1snap", "pq-append-fixed-5snap", "pq-append-range-types",
		"pq-evolve-addrop", "pq-evolve-cast", "pq-nested-basic", "pq-part-blank", "pq-part-null", "pq-ts-precisions",
		"cpp-realtime-append",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, name)
			if !isDir(filepath.Join(dir, "expected")) {
				t.Skip("no expectations")
			}
			g := loadGolden(t, dir)
			fields := g.latest().Fields
			var got []string
			for _, f := range g.files {
				recs, err := g.read(t, f, fields)
				if casts[name] && errors.Is(err, errs.ErrUnsupported) {
					require.ErrorContains(t, err, "cast of column")
					t.Skip(err)
				}
				require.NoError(t, err)
				got = append(got, renderRows(recs, fields)...)
			}
			var want []string
			for _, line := range jsonLines(t, filepath.Join(dir, "expected", "latest.jsonl")) {
				want = append(want, canonicalRow(t, line, fields))
			}
			sort.Strings(got)
			sort.Strings(want)
			require.Equal(t, want, got)
		})
	}
}

// Every Parquet file of every golden table opens, and all its columns decode.
func TestGoldenFilesAllDecode(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(golden.Dir(t), "*"))
	require.NoError(t, err)
	files := 0
	for _, dir := range dirs {
		if !isDir(filepath.Join(dir, "table", "schema")) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "expected", "files.jsonl")); err != nil {
			continue
		}
		g := loadGolden(t, dir)
		for _, f := range g.files {
			if !strings.HasSuffix(f.File, ".parquet") {
				continue
			}
			s := g.schemas[f.SchemaID]
			fields := append([]schema.Field(nil), s.Fields...)
			if s.IsPrimaryKey() {
				fields = append(fields, schema.SequenceField(), schema.ValueKindField())
			}
			recs, err := g.read(t, f, fields)
			require.NoError(t, err, f.path)
			rows := int64(0)
			for _, r := range recs {
				rows += r.NumRows()
			}
			require.Equal(t, f.RowCount, rows, f.path)
			files++
		}
	}
	t.Logf("%d files", files)
	require.NotZero(t, files)
}

func renderRows(recs []arrow.RecordBatch, fields []schema.Field) []string {
	var out []string
	for _, rec := range recs {
		for i := range int(rec.NumRows()) {
			row := make([]string, len(fields))
			for k, f := range fields {
				row[k] = f.Name + "=" + render(f.Type, rec.Column(k), i)
			}
			out = append(out, strings.Join(row, " "))
		}
	}
	return out
}

func render(t schema.Type, arr arrow.Array, i int) string {
	if arr.IsNull(i) {
		return "null"
	}
	switch a := arr.(type) {
	case *array.Float32:
		return formatFloat(float64(a.Value(i)), 32)
	case *array.Float64:
		return formatFloat(a.Value(i), 64)
	case *array.Decimal128:
		return a.Value(i).ToString(int32(t.Scale))
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.Date32:
		return a.Value(i).ToTime().Format("2006-01-02")
	case *array.Time32:
		layout := "15:04:05"
		if t.Prec > 0 {
			layout += "." + strings.Repeat("0", min(t.Prec, 3))
		}
		return a.Value(i).ToTime(arrow.Millisecond).Format(layout)
	case *array.Timestamp:
		return renderTimestamp(t, a, i)
	case *array.Struct:
		parts := make([]string, len(t.Fields))
		for k, f := range t.Fields {
			parts[k] = f.Name + ":" + render(f.Type, a.Field(k), i)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case *array.Map:
		key, value := mapParts(t)
		start, end := a.ValueOffsets(i)
		var parts []string
		for e := start; e < end; e++ {
			parts = append(parts, "["+render(key, a.Keys(), int(e))+","+render(value, a.Items(), int(e))+"]")
		}
		sort.Strings(parts)
		return "[" + strings.Join(parts, ",") + "]"
	case *array.List:
		start, end := a.ValueOffsets(i)
		var parts []string
		for e := start; e < end; e++ {
			parts = append(parts, render(*t.Elem, a.ListValues(), int(e)))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return arr.ValueStr(i)
}

func renderTimestamp(t schema.Type, a *array.Timestamp, i int) string {
	tm := a.Value(i).ToTime(a.DataType().(*arrow.TimestampType).Unit)
	layout := "2006-01-02 15:04:05"
	if t.Prec > 0 {
		layout += "." + strings.Repeat("0", t.Prec)
	}
	s := tm.In(time.UTC).Format(layout)
	if t.Kind == schema.TimestampLTZ {
		s += "Z"
	}
	return s
}

func formatFloat(v float64, bits int) string { return strconv.FormatFloat(v, 'g', -1, bits) }

// canonicalRow renders an expected row like renderRows does.
func canonicalRow(t *testing.T, line []byte, fields []schema.Field) string {
	t.Helper()
	var row map[string]any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	require.NoError(t, d.Decode(&row))
	parts := make([]string, len(fields))
	for k, f := range fields {
		v, ok := row[f.Name]
		require.True(t, ok, "the expectation has no %s", f.Name)
		parts[k] = f.Name + "=" + canonical(f.Type, v)
	}
	return strings.Join(parts, " ")
}

func canonical(t schema.Type, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	case json.Number:
		switch t.Kind {
		case schema.Float, schema.Double:
			bits := 64
			if t.Kind == schema.Float {
				bits = 32
			}
			f, err := strconv.ParseFloat(v.String(), bits)
			if err != nil {
				return err.Error()
			}
			return formatFloat(f, bits)
		}
		return v.String()
	case map[string]any:
		parts := make([]string, len(t.Fields))
		for k, f := range t.Fields {
			parts[k] = f.Name + ":" + canonical(f.Type, v[f.Name])
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			if t.Kind == schema.Array {
				parts = append(parts, canonical(*t.Elem, e))
				continue
			}
			key, value := mapParts(t)
			pair := e.([]any)
			parts = append(parts, "["+canonical(key, pair[0])+","+canonical(value, pair[1])+"]")
		}
		if t.Kind != schema.Array {
			sort.Strings(parts)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return fmt.Sprint(v)
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}
