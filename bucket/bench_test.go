package bucket

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/paimon/schema"
)

// mix is the finaliser of splitmix64, the generator of all benchmark rows.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// benchTables are T1 (int64 key), T2 (long string key with a common prefix) and
// T3 (three key columns), with 40, about 70 and about 70 bytes a row.
func benchTable(t testing.TB, name string) *Table {
	values := []schema.Field{
		field("a", notNull(schema.BigInt)), field("b", notNull(schema.Double)), field("c", text(false)),
	}
	switch name {
	case "T1":
		return newTable(t, tableSpec{fields: append([]schema.Field{field("k", notNull(schema.BigInt))}, values...), key: []string{"k"}})
	case "T2":
		return newTable(t, tableSpec{fields: append([]schema.Field{field("k", text(false))}, values...), key: []string{"k"}})
	}
	ts := schema.Type{Kind: schema.Timestamp, Prec: 6}
	keys := []schema.Field{field("tenant", notNull(schema.Int)), field("id", text(false)), field("ts", ts)}
	return newTable(t, tableSpec{fields: append(keys, values...), key: []string{"tenant", "id", "ts"}})
}

func benchBatch(table *Table, from, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, table.ArrowSchema())
	for i := range rows {
		k := mix(uint64(from+i)) >> 1
		for c, f := range table.Schema.Fields {
			switch w := b.Field(c).(type) {
			case *array.Int64Builder:
				w.Append(int64(k))
			case *array.Int32Builder:
				w.Append(int32(k % 97))
			case *array.TimestampBuilder:
				w.Append(arrow.Timestamp(k % 1e15))
			case *array.Float64Builder:
				w.Append(float64(k))
			case *array.StringBuilder:
				switch {
				case f.Name == "k":
					w.Append(fmt.Sprintf("customer/account%016x%016x", k, mix(k))[:24+k%25])
				case f.Name == "id":
					w.Append(fmt.Sprintf("%012d", k%1e12))
				default:
					w.Append(fmt.Sprintf("%016x", k))
				}
			}
		}
	}
	return b.NewRecordBatch()
}

// BenchmarkWrite is what a write costs in this package, as rows a second.
func BenchmarkWrite(b *testing.B) {
	for _, name := range []string{"T1", "T2", "T3"} {
		for _, rows := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				table := benchTable(b, name)
				batches := make([]arrow.RecordBatch, 64)
				for i := range batches {
					batches[i] = benchBatch(table, i*rows, rows)
				}
				p := NewPreparer(table)
				s := newState(table)
				b.ReportAllocs()
				b.ResetTimer()
				written := 0
				for i := range b.N {
					prepared, err := p.Prepare(batches[i%len(batches)], nil, nil)
					if err != nil {
						b.Fatal(err)
					}
					if err := s.Append(prepared.Parts[0], int64(i)); err != nil {
						b.Fatal(err)
					}
					s.View()
					if written += rows; written >= 1<<20 {
						s.Seal(int64(i))
						s.Reclaim(math.MaxInt64)
						written = 0
					}
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			})
		}
	}
}

// kernel is the floor of a T1 write by hand: sort by key, copy four columns,
// sequence numbers and kinds. Below 64 rows it sorts by comparison.
type kernel struct{}

type kernelRun struct {
	k, a, seq []int64
	b         []float64
	offsets   []int32
	text      []byte
	kinds     []int8
}

