package manifest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// goldenTable reads the metadata of one golden table.
type goldenTable struct {
	t       *testing.T
	root    string
	schemas map[int64]*schema.Schema
}

func eachGoldenTable(t *testing.T, do func(t *testing.T, g *goldenTable)) {
	tables, err := filepath.Glob(filepath.Join(golden.Dir(t), "*", "table"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	for _, root := range tables {
		t.Run(filepath.Base(filepath.Dir(root)), func(t *testing.T) {
			do(t, &goldenTable{t, root, map[int64]*schema.Schema{}})
		})
	}
}

func (g *goldenTable) read(elem ...string) []byte {
	data, err := os.ReadFile(filepath.Join(append([]string{g.root}, elem...)...))
	require.NoError(g.t, err)
	return data
}

func (g *goldenTable) schema(id int64) *schema.Schema {
	if s := g.schemas[id]; s != nil {
		return s
	}
	name := fmt.Sprintf("schema-%d", id)
	s, err := schema.Parse(g.read("schema", name), name)
	require.NoError(g.t, err)
	g.schemas[id] = s
	return s
}

// snapshots gives the snapshots of main, and of tags, that exist.
func (g *goldenTable) snapshots() map[string]*manifest.Snapshot {
	out := map[string]*manifest.Snapshot{}
	files, _ := filepath.Glob(filepath.Join(g.root, "snapshot", "snapshot-*"))
	for _, f := range files {
		s, err := manifest.ParseSnapshot(g.read("snapshot", filepath.Base(f)), f)
		require.NoError(g.t, err)
		out[filepath.Base(f)] = s
	}
	return out
}

// lists reads base and delta list; false for ORC and Parquet manifests.
func (g *goldenTable) lists(s *manifest.Snapshot) ([]manifest.ListEntry, bool) {
	var all []manifest.ListEntry
	for name, size := range map[string]*int64{s.BaseManifestList: s.BaseManifestListSize, s.DeltaManifestList: s.DeltaManifestListSize} {
		data := g.read("manifest", name)
		if size != nil {
			require.EqualValues(g.t, *size, len(data))
		}
		list, err := manifest.ReadList(data, name)
		if errors.Is(err, errs.ErrUnsupported) {
			return nil, false
		}
		require.NoError(g.t, err)
		all = append(all, list...)
	}
	return all, true
}

func (g *goldenTable) entries(list []manifest.ListEntry) []manifest.Entry {
	var all []manifest.Entry
	for _, l := range list {
		data := g.read("manifest", l.Name)
		require.EqualValues(g.t, l.Size, len(data))
		entries, err := manifest.Read(data, l.Name)
		require.NoError(g.t, err)
		require.EqualValues(g.t, l.Added+l.Deleted, len(entries))
		all = append(all, entries...)
	}
	return all
}

func (g *goldenTable) partTypes(s *schema.Schema) []schema.Type {
	var types []schema.Type
	for _, i := range s.PartitionIndexes() {
		types = append(types, s.Fields[i].Type)
	}
	return types
}

type expectedFile struct {
	Snapshot       string         `json:"snapshot"`
	Partition      map[string]any `json:"partition"`
	Bucket         int            `json:"bucket"`
	TotalBuckets   int            `json:"totalBuckets"`
	Level          int            `json:"level"`
	File           string         `json:"file"`
	External       bool           `json:"external"`
	SchemaID       int64          `json:"schemaId"`
	RowCount       int64          `json:"rowCount"`
	MinSequence    int64          `json:"minSequence"`
	MaxSequence    int64          `json:"maxSequence"`
	DeleteRowCount *int64         `json:"deleteRowCount"`
	FirstRowID     *int64         `json:"firstRowId"`
	ValueStatsCols []string       `json:"valueStatsCols"`
	ExtraFiles     []string       `json:"extraFiles"`
}

func (g *goldenTable) expectedFiles() map[string][]expectedFile {
	f, err := os.Open(filepath.Join(g.root, "..", "expected", "files.jsonl"))
	require.NoError(g.t, err)
	defer f.Close()
	out := map[string][]expectedFile{}
	for in := bufio.NewScanner(f); in.Scan(); {
		var e expectedFile
		d := json.NewDecoder(bytes.NewReader(in.Bytes()))
		d.UseNumber()
		require.NoError(g.t, d.Decode(&e))
		out[e.Snapshot] = append(out[e.Snapshot], e)
	}
	return out
}

// asExpected renders a partition value the way the golden files do.
func asExpected(t schema.Type, v row.Value) string {
	switch v := v.(type) {
	case decimal128.Num:
		return v.ToString(int32(t.Scale))
	case row.Timestamp:
		at := time.UnixMilli(v.Millis).Add(time.Duration(v.Nanos)).UTC()
		text := at.Format("2006-01-02 15:04:05" + strings.TrimSuffix("."+strings.Repeat("0", t.Prec), "."))
		if t.Kind == schema.TimestampLTZ {
			text += "Z"
		}
		return text
	case int32:
		if t.Kind == schema.Date {
			return time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly)
		}
	}
	return fmt.Sprint(v)
}

func TestLiveFilesOfGoldenTablesAreTheExpectedOnes(t *testing.T) {
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		expected := g.expectedFiles()
		for name, snap := range g.snapshots() {
			list, ok := g.lists(snap)
			if !ok {
				continue
			}
			entries := g.entries(list)
			live, err := manifest.Live(entries)
			require.NoError(t, err)
			merged, err := manifest.Merge(entries)
			require.NoError(t, err)
			require.ElementsMatch(t, live, merged, "a full state has no unmatched DELETE")

			s := g.schema(snap.SchemaID)
			want := map[string]int{}
			for _, e := range expected[name] {
				for k, v := range e.Partition {
					e.Partition[k] = fmt.Sprint(v)
				}
				want[fmt.Sprintf("%+v %s %s", comparable(e), opt(e.DeleteRowCount), opt(e.FirstRowID))]++
			}
			got, rows := map[string]int{}, int64(0)
			for _, l := range live {
				e := g.asExpectedFile(name, s, l)
				got[fmt.Sprintf("%+v %s %s", comparable(e), opt(l.File.DeleteRows), opt(l.File.FirstRowID))]++
				rows += l.File.Rows
			}
			require.Equal(t, want, got, name)
			require.Equal(t, snap.TotalRecordCount, rows)
		}
	})
}

