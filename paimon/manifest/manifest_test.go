package manifest_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/twmb/avro/ocf"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

var testSync = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func ptr[T any](v T) *T { return &v }

var intTypes = []schema.Type{{Kind: schema.Int}}

func intRow(t testing.TB, v any) []byte {
	b, err := row.Encode(intTypes, []row.Value{v})
	require.NoError(t, err)
	return b
}

// sample has a value in every field.
func sample(t testing.TB, i int) manifest.Entry {
	stats := manifest.Stats{Arity: 1, Min: intRow(t, int32(i)), Max: intRow(t, int32(i+9)), NullCounts: []int64{int64(i % 3)}}
	return manifest.Entry{
		Kind: manifest.Add, Partition: intRow(t, int32(i%7)), PartArity: 1, Bucket: i % 4, TotalBuckets: 4,
		File: manifest.FileMeta{
			Name: fmt.Sprintf("data-0b5c1fd6-5bb7-4d1e-9f6c-3a1f3b7d9c11-%d.parquet", i), Size: int64(1000 + i), Rows: 10,
			MinKey: stats.Min, MaxKey: stats.Max, KeyArity: 1, KeyStats: stats, ValueStats: stats,
			MinSeq: int64(i * 10), MaxSeq: int64(i*10 + 9), SchemaID: 1, Level: i % 6, ExtraFiles: []string{},
			CreationTime: ptr(int64(1767225600000)), DeleteRows: ptr(int64(0)), Source: ptr(0),
		},
	}
}

func samples(t testing.TB, n int) []manifest.Entry {
	out := make([]manifest.Entry, n)
	for i := range out {
		out[i] = sample(t, i)
	}
	return out
}

func TestManifestKeepsEveryField(t *testing.T) {
	full := sample(t, 1)
	full.Kind = manifest.Delete
	full.File.ExtraFiles = []string{"x.index", "y.index"}
	full.File.EmbeddedIndex = []byte{0, 1}
	full.File.ValueStatsCols, full.File.HasStatsCols = []string{"a"}, true
	full.File.ExternalPath = ptr("FILE:/tmp/x")
	full.File.FirstRowID = ptr(int64(5))
	full.File.WriteCols, full.File.HasWriteCols = []string{"a", "b"}, true
	full.File.Source = ptr(1)
	full.File.ValueStats.NullCounts = []int64{-1}
	want := []manifest.Entry{full, sample(t, 2)}
	data, err := manifest.Write(want, testSync)
	require.NoError(t, err)
	got, err := manifest.Read(data, "m")
	require.NoError(t, err)
	require.Equal(t, want, got)

	none := sample(t, 3)
	none.File.ValueStatsCols, none.File.HasStatsCols = []string{}, true
	none.File.CreationTime, none.File.DeleteRows, none.File.Source = nil, nil, nil
	none.File.EmbeddedIndex = []byte{}
	data, err = manifest.Write([]manifest.Entry{none}, testSync)
	require.NoError(t, err)
	got, err = manifest.Read(data, "m")
	require.NoError(t, err)
	require.Equal(t, []manifest.Entry{none}, got, "empty and null stay apart")
}

func TestManifestTakesNilRowsAsEmptyOnes(t *testing.T) {
	data, err := manifest.Write([]manifest.Entry{{File: manifest.FileMeta{Name: "f"}}}, testSync)
	require.NoError(t, err)
	got, err := manifest.Read(data, "m")
	require.NoError(t, err)
	require.Equal(t, row.EmptyRow, got[0].Partition)
	require.Equal(t, row.EmptyRow, got[0].File.ValueStats.Max)
}