func (kn *kernel) write(rec arrow.RecordBatch, seq int64) *kernelRun {
	n := int(rec.NumRows())
	k, a := rec.Column(0).(*array.Int64).Int64Values(), rec.Column(1).(*array.Int64).Int64Values()
	f := rec.Column(2).(*array.Float64).Float64Values()
	c := rec.Column(3).(*array.String)
	idx := make([]int32, n)
	for i := range idx {
		idx[i] = int32(i)
	}
	if n < 64 {
		slices.SortFunc(idx, func(x, y int32) int {
			switch {
			case k[x] < k[y]:
				return -1
			case k[x] > k[y]:
				return 1
			}
			return 0
		})
	} else {
		kn.radix(k, idx)
	}
	offs := c.ValueOffsets()
	data := c.ValueBytes()
	out := &kernelRun{
		k: make([]int64, n), a: make([]int64, n), seq: make([]int64, n), b: make([]float64, n),
		offsets: make([]int32, n+1), text: make([]byte, 0, len(data)), kinds: make([]int8, n),
	}
	for i, j := range idx {
		out.k[i] = k[j]
	}
	for i, j := range idx {
		out.a[i] = a[j]
	}
	for i, j := range idx {
		out.b[i] = f[j]
	}
	for i, j := range idx {
		out.seq[i] = seq + int64(j)
	}
	for i, j := range idx {
		out.text = append(out.text, data[offs[j]-offs[0]:offs[j+1]-offs[0]]...)
		out.offsets[i+1] = int32(len(out.text))
	}
	return out
}

// radix sorts idx by k, eight bits a pass, skipping bytes that are all the same.
func (kn *kernel) radix(k []int64, idx []int32) {
	n := len(idx)
	spare := make([]int32, n)
	var counts [8][256]int32
	for _, v := range k {
		u := uint64(v) ^ 1<<63
		for b := range 8 {
			counts[b][byte(u>>(8*b))]++
		}
	}
	src, dst := idx, spare
	for b := range 8 {
		count := &counts[b]
		if count[byte((uint64(k[0])^1<<63)>>(8*b))] == int32(n) {
			continue
		}
		sum := int32(0)
		for i, c := range count {
			count[i] = sum
			sum += c
		}
		for _, j := range src {
			d := byte((uint64(k[j]) ^ 1<<63) >> (8 * b))
			dst[count[d]] = j
			count[d]++
		}
		src, dst = dst, src
	}
	if &src[0] != &idx[0] {
		copy(idx, src)
	}
}

func BenchmarkWriteKernel(b *testing.B) {
	for _, rows := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("T1/%d", rows), func(b *testing.B) {
			table := benchTable(b, "T1")
			batches := make([]arrow.RecordBatch, 64)
			for i := range batches {
				batches[i] = benchBatch(table, i*rows, rows)
			}
			var kn kernel
			kept := make([]*kernelRun, 0, 1<<20)
			seq, written := int64(0), 0
			b.ResetTimer()
			for i := range b.N {
				kept = append(kept, kn.write(batches[i%len(batches)], seq))
				seq += int64(rows)
				if written += rows; written >= 1<<20 {
					kept, written = kept[:0], 0
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// TestRetainedBytes compares what is retained with the transport form of a row:
// its Arrow bytes, 8 of sequence number, 1 of kind.
func TestRetainedBytes(t *testing.T) {
	const transport = 8 + 8 + 8 + 4 + 16 + 8 + 1 // T1
	for _, c := range []struct {
		batch int
		most  float64
	}{{1000, 1.05}, {100, 1.15}, {10, 1.25}, {1, 1.25}} {
		t.Run(fmt.Sprint(c.batch), func(t *testing.T) {
			table := benchTable(t, "T1")
			p, s := NewPreparer(table), newState(table)
			const rows = 40_000
			for i := range rows / c.batch {
				prepared, err := p.Prepare(benchBatch(table, i*c.batch, c.batch), nil, nil)
				require.NoError(t, err)
				require.NoError(t, s.Append(prepared.Parts[0], int64(i)))
			}
			consolidate(t, s, math.MaxInt64)
			per := float64(retained(s)) / rows / transport
			t.Logf("batch %d: %.3f of the transport bytes, accounted %.3f", c.batch, per, float64(s.Describe().BuildingBytes)/rows/transport)
			require.LessOrEqual(t, per, c.most)
		})
	}
}
