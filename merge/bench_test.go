package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"golang.org/x/sys/unix"

	"github.com/tideline-db/tideline/paimon/schema"
)

// The benchmark tables T1 (k int64, a int64, b float64, c 16 hex digits) and T2
// (k string of 24-48 bytes that share 16) with the generators of the benchmark
// plan, and its hand-written kernels as the denominators of ratios.

var t1 = Layout{Key: []int{0}, Fields: []schema.Field{
	{Name: "k", Type: schema.Type{Kind: schema.BigInt}}, {Name: "a", Type: schema.Type{Kind: schema.BigInt}},
	{Name: "b", Type: schema.Type{Kind: schema.Double}}, {Name: "c", Type: schema.Type{Kind: schema.VarChar, Length: schema.MaxLength}},
}}

func t2() Layout {
	l := Layout{Key: []int{0}, Fields: append([]schema.Field{}, t1.Fields...)}
	l.Fields[0].Type = t1.Fields[3].Type
	return l
}

// benchKeys draws n key numbers, overwrite of 1000 of them again.
func benchKeys(n int, overwrite uint64, key func(d uint64) int64) []int64 {
	keys := make([]int64, n)
	d := uint64(0)
	for i := range keys {
		if d > 0 && mix(uint64(2*i))%1000 < overwrite {
			keys[i] = key(mix(uint64(2*i+1)) % d)
		} else {
			keys[i] = key(d)
			d++
		}
	}
	return keys
}

func randomKey(d uint64) int64 { return int64(mix(d) >> 1) }

func t1Columns(keys []int64, stringKey bool) []arrow.Array {
	kb, ab := array.NewInt64Builder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	bb, cb := array.NewFloat64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	sb := array.NewStringBuilder(memory.DefaultAllocator)
	for _, k := range keys {
		if stringKey {
			tail := fmt.Sprintf("%016x%016x", mix(uint64(k)), uint64(k))
			sb.Append("customer/region/" + tail[:8+int(uint64(k)%25)])
		} else {
			kb.Append(k)
		}
		ab.Append(k + 1)
		bb.Append(float64(k))
		cb.Append(fmt.Sprintf("%016x", mix(uint64(k))))
	}
	k := arrow.Array(kb.NewInt64Array())
	if stringKey {
		k = sb.NewStringArray()
	}
	return []arrow.Array{k, ab.NewInt64Array(), bb.NewFloat64Array(), cb.NewStringArray()}
}

// runs cuts shuffled keys into sorted batches, as writes leave them in memory.
func t1Runs(layout Layout, keys []int64, fanIn int) []*Block {
	blocks := make([]*Block, fanIn)
	for i := range blocks {
		lo, hi := i*len(keys)/fanIn, (i+1)*len(keys)/fanIn
		cols := t1Columns(keys[lo:hi], len(layout.Fields[0].Name) > 0 && layout.Fields[0].Type.Kind == schema.VarChar)
		sel := Sort(layout, cols, hi-lo)
		blocks[i] = &Block{Columns: Gather(nil, cols, sel), Rows: hi - lo, Seq: Numbers{Base: int64(lo), Perm: sel}}
	}
	return blocks
}

// cpuSeconds is the processor time of the process: rates by it can be compared on
// a machine that others use too.
func cpuSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// measure runs op b.N times and reports rows per second of processor time, its
// garbage included.
func measure(b *testing.B, rows int, op func(i int)) {
	runtime.GC()
	start := cpuSeconds()
	b.ResetTimer()
	for i := range b.N {
		op(i)
	}
	b.StopTimer()
	b.ReportMetric(float64(rows)*float64(b.N)/(cpuSeconds()-start)/1e6, "Mrows/cpu-s")
}

