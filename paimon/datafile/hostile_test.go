package datafile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// smallFile is a file with flat and nested columns, dictionaries and several
// pages, and its fields.
func smallFile(t testing.TB) ([]byte, []schema.Field) {
	fields := []schema.Field{
		{ID: 0, Name: "k", Type: schema.Type{Kind: schema.BigInt}},
		{ID: 1, Name: "s", Type: text()},
		{ID: 2, Name: "d", Type: decimalType(25, 2)},
		{ID: 3, Name: "t", Type: stamp(schema.Timestamp, 9)},
		{ID: 4, Name: "b", Type: typ(schema.Boolean)},
		{ID: 5, Name: "l", Type: schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(text())}},
		{ID: 6, Name: kindColumn, Type: schema.Type{Kind: schema.TinyInt}},
	}
	rng := rand.New(rand.NewPCG(5, 6))
	batch := randomBatch(rng, fields, 60, 0.2)
	data, _ := encode(t, fields, WriterOptions{PageBytes: 200, Dictionary: []string{"s"}}, batch)
	return data, fields
}

func TestTruncatedFilesAreCorrupt(t *testing.T) {
	data, fields := smallFile(t)
	for n := range len(data) {
		_, err := tryDecode(memory.DefaultAllocator, data[:n], fields, ReadOptions{})
		require.ErrorIs(t, err, errs.ErrCorrupt, "cut at %d of %d", n, len(data))
		var c *errs.CorruptError
		require.ErrorAs(t, err, &c)
		require.Equal(t, "f.parquet", c.File)
	}
}

// Any single damaged byte gives rows or a typed error, never a panic, and the
// memory stays near the size of the file.
func TestDamagedBytesNeverPanic(t *testing.T) {
	data, fields := smallFile(t)
	for at := range data {
		for _, v := range []byte{0, 0x7F, 0xFF, data[at] ^ 1, data[at] ^ 0x80} {
			bad := bytes.Clone(data)
			bad[at] = v
			tolerate(t, checkedSilently(t), bad, fields)
		}
	}
}

// checkedSilently is a counting allocator of its own for one attempt.
func checkedSilently(testing.TB) *memory.CheckedAllocator {
	return memory.NewCheckedAllocator(memory.NewGoAllocator())
}

// tolerate decodes hostile bytes: an error must be typed, and what was taken
// from the allocator must be given back.
func tolerate(t testing.TB, mem *memory.CheckedAllocator, data []byte, fields []schema.Field) {
	recs, err := tryDecode(mem, data, fields, ReadOptions{BatchRows: 1000})
	releaseAll(recs)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrUnsupported) && !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("an untyped error: %v", err)
	}
	require.Zero(t, mem.CurrentAlloc())
}

func TestStoreFailuresAreNotDamage(t *testing.T) {
	data, fields := smallFile(t)
	ctx := context.Background()
	reads := 0
	for fail := 1; ; fail++ {
		f := &failingFile{memFile: newMemFile(data), failAt: fail}
		err := func() error {
			r, err := Open(ctx, f, ReaderOptions{})
			if err != nil {
				return err
			}
			b, err := r.Read(ctx, fields, ReadOptions{})
			if err != nil {
				return err
			}
			defer b.Close()
			for {
				rec, err := b.Next(ctx)
				if err != nil {
					return err
				}
				rec.Release()
			}
		}()
		if errors.Is(err, io.EOF) {
			break
		}
		require.ErrorIs(t, err, errDisk)
		require.NotErrorIs(t, err, errs.ErrCorrupt)
		reads++
	}
	require.Greater(t, reads, len(fields))
}

var errDisk = errors.New("disk")

type failingFile struct {
	*memFile
	failAt int
}

func (f *failingFile) ReadAt(p []byte, at int64) (int, error) {
	f.failAt--
	if f.failAt == 0 {
		return 0, errDisk
	}
	return f.memFile.ReadAt(p, at)
}