// comparable takes the pointers out, which print as addresses, and the lists'
// difference of null and empty, which the golden files do not keep.
func comparable(e expectedFile) expectedFile {
	e.DeleteRowCount, e.FirstRowID = nil, nil
	return e
}

func opt(p *int64) string {
	if p == nil {
		return "null"
	}
	return fmt.Sprint(*p)
}

func (g *goldenTable) asExpectedFile(snapshot string, s *schema.Schema, l manifest.Entry) expectedFile {
	types := g.partTypes(s)
	vals, err := row.Decode(types, l.Partition)
	require.NoError(g.t, err)
	e := expectedFile{
		Snapshot: snapshot, Partition: map[string]any{}, Bucket: l.Bucket, TotalBuckets: l.TotalBuckets,
		Level: l.File.Level, File: l.File.Name, External: l.File.ExternalPath != nil, SchemaID: l.File.SchemaID,
		RowCount: l.File.Rows, MinSequence: l.File.MinSeq, MaxSequence: l.File.MaxSeq,
		ValueStatsCols: l.File.ValueStatsCols, ExtraFiles: l.File.ExtraFiles,
	}
	for i, key := range s.PartitionKeys {
		e.Partition[key] = asExpected(types[i], vals[i])
	}
	return e
}

// statsTypes gives the types behind a value-statistics row.
func (g *goldenTable) statsTypes(m *manifest.FileMeta) []schema.Type {
	s := g.schema(m.SchemaID)
	var types []schema.Type
	names := m.ValueStatsCols
	switch {
	case m.HasStatsCols:
	case m.HasWriteCols:
		names = m.WriteCols
	default:
		for _, f := range s.Fields {
			types = append(types, f.Type)
		}
	}
	for _, n := range names {
		if i := s.FieldIndex(n); i >= 0 {
			types = append(types, s.Fields[i].Type)
			continue
		}
		types = append(types, schema.Type{Kind: schema.BigInt}) // _ROW_ID, _SEQUENCE_NUMBER
	}
	return types
}

