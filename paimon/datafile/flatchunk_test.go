package datafile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/stretchr/testify/require"
)

// content is what a chunk holds, in a form that compares.
type content struct {
	def    []int16
	values []string
}

// contentOf decodes the only chunk of a file in steps of n entries.
func contentOf(t *testing.T, data []byte, n int) (out content) {
	t.Helper()
	f := newMemFile(data)
	meta, err := readFooter(context.Background(), f)
	require.NoError(t, err)
	info, err := chunkOf(meta, 0, 0)
	require.NoError(t, err)
	require.True(t, flat(info), "the test means to decode flat chunks: %v", info.encodings)
	d := newFlatChunk(bytes.NewReader(data), info)
	defer d.close()
	b := newLeafBlock(memory.NewGoAllocator(), physicalWidth(info.descr))
	defer b.release()
	for {
		got, err := d.decode(n, b)
		require.NoError(t, err)
		if got == 0 {
			break
		}
	}
	out.def = b.def
	for i := range b.present {
		if b.width > 0 {
			out.values = append(out.values, string(b.data.Bytes()[i*b.width:(i+1)*b.width]))
			continue
		}
		ends := asInt32s(b.offsets.Bytes())
		out.values = append(out.values, string(b.data.Bytes()[ends[i]:ends[i+1]]))
	}
	return out
}

// What the library writes comes back, in all its layouts.
func TestFlatChunksHoldWhatTheLibraryWrote(t *testing.T) {
	layouts := map[string][]parquet.WriterProperty{
		"plain":                   {},
		"plain, small pages":      {parquet.WithDataPageSize(300), parquet.WithBatchSize(16)},
		"zstd":                    {parquet.WithCompression(compress.Codecs.Zstd)},
		"v2":                      {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithDataPageSize(500), parquet.WithBatchSize(32)},
		"dictionary":              {parquet.WithDictionaryDefault(true)},
		"dictionary, v2":          {parquet.WithDictionaryDefault(true), parquet.WithDataPageVersion(parquet.DataPageV2)},
		"dictionary falling back": {parquet.WithDictionaryDefault(true), parquet.WithDictionaryPageSizeLimit(200), parquet.WithDataPageSize(200), parquet.WithBatchSize(10)},
	}
	for name, props := range layouts {
		for _, physical := range []parquet.Type{parquet.Types.Int32, parquet.Types.Int64, parquet.Types.ByteArray} {
			for _, nulls := range []int{-1, 0, 30, 100} { // percent; -1 is a required column
				t.Run(fmt.Sprintf("%s/%s/%d%% nulls", name, physical, nulls), func(t *testing.T) {
					r := rand.New(rand.NewPCG(7, uint64(nulls+1)))
					data, want := randomFlatFile(t, r, physical, nulls, props)
					for _, step := range []int{1, 7, 100, 1 << 20} {
						require.Equal(t, want, contentOf(t, data, step))
					}
				})
			}
		}
	}
}

func randomFlatFile(t *testing.T, r *rand.Rand, physical parquet.Type, nulls int, props []parquet.WriterProperty) ([]byte, content) {
	t.Helper()
	repetition := parquet.Repetitions.Optional
	if nulls < 0 {
		repetition = parquet.Repetitions.Required
	}
	node, err := pqschema.NewPrimitiveNode("c", repetition, physical, -1, -1)
	require.NoError(t, err)
	l := leafData{}
	present, missing := 0, false
	for i := range 2000 {
		if i%50 == 0 { // runs and mixtures, as both kinds of level runs want
			missing = r.IntN(2) == 0
		}
		null := nulls > 0 && (nulls == 100 || r.IntN(100) < nulls || missing)
		if nulls >= 0 {
			l.def = append(l.def, 1)
			if null {
				l.def[i] = 0
			}
		}
		if !null {
			present++
		}
	}
	few := 1 + r.IntN(300) // values a dictionary holds
	want := content{def: l.def}
	switch physical {
	case parquet.Types.Int32:
		v := make([]int32, present)
		for i := range v {
			v[i] = int32(r.IntN(few)) * 12345677
			want.values = append(want.values, string(binary.LittleEndian.AppendUint32(nil, uint32(v[i]))))
		}
		l.values = v
	case parquet.Types.Int64:
		v := make([]int64, present)
		for i := range v {
			v[i] = int64(r.IntN(few)) * 1234567890123
			want.values = append(want.values, string(binary.LittleEndian.AppendUint64(nil, uint64(v[i]))))
		}
		l.values = v
	default:
		v := make([]parquet.ByteArray, present)
		for i := range v { // empty, short, as long as a move, longer
			k := r.IntN(few)
			v[i] = bytes.Repeat([]byte{byte('a' + k%26)}, k%40)
			want.values = append(want.values, string(v[i]))
		}
		l.values = v
	}
	return foreignFile(t, pqschema.FieldList{node}, []leafData{l}, props...), want
}

