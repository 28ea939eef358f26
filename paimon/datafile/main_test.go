package datafile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/paimon/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memFile is a file in memory.
type memFile struct {
	*bytes.Reader
	name string
}

func newMemFile(b []byte) *memFile { return &memFile{Reader: bytes.NewReader(b), name: "f.parquet"} }

func (m *memFile) Name() string { return m.name }
func (m *memFile) Close() error { return nil }

// checked returns an allocator that must be empty again when the test ends.
func checked(t testing.TB) *memory.CheckedAllocator {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// encode writes batches to a file in memory.
func encode(t testing.TB, fields []schema.Field, o WriterOptions, batches ...arrow.RecordBatch) ([]byte, Result) {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, fields, o)
	require.NoError(t, err)
	for _, b := range batches {
		require.NoError(t, w.Write(b))
	}
	res, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, buf.Len(), res.Bytes)
	return buf.Bytes(), res
}

// decode reads all batches of a file.
func decode(t testing.TB, mem memory.Allocator, data []byte, want []schema.Field, o ReadOptions) []arrow.RecordBatch {
	t.Helper()
	out, err := tryDecode(mem, data, want, o)
	require.NoError(t, err)
	return out
}

func tryDecode(mem memory.Allocator, data []byte, want []schema.Field, o ReadOptions) (out []arrow.RecordBatch, err error) {
	ctx := context.Background()
	r, err := Open(ctx, newMemFile(data), ReaderOptions{Alloc: mem})
	if err != nil {
		return nil, err
	}
	b, err := r.Read(ctx, want, o)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	for {
		rec, err := b.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, rec)
	}
}

func releaseAll(recs []arrow.RecordBatch) {
	for _, r := range recs {
		r.Release()
	}
}

// joined concatenates column i of all batches.
func joined(t testing.TB, recs []arrow.RecordBatch, i int) arrow.Array {
	t.Helper()
	parts := make([]arrow.Array, len(recs))
	for k, r := range recs {
		parts[k] = r.Column(i)
	}
	out, err := array.Concatenate(parts, memory.NewGoAllocator())
	require.NoError(t, err)
	return out
}