// kernelSort is K2: LSD radix on (key, index) pairs that skips constant bytes.
func kernelSort(pairs, tmp []pair) []pair {
	var counts [8][256]uint32
	for _, p := range pairs {
		k := p.key
		for d := range 8 {
			counts[d][byte(k>>(8*d))]++
		}
	}
	for d := range 8 {
		c := &counts[d]
		if c[byte(pairs[0].key>>(8*d))] == uint32(len(pairs)) {
			continue
		}
		sum := uint32(0)
		for i, n := range c {
			c[i] = sum
			sum += n
		}
		for _, p := range pairs {
			b := byte(p.key >> (8 * d))
			tmp[c[b]] = p
			c[b]++
		}
		pairs, tmp = tmp, pairs
	}
	return pairs
}

type pair struct {
	key uint64
	idx uint64
}

// kernelMerge is K4: one pass of range partition over all runs by the leading
// bits of uniform keys, then insertion sort. Equal keys keep run order.
func kernelMerge(keys [][]int64, n int, pairs, tmp []pair, counts []uint32) []pair {
	shift := uint(63 - (bits.Len(uint(n)) - 2))
	clear(counts)
	for _, run := range keys {
		for _, k := range run {
			counts[uint64(k)>>shift+1]++
		}
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	for r, run := range keys {
		for i, k := range run {
			b := uint64(k) >> shift
			pairs[counts[b]] = pair{uint64(k), uint64(r)<<32 | uint64(i)}
			counts[b]++
		}
	}
	for i := 1; i < n; i++ {
		v := pairs[i]
		j := i
		for j > 0 && pairs[j-1].key > v.key {
			pairs[j] = pairs[j-1]
			j--
		}
		pairs[j] = v
	}
	return pairs
}

// loserTree is K3: a k-way tournament over int64 runs.
func loserTree(keys [][]int64, emit func(run, row int)) {
	k := 1
	for k < len(keys) {
		k *= 2
	}
	const end = int64(1<<63 - 1)
	pos := make([]int, k)
	head := make([]int64, k)
	for i := range head {
		head[i] = end
		if i < len(keys) {
			head[i] = keys[i][0]
		}
	}
	tree := make([]int, k)
	var build func(node int) int
	build = func(node int) int {
		if node >= k {
			return node - k
		}
		a, b := build(2*node), build(2*node+1)
		if head[b] < head[a] {
			a, b = b, a
		}
		tree[node] = b
		return a
	}
	win := build(1)
	for head[win] != end {
		emit(win, pos[win])
		pos[win]++
		head[win] = end
		if pos[win] < len(keys[win]) {
			head[win] = keys[win][pos[win]]
		}
		for node := (win + k) / 2; node > 0; node /= 2 {
			if o := tree[node]; head[o] < head[win] || head[o] == head[win] && o < win {
				tree[node], win = win, o
			}
		}
	}
}

// kernelUnion merges by K4 or K3, takes the last of equal keys and gathers all
// columns by hand into batches of 8192.
type kernelUnion struct {
	keys       [][]int64
	a          [][]int64
	b          [][]float64
	offs       [][]int32
	data       [][]byte
	n          int
	pairs, tmp []pair
	counts     []uint32
	outK, outA []int64
	outB       []float64
	outOffs    []int32
	outData    []byte
}

func newKernelUnion(blocks []*Block) *kernelUnion {
	u := &kernelUnion{}
	for _, b := range blocks {
		u.keys = append(u.keys, b.Columns[0].(*array.Int64).Int64Values())
		u.a = append(u.a, b.Columns[1].(*array.Int64).Int64Values())
		u.b = append(u.b, b.Columns[2].(*array.Float64).Float64Values())
		o, d := bytesView(b.Columns[3].Data())
		u.offs, u.data = append(u.offs, o), append(u.data, d)
		u.n += b.Rows
	}
	u.pairs, u.tmp = make([]pair, u.n), make([]pair, u.n)
	u.counts = make([]uint32, 1<<(bits.Len(uint(u.n))-1)+2)
	return u
}

func (u *kernelUnion) run(tree bool) int {
	var sel []pair
	if tree {
		sel = u.pairs[:0]
		loserTree(u.keys, func(r, i int) { sel = append(sel, pair{uint64(u.keys[r][i]), uint64(r)<<32 | uint64(i)}) })
	} else {
		sel = kernelMerge(u.keys, u.n, u.pairs, u.tmp, u.counts)
	}
	k := 0
	for i := range sel {
		if i+1 == len(sel) || sel[i+1].key != sel[i].key {
			sel[k] = sel[i]
			k++
		}
	}
	sel = sel[:k]
	for lo := 0; lo < k; lo += 8192 {
		u.gather(sel[lo:min(lo+8192, k)])
	}
	return k
}

func (u *kernelUnion) gather(sel []pair) {
	n := len(sel)
	u.outK, u.outA, u.outB, u.outOffs = make([]int64, n), make([]int64, n), make([]float64, n), make([]int32, n+1)
	for i, p := range sel {
		u.outK[i] = int64(p.key)
	}
	for i, p := range sel {
		u.outA[i] = u.a[p.idx>>32][uint32(p.idx)]
	}
	for i, p := range sel {
		u.outB[i] = u.b[p.idx>>32][uint32(p.idx)]
	}
	u.outData = make([]byte, 16*n)
	to := int32(0)
	for i, p := range sel {
		r, row := p.idx>>32, uint32(p.idx)
		o := u.offs[r]
		u.outOffs[i] = to
		to += int32(copy(u.outData[to:], u.data[r][o[row]:o[row+1]]))
	}
	u.outOffs[n] = to
}

func BenchmarkSort1000(b *testing.B) {
	const n = 1000
	keys := benchKeys(n*64, 200, randomKey)
	b.Run("kernel", func(b *testing.B) {
		pairs, tmp := make([]pair, n), make([]pair, n)
		measure(b, n, func(i int) {
			k := keys[i%64*n:][:n]
			for j, v := range k {
				pairs[j] = pair{uint64(v) ^ 1<<63, uint64(j)}
			}
			kernelSort(pairs, tmp)
		})
	})
	for _, c := range []struct {
		name   string
		layout Layout
	}{{"T1", t1}, {"T2", t2()}} {
		b.Run(c.name, func(b *testing.B) {
			var cols [64][]arrow.Array
			for i := range cols {
				cols[i] = t1Columns(keys[i*n:][:n], c.name == "T2")
			}
			b.ResetTimer()
			measure(b, n, func(i int) {
				Sort(c.layout, cols[i%64], n)
			})
		})
	}
}

func BenchmarkSortGather(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		keys := benchKeys(n*16, 200, randomKey)
		var cols [16][]arrow.Array
		for i := range cols {
			cols[i] = t1Columns(keys[i*n:][:n], false)
		}
		b.Run(fmt.Sprintf("kernel/%d", n), func(b *testing.B) {
			pairs, tmp := make([]pair, n), make([]pair, n)
			measure(b, n, func(i int) {
				handSortGather(cols[i%16], pairs, tmp)
			})
		})
		b.Run(fmt.Sprintf("T1/%d", n), func(b *testing.B) {
			measure(b, n, func(i int) {
				sel := Sort(t1, cols[i%16], n)
				for _, c := range Gather(nil, cols[i%16], sel) {
					c.Release()
				}
			})
		})
	}
}