// An independent reader of containers decodes what is written, in blocks.
func TestManifestIsReadByTheAvroLibrary(t *testing.T) {
	want := samples(t, 9000)
	data, err := manifest.Write(want, testSync)
	require.NoError(t, err)
	r, err := ocf.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, manifest.ManifestSchema, r.Schema().String())
	require.Greater(t, bytes.Count(data, testSync[:]), 2, "more than one block")
	n := 0
	for {
		var rec map[string]any
		if err := r.Decode(&rec); err != nil {
			break
		}
		require.Equal(t, want[n].File.Name, rec["_FILE"].(map[string]any)["_FILE_NAME"])
		n++
	}
	require.Equal(t, len(want), n)
}

func TestWriteRefusesWhatNoReaderAccepts(t *testing.T) {
	for name, spoil := range map[string]func(*manifest.Entry){
		"kind":            func(e *manifest.Entry) { e.Kind = 2 },
		"no name":         func(e *manifest.Entry) { e.File.Name = "" },
		"name with slash": func(e *manifest.Entry) { e.File.Name = "a/b" },
		"short partition": func(e *manifest.Entry) { e.PartArity = 2 },
		"nil key":         func(e *manifest.Entry) { e.File.MinKey = nil },
		"bucket":          func(e *manifest.Entry) { e.Bucket = 1 << 40 },
	} {
		e := sample(t, 1)
		spoil(&e)
		_, err := manifest.Write([]manifest.Entry{e}, testSync)
		require.ErrorIs(t, err, errs.ErrInvalid, name)
	}
	e := sample(t, 1)
	e.File.HasWriteColsSequences = true
	_, err := manifest.Write([]manifest.Entry{e}, testSync)
	require.ErrorIs(t, err, errs.ErrUnsupported)
}

// repack rewrites the single block of an uncompressed container.
func repack(t testing.TB, data []byte, codec string, pack func([]byte) []byte) []byte {
	data = bytes.Replace(data, []byte("\x14avro.codec\x08null"), append([]byte("\x14avro.codec"), lengthText(codec)...), 1)
	at := bytes.Index(data, testSync[:]) + 16
	out := bytes.Clone(data[:at])
	count, n := binary.Varint(data[at:])
	size, m := binary.Varint(data[at+n:])
	body := pack(data[at+n+m : at+n+m+int(size)])
	out = binary.AppendVarint(out, count)
	out = binary.AppendVarint(out, int64(len(body)))
	return append(append(out, body...), testSync[:]...)
}

func lengthText(s string) []byte {
	return append(binary.AppendVarint(nil, int64(len(s))), s...)
}

func plain(t testing.TB, n int) []byte {
	data, err := manifest.WriteManifestCodec(samples(t, n), testSync, "null")
	require.NoError(t, err)
	return data
}

func packers(t testing.TB) map[string]func([]byte) []byte {
	return map[string]func([]byte) []byte{
		"null": func(b []byte) []byte { return b },
		"deflate": func(b []byte) []byte {
			var out bytes.Buffer
			w, err := flate.NewWriter(&out, 6)
			require.NoError(t, err)
			_, err = w.Write(b)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			return out.Bytes()
		},
		"snappy": func(b []byte) []byte {
			return binary.BigEndian.AppendUint32(snappy.Encode(nil, b), crc32.ChecksumIEEE(b))
		},
		"zstandard": func(b []byte) []byte { // as a stream: no content size in the frame
			var out bytes.Buffer
			w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
			require.NoError(t, err)
			_, err = w.Write(b)
			require.NoError(t, err)
			require.NoError(t, w.Flush())
			require.NoError(t, w.Close())
			return out.Bytes()
		},
	}
}

func TestReadTakesEveryCodec(t *testing.T) {
	want := samples(t, 20)
	for codec, pack := range packers(t) {
		got, err := manifest.Read(repack(t, plain(t, 20), codec, pack), "m")
		require.NoError(t, err, codec)
		require.Equal(t, want, got, codec)
	}
	_, err := manifest.Read(repack(t, plain(t, 20), "bzip2", packers(t)["null"]), "m")
	require.ErrorIs(t, err, errs.ErrUnsupported)
	require.ErrorContains(t, err, "bzip2")
}