func (g *goldenTable) keyTypes(m *manifest.FileMeta) (types []schema.Type) {
	s := g.schema(m.SchemaID)
	if m.KeyArity > 0 {
		for _, i := range s.TrimmedKey() {
			types = append(types, s.Fields[i].Type)
		}
	}
	return types
}

func requireSameBytes(t *testing.T, types []schema.Type, data []byte, arity int) {
	require.Equal(t, arity, len(types))
	vals, err := row.Decode(types, data)
	require.NoError(t, err)
	back, err := row.Encode(types, vals)
	require.NoError(t, err)
	require.Equal(t, data, back)
}

func TestRowsOfGoldenManifestsSurviveDecodeAndEncode(t *testing.T) {
	rows := 0
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		for _, snap := range g.snapshots() {
			list, ok := g.lists(snap)
			if !ok {
				continue
			}
			part := g.partTypes(g.schema(snap.SchemaID))
			for _, l := range list {
				requireSameBytes(t, part, l.PartitionStats.Min, l.PartitionStats.Arity)
				requireSameBytes(t, part, l.PartitionStats.Max, l.PartitionStats.Arity)
			}
			for _, e := range g.entries(list) {
				requireSameBytes(t, part, e.Partition, e.PartArity)
				m := &e.File
				key, value := g.keyTypes(m), g.statsTypes(m)
				if m.ValueStats.Arity == 0 {
					value = nil // statistics that were dropped
				}
				requireSameBytes(t, key, m.MinKey, m.KeyArity)
				requireSameBytes(t, key, m.MaxKey, m.KeyArity)
				requireSameBytes(t, key[:m.KeyStats.Arity], m.KeyStats.Min, m.KeyStats.Arity)
				requireSameBytes(t, key[:m.KeyStats.Arity], m.KeyStats.Max, m.KeyStats.Arity)
				requireSameBytes(t, value, m.ValueStats.Min, m.ValueStats.Arity)
				requireSameBytes(t, value, m.ValueStats.Max, m.ValueStats.Arity)
				rows += 7
			}
		}
	})
	t.Logf("%d rows", rows)
}

func TestWrittenManifestsOfGoldenEntriesReadBackEqual(t *testing.T) {
	sync := [16]byte{1, 2, 3}
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		for _, snap := range g.snapshots() {
			list, ok := g.lists(snap)
			if !ok {
				continue
			}
			data, err := manifest.WriteList(list, sync)
			require.NoError(t, err)
			back, err := manifest.ReadList(data, "list")
			require.NoError(t, err)
			require.Equal(t, list, back)

			entries := g.entries(list)
			data, err = manifest.Write(entries, sync)
			require.NoError(t, err)
			again, err := manifest.Write(entries, sync)
			require.NoError(t, err)
			require.Equal(t, data, again)
			backEntries, err := manifest.Read(data, "manifest")
			require.NoError(t, err)
			require.Equal(t, len(entries), len(backEntries))
			for i := range entries {
				if entries[i].File.ExtraFiles == nil { // null in old files, never written
					entries[i].File.ExtraFiles = []string{}
				}
				require.Equal(t, normal(entries[i]), normal(backEntries[i]))
			}
		}
	})
}

// normal maps empty lists to nil: what a reader sees of them is the same.
func normal(e manifest.Entry) manifest.Entry {
	f := &e.File
	for _, p := range []*[]string{&f.ExtraFiles, &f.ValueStatsCols, &f.WriteCols} {
		if len(*p) == 0 {
			*p = nil
		}
	}
	return e
}