// handSortGather is K2': radix sort, then all columns, sequence and kind by hand.
func handSortGather(cols []arrow.Array, pairs, tmp []pair) {
	k := cols[0].(*array.Int64).Int64Values()
	for j, v := range k {
		pairs[j] = pair{uint64(v) ^ 1<<63, uint64(j)}
	}
	sorted := kernelSort(pairs, tmp)
	n := len(k)
	a, f := cols[1].(*array.Int64).Int64Values(), cols[2].(*array.Float64).Float64Values()
	outK, outA, outB, seq, kind := make([]int64, n), make([]int64, n), make([]float64, n), make([]int64, n), make([]int8, n)
	offs, data := bytesView(cols[3].Data())
	outOffs, outData := make([]int32, n+1), make([]byte, len(data))
	for i, p := range sorted {
		outK[i] = k[p.idx]
	}
	for i, p := range sorted {
		outA[i] = a[p.idx]
	}
	for i, p := range sorted {
		outB[i] = f[p.idx]
	}
	to := int32(0)
	for i, p := range sorted {
		outOffs[i] = to
		to += int32(copy(outData[to:], data[offs[p.idx]:offs[p.idx+1]]))
	}
	outOffs[n] = to
	for i, p := range sorted {
		seq[i] = int64(p.idx)
	}
	sink = outK
	_, _, _, _ = outA, outB, kind, outOffs
}

