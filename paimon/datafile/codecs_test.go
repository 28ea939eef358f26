package datafile

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/paimon/schema"
)

// Random numbers are stored as they are, what repeats and what is short is
// compressed, and other codecs than zstd are left alone.
func TestOnlyRandomNumbersStayUncompressed(t *testing.T) {
	long := schema.Type{Kind: schema.BigInt}
	fields := []schema.Field{{ID: 0, Name: "random", Type: long}, {ID: 1, Name: "counter", Type: long}, {ID: 2, Name: "text", Type: text()}}
	for _, c := range []struct {
		compression string
		rows        int
		want        []compress.Compression
	}{
		{"zstd", 20_000, []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Zstd, compress.Codecs.Zstd}},
		{"", 20_000, []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Zstd, compress.Codecs.Zstd}},
		{"zstd", 100, []compress.Compression{compress.Codecs.Zstd, compress.Codecs.Zstd, compress.Codecs.Zstd}},
		{"snappy", 20_000, []compress.Compression{compress.Codecs.Snappy, compress.Codecs.Snappy, compress.Codecs.Snappy}},
	} {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), schema.ArrowSchema(fields))
		r := rand.New(rand.NewPCG(1, 2))
		for i := range c.rows {
			b.Field(0).(*array.Int64Builder).Append(int64(r.Uint64()))
			b.Field(1).(*array.Int64Builder).Append(int64(i))
			b.Field(2).(*array.StringBuilder).Append("again and again")
		}
		rec := b.NewRecordBatch()
		data, _ := encode(t, fields, WriterOptions{Compression: c.compression}, rec)
		pq, err := file.NewParquetReader(bytes.NewReader(data))
		require.NoError(t, err)
		for i, want := range c.want {
			chunk, err := pq.MetaData().RowGroup(0).ColumnChunk(i)
			require.NoError(t, err)
			require.Equal(t, want, chunk.Compression(), "%q, %d rows, column %s", c.compression, c.rows, fields[i].Name)
		}
		back := decode(t, checked(t), data, fields, ReadOptions{})
		for i := range fields {
			require.True(t, array.Equal(rec.Column(i), joined(t, back, i)))
		}
		releaseAll(back)
	}
}