func TestReadRefusesOtherFormatsByName(t *testing.T) {
	for head, word := range map[string]string{"ORC\x11": "ORC", "PAR1": "Parquet"} {
		_, err := manifest.Read([]byte(head+"..."), "manifest-1")
		require.ErrorIs(t, err, errs.ErrUnsupported)
		require.ErrorContains(t, err, word)
		_, err = manifest.ReadList([]byte(head+"..."), "list-1")
		require.ErrorIs(t, err, errs.ErrUnsupported)
	}
}

func TestReadRefusesDamage(t *testing.T) {
	good := plain(t, 3)
	replace := func(old, new string) []byte {
		require.Contains(t, string(good), old)
		return bytes.Replace(good, []byte(old), []byte(new), 1)
	}
	head := bytes.Index(good, testSync[:])
	for name, data := range map[string][]byte{
		"empty":               nil,
		"other magic":         []byte("Obj\x02"),
		"header only":         good[:head],
		"cut in a block":      good[:len(good)-30],
		"cut in the sync":     good[:len(good)-1],
		"other sync":          append(bytes.Clone(good[:len(good)-1]), 0),
		"no schema":           replace("avro.schema", "avro.schemx"),
		"schema no JSON":      replace(`{"type":"record"`, `{"type";"record"`),
		"missing field":       replace(`"_FILE_SIZE"`, `"_FILE_SIZ2"`),
		"missing top field":   replace(`"_BUCKET"`, `"_BUCKE2"`),
		"name with a slash":   replace("data-0b5c", "data/0b5c"),
		"a million records":   append(bytes.Clone(good[:head+16]), append(binary.AppendVarint(nil, 1<<40), good[head+17:]...)...),
		"negative count":      append(bytes.Clone(good[:head+16]), append(binary.AppendVarint(nil, -3), good[head+17:]...)...),
		"one record too few":  append(bytes.Clone(good[:head+16]), append(binary.AppendVarint(nil, 2), good[head+17:]...)...),
		"one record too many": append(bytes.Clone(good[:head+16]), append(binary.AppendVarint(nil, 4), good[head+17:]...)...),
		"version 3":           repack(t, good, "null", func(b []byte) []byte { return append([]byte{6}, b[1:]...) }),
		"kind 2":              repack(t, good, "null", func(b []byte) []byte { return append([]byte{4, 4}, b[2:]...) }),
		"header of 2^62 keys": []byte("Obj\x01\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
		"snappy checksum":     repack(t, good, "snappy", func(b []byte) []byte { return append(snappy.Encode(nil, b), 0, 0, 0, 0) }),
		"zstd noise":          repack(t, good, "zstandard", func(b []byte) []byte { return b }),
		"deflate noise":       repack(t, good, "deflate", func(b []byte) []byte { return []byte{7} }),
		"null as the record":  []byte("Obj\x01\x02\x16avro.schema" + string(lengthText(`["null",`+manifest.ManifestSchema+`]`)) + "\x00" + string(testSync[:]) + "\x02\x02\x00" + string(testSync[:])),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Read(data, "manifest-1")
			require.ErrorIs(t, err, errs.ErrCorrupt)
			require.ErrorContains(t, err, "manifest-1")
		})
	}
}

func TestReadBoundsWhatABombDecompressesTo(t *testing.T) {
	zeros := make([]byte, 24<<20)
	for codec, pack := range packers(t) {
		if codec == "null" {
			continue
		}
		bomb := repack(t, plain(t, 1), codec, func([]byte) []byte { return pack(zeros) })
		if len(bomb) > 200<<10 { // snappy packs 20 to 1 only, which is within the limit
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := manifest.Read(bomb, "m")
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, errs.ErrCorrupt, codec)
		limit := 8<<20 + 256*uint64(len(bomb))
		require.Less(t, after.TotalAlloc-before.TotalAlloc, 6*limit, codec)
	}
}

