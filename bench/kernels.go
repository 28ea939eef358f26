package main

import (
	"math/bits"
	"slices"
	"time"
)

// t1Rows are rows of table T1 as plain Go columns: what the control kernels work
// on. They have no Arrow objects, no nulls, no statistics, no table: a floor, not
// an engine.
type t1Rows struct {
	k, a []int64
	b    []float64
	c    []byte // 16 bytes a row
}

func (t *t1Rows) rows() int { return len(t.k) }

func (t *t1Rows) slice(lo, hi int) t1Rows {
	return t1Rows{t.k[lo:hi], t.a[lo:hi], t.b[lo:hi], t.c[lo*16 : hi*16]}
}

type pair struct {
	key uint64
	row uint32
}

// sortPairs is a least-significant-digit radix sort that skips constant bytes.
func sortPairs(p, tmp []pair) []pair {
	var count [8][256]uint32
	for _, e := range p {
		for d := range 8 {
			count[d][byte(e.key>>(8*d))]++
		}
	}
	for d := range 8 {
		c := &count[d]
		if c[byte(p[0].key>>(8*d))] == uint32(len(p)) {
			continue
		}
		sum := uint32(0)
		for i, n := range c {
			c[i] = sum
			sum += n
		}
		for _, e := range p {
			b := byte(e.key >> (8 * d))
			tmp[c[b]] = e
			c[b]++
		}
		p, tmp = tmp, p
	}
	return p
}

// radixBatchRows is where the radix sort begins to win over a comparison sort.
const radixBatchRows = 48

// sortGather is kernel K2': sort one batch by key, gather its four columns and
// add sequence numbers and kinds, into fresh memory as a write must.
func sortGather(in t1Rows, first int64, pairs, tmp []pair) (t1Rows, []int64, []byte) {
	n := in.rows()
	pairs = pairs[:n]
	for i, k := range in.k {
		pairs[i] = pair{uint64(k) ^ 1<<63, uint32(i)}
	}
	if n >= radixBatchRows {
		pairs = sortPairs(pairs, tmp[:n])
	} else {
		slices.SortFunc(pairs, func(x, y pair) int {
			if x.key < y.key {
				return -1
			}
			if x.key > y.key {
				return 1
			}
			return int(x.row) - int(y.row)
		})
	}
	out := t1Rows{make([]int64, n), make([]int64, n), make([]float64, n), make([]byte, 16*n)}
	seq, kind := make([]int64, n), make([]byte, n)
	for i, p := range pairs {
		r := int(p.row)
		out.k[i], out.a[i], out.b[i] = in.k[r], in.a[r], in.b[r]
		copy(out.c[i*16:i*16+16], in.c[r*16:r*16+16])
		seq[i] = first + int64(r)
	}
	return out, seq, kind
}

// mergeGather is kernel K4 with the gather: range-partition the keys of all runs
// by their high bits, radix-sort each partition, keep the newest row of each key
// (the row of the later run), and gather the four columns. Keys are uniform
// int64.
func mergeGather(runs []t1Rows) t1Rows {
	total := 0
	for _, r := range runs {
		total += r.rows()
	}
	shift := 64 - max(1, bits.Len(uint(total))-12)
	parts := 1 << (64 - shift)
	counts := make([]int, parts+1)
	for _, r := range runs {
		for _, k := range r.k {
			counts[(uint64(k)^1<<63)>>shift+1]++
		}
	}
	for i := 1; i <= parts; i++ {
		counts[i] += counts[i-1]
	}
	type ref struct {
		key      uint64
		run, row uint32
	}
	refs := make([]ref, total)
	at := slices.Clone(counts[:parts])
	for ri, r := range runs {
		for i, k := range r.k {
			key := uint64(k) ^ 1<<63
			p := key >> shift
			refs[at[p]] = ref{key, uint32(ri), uint32(i)}
			at[p]++
		}
	}
	out := t1Rows{make([]int64, 0, total), make([]int64, 0, total), make([]float64, 0, total), make([]byte, 0, 16*total)}
	var p, tmp []pair
	for part := range parts {
		lo, hi := counts[part], counts[part+1]
		if lo == hi {
			continue
		}
		p, tmp = slices.Grow(p[:0], hi-lo)[:hi-lo], slices.Grow(tmp[:0], hi-lo)[:hi-lo]
		for i, r := range refs[lo:hi] {
			p[i] = pair{r.key, uint32(lo + i)}
		}
		sorted := sortPairs(p, tmp)
		for i, e := range sorted {
			if i+1 < len(sorted) && sorted[i+1].key == e.key {
				continue // an older version: runs were appended oldest first
			}
			r := refs[e.row]
			src := &runs[r.run]
			out.k = append(out.k, src.k[r.row])
			out.a = append(out.a, src.a[r.row])
			out.b = append(out.b, src.b[r.row])
			out.c = append(out.c, src.c[r.row*16:r.row*16+16]...)
		}
	}
	return out
}

// channelRoundTrip is kernel K7: the median time of a message to another
// goroutine and back over unbuffered channels.
func channelRoundTrip(samples int) time.Duration {
	ping, pong := make(chan int), make(chan int)
	go func() {
		for v := range ping {
			pong <- v
		}
	}()
	times := make([]time.Duration, samples)
	for i := range times {
		begin := time.Now()
		ping <- i
		<-pong
		times[i] = time.Since(begin)
	}
	close(ping)
	return median(times)
}

func median(times []time.Duration) time.Duration { return percentile(times, 0.5) }

// percentile sorts times in place.
func percentile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[min(len(times)-1, int(q*float64(len(times))))]
}