// Examples from the Parquet specification's text on the encoding.
func TestHybridRuns(t *testing.T) {
	for name, c := range map[string]struct {
		data  []byte
		width int
		want  []uint32
	}{
		"packed 0 to 7 in 3 bits": {[]byte{0x03, 0x88, 0xC6, 0xFA}, 3, []uint32{0, 1, 2, 3, 4, 5, 6, 7}},
		"a run of five":           {[]byte{0x0A, 0x02}, 3, []uint32{2, 2, 2, 2, 2}},
		"a run of two bytes":      {[]byte{0x04, 0x34, 0x12}, 13, []uint32{0x1234, 0x1234}},
		"a run, then packed":      {[]byte{0x04, 0x01, 0x03, 0x88, 0xC6, 0xFA}, 3, []uint32{1, 1, 0, 1, 2}},
		"no bits":                 {[]byte{0x06}, 0, []uint32{0, 0, 0}},
		"packed in no bits":       {[]byte{0x03}, 0, []uint32{0, 0, 0}},
		"a cut last group":        {[]byte{0x03, 0x88}, 3, []uint32{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := make([]uint32, len(c.want))
			require.NoError(t, (&hybrid{data: c.data, width: c.width}).numbers(got))
			require.Equal(t, c.want, got)
		})
	}
}

func TestHybridRefusesWhatIsNotThere(t *testing.T) {
	for name, data := range map[string][]byte{
		"nothing":             {},
		"an endless number":   bytes.Repeat([]byte{0xFF}, 12),
		"a run without value": {0x04},
		"too few values":      {0x04, 0x01},
		"empty runs":          {0x00, 0x01, 0x00, 0x01},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, (&hybrid{data: data, width: 5}).numbers(make([]uint32, 3)))
			_, err := (&hybrid{data: data, width: 1}).flags(make([]int16, 3))
			require.Error(t, err)
		})
	}
}

// FuzzHybrid compares with a decoder that reads bit by bit.
func FuzzHybrid(f *testing.F) {
	f.Add([]byte{0x03, 0x88, 0xC6, 0xFA}, 3, 8)
	f.Add([]byte{0x0A, 0x02}, 3, 5)
	f.Add([]byte{0x04, 0x01, 0x03, 0xA5}, 1, 10)
	f.Fuzz(func(t *testing.T, data []byte, width, n int) {
		if width < 0 || width > 32 || n < 0 || n > 1<<12 {
			return
		}
		want, ok := bitByBit(data, width, n)
		got := make([]uint32, n)
		err := (&hybrid{data: data, width: width}).numbers(got)
		require.Equal(t, ok, err == nil)
		if ok {
			require.Equal(t, want, got)
		}
		if width != 1 {
			return
		}
		flags, ones := make([]int16, n), 0
		if count, err := (&hybrid{data: data, width: 1}).flags(flags); err == nil {
			for i, v := range flags {
				require.EqualValues(t, want[i], v)
				ones += int(v)
			}
			require.Equal(t, ones, count)
		}
	})
}

func bitByBit(data []byte, width, n int) ([]uint32, bool) {
	out := []uint32{}
	for len(out) < n {
		head, shift := uint64(0), 0
		for {
			if len(data) == 0 || shift > 63 {
				return nil, false
			}
			b := data[0]
			data = data[1:]
			if shift == 63 && b > 1 {
				return nil, false
			}
			head |= uint64(b&0x7F) << shift
			shift += 7
			if b&0x80 == 0 {
				break
			}
		}
		count := head >> 1
		if head&1 == 0 {
			size, v := (width+7)/8, uint32(0)
			if len(data) < size {
				return nil, false
			}
			for i := range size {
				v |= uint32(data[i]) << (8 * i)
			}
			data = data[size:]
			for ; count > 0 && len(out) < n; count-- {
				out = append(out, v)
			}
			continue
		}
		bits := int(min(count, 1<<20)) * 8 * width
		if width == 0 {
			for i := uint64(0); i < min(count, 1<<20)*8 && len(out) < n; i++ {
				out = append(out, 0)
			}
			continue
		}
		bits = min(bits, len(data)*8)
		for at := 0; at+width <= bits && len(out) < n; at += width {
			v := uint32(0)
			for k := range width {
				v |= uint32(data[(at+k)/8]>>((at+k)%8)&1) << k
			}
			out = append(out, v)
		}
		data = data[bits/8:]
	}
	return out, true
}