var sink any

const unionRows = 1 << 20

func BenchmarkUnion(b *testing.B) {
	keys := benchKeys(unionRows, 200, randomKey)
	for _, fanIn := range []int{1, 2, 8, 64, 1000, 4096} {
		blocks := t1Runs(t1, keys, fanIn)
		kernel := newKernelUnion(blocks)
		want := kernel.run(false)
		if fanIn > 1 {
			b.Run(fmt.Sprintf("K4/%d", fanIn), func(b *testing.B) {
				measure(b, unionRows, func(int) {
					kernel.run(false)
				})
			})
			b.Run(fmt.Sprintf("K3/%d", fanIn), func(b *testing.B) {
				measure(b, unionRows, func(int) {
					kernel.run(true)
				})
			})
		}
		b.Run(fmt.Sprintf("union/%d", fanIn), func(b *testing.B) { benchUnion(b, t1, blocks, want) })
	}
}

func BenchmarkUnionStrings(b *testing.B) {
	keys := benchKeys(unionRows, 200, randomKey)
	for _, fanIn := range []int{2, 8, 1000} {
		blocks := t1Runs(t2(), keys, fanIn)
		b.Run(fmt.Sprintf("T2/%d", fanIn), func(b *testing.B) { benchUnion(b, t2(), blocks, 0) })
	}
}

func BenchmarkUnionAppend(b *testing.B) {
	keys := benchKeys(unionRows, 0, func(d uint64) int64 { return int64(d) })
	for _, fanIn := range []int{2, 1000} {
		blocks := t1Runs(t1, keys, fanIn)
		b.Run(fmt.Sprintf("append/%d", fanIn), func(b *testing.B) { benchUnion(b, t1, blocks, unionRows) })
	}
}

// BenchmarkUnionDiskMemory is the shape of a fresh read: 90 % in blocks of 8192
// of one run, 10 % in one memory run, a tenth of which overwrites.
func BenchmarkUnionDiskMemory(b *testing.B) {
	keys := benchKeys(unionRows, 0, randomKey)
	disk := t1Runs(t1, keys[:unionRows*9/10], 1)[0]
	mem := t1Runs(t1, append(append([]int64{}, keys[unionRows*9/10:]...), keys[:unionRows/100]...), 1)[0]
	disk.Unique, mem.Unique = true, true
	var cut []*Block
	for lo := 0; lo < disk.Rows; lo += 8192 {
		hi := min(lo+8192, disk.Rows)
		c := &Block{Rows: hi - lo, Unique: true, Columns: make([]arrow.Array, 4)}
		for i, a := range disk.Columns {
			c.Columns[i] = array.NewSlice(a, int64(lo), int64(hi))
		}
		cut = append(cut, c)
	}
	measure(b, unionRows, func(int) {
		drainBench(b, NewUnion(t1, []Source{NewBlockSource(cut...), NewBlockSource(mem)}, Options{}), unionRows)
	})
}

func benchUnion(b *testing.B, layout Layout, blocks []*Block, want int) {
	b.ReportAllocs()
	measure(b, unionRows, func(int) {
		sources := make([]Source, len(blocks))
		for i, blk := range blocks {
			sources[i] = NewBlockSource(blk)
		}
		drainBench(b, NewUnion(layout, sources, Options{}), want)
	})
}

func drainBench(b *testing.B, u Source, want int) {
	rows := 0
	for {
		blk, err := u.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		rows += blk.Rows
	}
	if err := u.Close(); err != nil {
		b.Fatal(err)
	}
	if want > 0 && rows != want {
		b.Fatalf("%d rows, want %d", rows, want)
	}
}