func TestReadMatchesFieldsByName(t *testing.T) {
	// Another engine's record name, a field it adds, and a field it lacks.
	text := strings.Replace(manifest.ListSchema, `"name":"record","namespace":"org.apache.paimon.avro.generated"`, `"name":"ManifestFileMeta"`, 1)
	text = strings.Replace(text, `{"name":"_MIN_ROW_ID","type":["null","long"],"default":null}`, `{"name":"_NEW","type":{"type":"array","items":"string"}}`, 1)
	require.NotContains(t, text, "_MIN_ROW_ID")
	var rec []byte
	rec = append(rec, 4)
	rec = append(rec, lengthText("manifest-1")...)
	rec = binary.AppendVarint(rec, 77)
	rec = append(rec, 2, 0)
	rec = append(rec, append([]byte{24}, make([]byte, 12)...)...)
	rec = append(rec, append([]byte{24}, make([]byte, 12)...)...)
	rec = append(rec, 0)                            // null counts null
	rec = append(rec, 10)                           // schema 5
	rec = append(rec, 2, 2, 2, 4, 0, 0)             // buckets 1..2, levels null
	rec = append(rec, 2, 2, 'x', 0)                 // _NEW ["x"]
	rec = append(rec, 2, 6)                         // max row id 3
	file := []byte("Obj\x01\x02\x16avro.schema")    // no codec: null
	file = append(file, lengthText(text)...)        //
	file = append(append(file, 0), testSync[:]...)  //
	file = append(file, 2)                          // one record
	file = append(file, lengthText(string(rec))...) //
	file = append(file, testSync[:]...)
	got, err := manifest.ReadList(file, "l")
	require.NoError(t, err)
	require.Equal(t, []manifest.ListEntry{{
		Name: "manifest-1", Size: 77, Added: 1, SchemaID: 5, MinBucket: ptr(1), MaxBucket: ptr(2), MaxRowID: ptr(int64(3)),
		PartitionStats: manifest.Stats{Min: row.EmptyRow, Max: row.EmptyRow, NullCounts: []int64{}},
	}}, got)
}

func FuzzManifest(f *testing.F) {
	f.Add(plain(f, 2))
	data, err := manifest.Write(samples(f, 3), testSync)
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := manifest.Read(data, "m")
		if err != nil {
			return
		}
		if _, err := manifest.Live(entries); err != nil {
			require.ErrorIs(t, err, errs.ErrCorrupt)
		}
		written, err := manifest.Write(entries, testSync)
		if err != nil {
			return
		}
		_, err = manifest.Read(written, "m")
		require.NoError(t, err)
	})
}

func FuzzManifestList(f *testing.F) {
	e, err := manifest.SummarizeList("manifest-1", 9, samples(f, 4), intTypes)
	require.NoError(f, err)
	for _, codec := range []string{"null", "zstandard"} {
		data, err := manifest.WriteListCodec([]manifest.ListEntry{e}, testSync, codec)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := manifest.ReadList(data, "l")
		if err != nil {
			return
		}
		if written, err := manifest.WriteList(list, testSync); err == nil {
			_, err = manifest.ReadList(written, "l")
			require.NoError(t, err)
		}
	})
}

func BenchmarkWrite10000(b *testing.B) {
	entries := samples(b, 10000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Write(entries, testSync); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead10000(b *testing.B) {
	data, err := manifest.Write(samples(b, 10000), testSync)
	require.NoError(b, err)
	b.ReportMetric(float64(len(data)), "file-bytes")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Read(data, "m"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLive10000(b *testing.B) {
	entries := samples(b, 10000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Live(entries); err != nil {
			b.Fatal(err)
		}
	}
}

func TestReadRefusesAZstdWindowAboveTheLimitByName(t *testing.T) {
	wide := func(b []byte) []byte {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(64<<20))
		require.NoError(t, err)
		_, err = w.Write(b)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	_, err := manifest.Read(repack(t, plain(t, 3), "zstandard", wide), "m")
	require.ErrorIs(t, err, errs.ErrUnsupported)
	require.ErrorContains(t, err, "window")
}
