package datafile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/paimon/schema"
)

const benchRows = 1 << 20

// benchFields is table T1: key, integer, double and 16 hex characters, with the
// system columns of a primary-key file.
func benchFields() []schema.Field {
	k := schema.Field{ID: 0, Name: "k", Type: schema.Type{Kind: schema.BigInt}}
	return []schema.Field{
		schema.KeyField(k), schema.SequenceField(), schema.ValueKindField(), k,
		{ID: 1, Name: "a", Type: typ(schema.BigInt)},
		{ID: 2, Name: "b", Type: typ(schema.Double)},
		{ID: 3, Name: "c", Type: text()},
	}
}

// benchBatches holds T1 rows sorted by key, sequence numbers in arrival order.
func benchBatches(rows, batch int) []arrow.RecordBatch {
	rng := rand.New(rand.NewPCG(7, 7))
	fields := benchFields()
	var out []arrow.RecordBatch
	for from := 0; from < rows; from += batch {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), schema.ArrowSchema(fields))
		for i := from; i < min(from+batch, rows); i++ {
			key := int64(i)<<32 | int64(rng.Uint32())
			b.Field(0).(*array.Int64Builder).Append(key)
			b.Field(1).(*array.Int64Builder).Append(rng.Int64N(int64(rows)))
			b.Field(2).(*array.Int8Builder).Append(0)
			b.Field(3).(*array.Int64Builder).Append(key)
			b.Field(4).(*array.Int64Builder).Append(rng.Int64())
			b.Field(5).(*array.Float64Builder).Append(rng.NormFloat64())
			b.Field(6).(*array.StringBuilder).Append(fmt.Sprintf("%016x", rng.Uint64()))
		}
		out = append(out, b.NewRecordBatch())
		b.Release()
	}
	return out
}

func reportRows(b *testing.B, rows int) {
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func BenchmarkEncodeT1(b *testing.B) {
	batches := benchBatches(benchRows, 64<<10)
	size := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		w, err := NewWriter(io.Discard, benchFields(), WriterOptions{})
		require.NoError(b, err)
		for _, rec := range batches {
			require.NoError(b, w.Write(rec))
		}
		res, err := w.Close()
		require.NoError(b, err)
		size = res.Bytes
	}
	reportRows(b, benchRows)
	b.ReportMetric(float64(size)/1e6, "MB")
}

func BenchmarkScanT1(b *testing.B) {
	data, _ := encode(b, benchFields(), WriterOptions{}, benchBatches(benchRows, 64<<10)...)
	for _, tc := range []struct {
		name string
		mem  memory.Allocator
	}{{"heap", memory.NewGoAllocator()}, {"pool", &Pool{}}} {
		b.Run(tc.name, func(b *testing.B) {
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				r, err := Open(ctx, newMemFile(data), ReaderOptions{Alloc: tc.mem})
				require.NoError(b, err)
				it, err := r.Read(ctx, benchFields(), ReadOptions{})
				require.NoError(b, err)
				rows := int64(0)
				for {
					rec, err := it.Next(ctx)
					if errors.Is(err, io.EOF) {
						break
					}
					require.NoError(b, err)
					rows += rec.NumRows()
					rec.Release()
				}
				it.Close()
				require.EqualValues(b, benchRows, rows)
			}
			reportRows(b, benchRows)
		})
	}
}

// The yardstick: the library's own record reader over the same file.
func BenchmarkStockScanT1(b *testing.B) {
	data, _ := encode(b, benchFields(), WriterOptions{}, benchBatches(benchRows, 64<<10)...)
	for _, tc := range []struct {
		name string
		mem  memory.Allocator
	}{{"heap", memory.NewGoAllocator()}, {"pool", &Pool{}}} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pr, err := file.NewParquetReader(bytes.NewReader(data))
				require.NoError(b, err)
				fr, err := pqarrow.NewFileReader(pr, pqarrow.ArrowReadProperties{BatchSize: DefaultBatchRows}, tc.mem)
				require.NoError(b, err)
				rr, err := fr.GetRecordReader(context.Background(), nil, nil)
				require.NoError(b, err)
				rows := int64(0)
				for rr.Next() {
					rows += rr.RecordBatch().NumRows()
				}
				require.EqualValues(b, benchRows, rows)
				rr.Release()
			}
			reportRows(b, benchRows)
		})
	}
}