func TestSummarizeListGivesTheListRecordsOfJava(t *testing.T) {
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		for _, snap := range g.snapshots() {
			list, ok := g.lists(snap)
			if !ok {
				continue
			}
			part := g.partTypes(g.schema(snap.SchemaID))
			for _, want := range list {
				got, err := manifest.SummarizeList(want.Name, want.Size, g.entries([]manifest.ListEntry{want}), part)
				require.NoError(t, err)
				if want.MinBucket == nil { // older than these fields
					got.MinBucket, got.MaxBucket, got.MinLevel, got.MaxLevel = nil, nil, nil, nil
				}
				if want.MinRowID == nil {
					got.MinRowID, got.MaxRowID = nil, nil
				}
				require.Equal(t, want, got)
			}
		}
	})
}

var notWritten = regexp.MustCompile(`(?m)^  "(\w+" : null|logOffsets" : \{ \}),?\n`)

func TestMarshalGivesTheSnapshotTextOfJava(t *testing.T) {
	byteEqual := 0
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		for name, snap := range g.snapshots() {
			text := snap.Marshal()
			back, err := manifest.ParseSnapshot(text, name)
			require.NoError(t, err)
			require.Equal(t, snap, back)
			if java := g.read("snapshot", name); bytes.Contains(java, []byte("\n  \"id\" : ")) {
				want := notWritten.ReplaceAllString(string(java), "")
				require.Equal(t, strings.ReplaceAll(want, ",\n}", "\n}"), string(text))
				byteEqual++
			}
		}
	})
	t.Logf("%d snapshot files equal in bytes", byteEqual)
}

// hello world, FORMAT §12.
func TestHelloWorldTableIsReadAndWrittenAsStored(t *testing.T) {
	root := filepath.Join(golden.Beside(t, "paimon"), "hello_world", "default.db", "hello")
	g := &goldenTable{t, root, map[int64]*schema.Schema{}}
	var sync [16]byte
	for i := range sync {
		sync[i] = byte(i + 1)
	}
	snap := g.snapshots()["snapshot-1"]
	for _, name := range []string{snap.BaseManifestList, snap.DeltaManifestList} {
		stored := g.read("manifest", name)
		list, err := manifest.ReadList(stored, name)
		require.NoError(t, err)
		written, err := manifest.WriteListCodec(list, sync, "null")
		require.NoError(t, err)
		require.Equal(t, body(t, stored, sync), body(t, written, sync))
	}
	name := "manifest-22222222-2222-4222-8222-222222222222-0"
	stored := g.read("manifest", name)
	entries, err := manifest.Read(stored, name)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	f := entries[0].File
	require.Equal(t, "data-11111111-1111-4111-8111-111111111111-0.parquet", f.Name)
	require.EqualValues(t, []int64{1133, 2, 0, 1}, []int64{f.Size, f.Rows, f.MinSeq, f.MaxSeq})
	require.EqualValues(t, 1767225600000, *f.CreationTime)
	require.Equal(t, []int64{0, 0}, f.ValueStats.NullCounts)

	written, err := manifest.WriteManifestCodec(entries, sync, "null")
	require.NoError(t, err)
	// The stored file has the negative form of array counts, with byte lengths.
	want := body(t, stored, sync)
	want = bytes.Replace(want, []byte{0x02, 0xf2, 0x03}, []byte{0x02, 0xee, 0x03}, 1) // 249 -> 247 bytes
	want = bytes.Replace(want, []byte{0x02, 0x01, 0x04, 0x02, 0x00, 0x00}, []byte{0x02, 0x02, 0x02, 0x00, 0x00}, 1)
	want = bytes.Replace(want, []byte{0x02, 0x03, 0x08, 0x02, 0x00, 0x02, 0x00, 0x00}, []byte{0x02, 0x04, 0x02, 0x00, 0x02, 0x00, 0x00}, 1)
	require.Equal(t, want, body(t, written, sync))
}

// body is what follows the header: its map has no defined order.
func body(t *testing.T, file []byte, sync [16]byte) []byte {
	i := bytes.Index(file, sync[:])
	require.Positive(t, i)
	return slices.Clone(file[i:])
}