// A footer that claims huge lists or a bottomless schema is refused before
// anything is allocated for it.
func TestHostileFootersTakeNoMemory(t *testing.T) {
	deep := []byte{0x15, 0x02, 0x19, 0xFC} // version 1, list of structs ...
	deep = binary.AppendUvarint(deep, 100_000)
	for range 100_000 {
		deep = append(deep, 0x55, 0x02, 0) // num_children 1
	}
	huge := []byte{0x15, 0x02, 0x19, 0xFC}
	huge = binary.AppendUvarint(huge, 1<<31-1)
	for name, footer := range map[string][]byte{"deep": deep, "huge": huge, "empty struct": {0}} {
		t.Run(name, func(t *testing.T) {
			data := append([]byte(magic), footer...)
			data = binary.LittleEndian.AppendUint32(data, uint32(len(footer)))
			data = append(data, magic...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Open(context.Background(), newMemFile(data), ReaderOptions{})
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, errs.ErrCorrupt)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*len(data)+4<<20))
		})
	}
}

func TestMissingColumnIsNamed(t *testing.T) {
	data, _ := smallFile(t)
	_, err := tryDecode(memory.DefaultAllocator, data, []schema.Field{{Name: "nope", Type: text()}}, ReadOptions{})
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.ErrorContains(t, err, "nope")
	_, err = tryDecode(memory.DefaultAllocator, data, []schema.Field{{Name: "s", Type: typ(schema.Int)}}, ReadOptions{})
	require.ErrorIs(t, err, errs.ErrUnsupported)
	require.ErrorContains(t, err, "column s")
}

func TestWriterRefusesWhatDoesNotFit(t *testing.T) {
	fields := []schema.Field{{ID: 0, Name: "k", Type: schema.Type{Kind: schema.BigInt}}}
	w, err := NewWriter(io.Discard, fields, WriterOptions{})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	nullable := []schema.Field{{ID: 0, Name: "k", Type: typ(schema.BigInt)}}
	require.ErrorIs(t, w.Write(randomBatch(rng, nullable, 3, 1)), errs.ErrInvalid)
	other := []schema.Field{{ID: 0, Name: "k", Type: schema.Type{Kind: schema.Int}}}
	require.ErrorIs(t, w.Write(randomBatch(rng, other, 3, 0)), errs.ErrInvalid)
	require.NoError(t, w.Write(randomBatch(rng, fields, 3, 0)), "a refused batch leaves the writer usable")
	res, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, 3, res.Rows)
	require.ErrorIs(t, w.Write(randomBatch(rng, fields, 3, 0)), errs.ErrClosed)
}

func TestWriterReportsSinkFailures(t *testing.T) {
	fields := benchFields()
	batch := benchBatches(2000, 2000)[0]
	full, _ := encode(t, fields, WriterOptions{}, batch)
	for limit := range 40 {
		w, err := NewWriter(&limitedSink{left: limit * len(full) / 40}, fields, WriterOptions{})
		if err == nil {
			err = w.Write(batch)
		}
		if err == nil {
			_, err = w.Close()
		}
		require.ErrorIs(t, err, errDisk, "%d bytes", limit)
	}
}

type limitedSink struct{ left int }

func (l *limitedSink) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, errDisk
	}
	l.left -= len(p)
	return len(p), nil
}

func FuzzOpenAndRead(f *testing.F) {
	data, fields := smallFile(f)
	f.Add(data)
	one := []schema.Field{{ID: 0, Name: "k", Type: schema.Type{Kind: schema.BigInt}}}
	for _, o := range []WriterOptions{{}, {Compression: "none"}, {Compression: "snappy"}, {Dictionary: []string{"k"}}} {
		small, _ := encode(f, one, o, randomBatch(rand.New(rand.NewPCG(1, 1)), one, 5, 0))
		f.Add(small)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tolerate(t, checkedSilently(t), data, fields)
		tolerate(t, checkedSilently(t), data, one)
		r, err := Open(context.Background(), newMemFile(data), ReaderOptions{})
		if err == nil {
			for _, g := range r.RowGroups() {
				for _, fd := range fields {
					g.Stats(fd)
				}
			}
		}
	})
}

func FuzzPageHeader(f *testing.F) {
	f.Add([]byte{0x15, 0, 0x15, 2, 0x15, 2, 0x2C, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		_, n, _ := parsePageHeader(data)
		require.LessOrEqual(t, n, len(data))
		n, err := deltaSpan(data, 1000)
		if err == nil {
			require.LessOrEqual(t, n, len(data))
		}
	})
}
