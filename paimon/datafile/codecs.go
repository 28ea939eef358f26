package datafile

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/tideline-db/tideline/paimon/schema"
)

const (
	sampleBytes    = 64 << 10
	sampleBytesMin = 16 << 10 // less says nothing about a page
	samplePieces   = 8
	// worthwhile is the compressed share of a column above which the time goes to
	// waste: the codec stores such bytes nearly as they are.
	worthwhile = 0.92
)

// incompressible names the columns of numbers that zstd would not make smaller,
// by a sample of the first rows: random keys, hashes, measured values. Their
// chunks are stored as they are, which costs no space and saves the search for
// repetitions, often half the time of an encode.
func (o WriterOptions) incompressible(fields []schema.Field, first arrow.RecordBatch) (names []string) {
	if c := strings.ToLower(o.Compression); c != "" && c != "zstd" {
		return nil
	}
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		return nil
	}
	var sample, packed []byte
	for i, f := range fields {
		arr := first.Column(i)
		width := fixedWidth(arr.DataType())
		if width < 4 || slices.Contains(o.Dictionary, f.Name) || arr.NullN() > 0 {
			continue
		}
		values := arr.Data().Buffers()[1].Bytes()[arr.Data().Offset()*width:][:arr.Len()*width]
		sample = spreadSample(sample[:0], values)
		if len(sample) < sampleBytesMin {
			continue
		}
		packed = resize(packed, int(codec.CompressBound(int64(len(sample)))))
		if float64(len(codec.EncodeLevel(packed, sample, max(o.ZstdLevel, 1)))) > worthwhile*float64(len(sample)) {
			names = append(names, f.Name)
		}
	}
	return names
}

// fixedWidth is the size of the numbers whose bytes a file holds as Arrow has
// them, 0 for other types.
func fixedWidth(dt arrow.DataType) int {
	switch dt.ID() {
	case arrow.INT32, arrow.FLOAT32, arrow.DATE32, arrow.TIME32:
		return 4
	case arrow.INT64, arrow.FLOAT64:
		return 8
	case arrow.TIMESTAMP:
		if dt.(*arrow.TimestampType).Unit != arrow.Nanosecond { // those are stored as INT96
			return 8
		}
	}
	return 0
}

// spreadSample takes pieces from all over the values: sorted columns repeat their
// high bytes more in a short stretch than in a page.
func spreadSample(dst, values []byte) []byte {
	if len(values) <= sampleBytes {
		return append(dst, values...)
	}
	step := len(values) / samplePieces &^ 7
	for at := 0; at+sampleBytes/samplePieces <= len(values) && len(dst) < sampleBytes; at += step {
		dst = append(dst, values[at:at+sampleBytes/samplePieces]...)
	}
	return dst
}
