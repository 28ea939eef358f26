package merge

import (
	"cmp"
	"slices"
)

// window is the part of a merge between two splitter keys. Rows are numbered
// through all its slices:
//
//	slice 0        slice 1   slice 2
//	|0 .. base1-1|base1 ...|base2 ... n-1|
//
// Slices of one group overlap in key range, groups do not; slices are laid out
// group by group in key order, and in source order inside a group, so that row
// numbers order equal keys from older to newer source.
type window struct {
	slices []windowSlice
	rows   int

	// The result: parts in key order, whole stretches of one slice or a range of
	// selected row numbers.
	parts []part
	head  int // parts before it are handed out
	sel   []int32
	views []column // columns laid one behind the other, shape 0: not yet

	stretches []stretch // scratch of copying
	whole     []stretch
	pieceList []piece

	passRowsMin int // fields, so that tests meet both ways with little data
	heavyBytes  int64
	weighed     int8 // 0: not yet, 1: light, 2: heavy

	orderer
	plan     prefixPlan
	exact    bool
	ranges   []rowRange
	prefixes []uint64
	sliceOf  []uint32
}

type windowSlice struct {
	chunk       *chunk
	lo, hi      int
	base        int    // number of the first row
	first, last uint64 // prefixes of the first and last key
	group       int
}

// part is a piece of the result: rows [lo, hi) of chunk as they are, or, when
// chunk is nil, sel[lo:hi].
type part struct {
	chunk  *chunk
	lo, hi int
}

// passRowsMin is the shortest lonely stretch that is handed out as it is; shorter
// ones are copied together, since small blocks cost every consumer.
const passRowsMin = 1 << 10

func (w *window) reset() {
	clear(w.slices) // do not keep chunks alive
	w.slices, w.parts, w.sel, w.views = w.slices[:0], w.parts[:0], w.sel[:0], w.views[:0]
	w.rows, w.head, w.weighed = 0, 0, 0
}

func (w *window) empty() bool { return w.head == len(w.parts) }

func (w *window) add(c *chunk, lo, hi int) {
	if lo < hi {
		w.slices = append(w.slices, windowSlice{chunk: c, lo: lo, hi: hi})
		w.rows += hi - lo
	}
}

// merge orders the rows, drops older versions and (unless keep) deletes, and
// leaves the result in parts.
func (w *window) merge(keep bool) {
	if len(w.slices) == 0 {
		return
	}
	if len(w.slices) == 1 {
		w.slices[0].base = 0
		w.single(0, keep, 1)
		return
	}
	w.layOut()
	for lo := 0; lo < len(w.slices); {
		hi := lo + 1
		for hi < len(w.slices) && w.slices[hi].group == w.slices[lo].group {
			hi++
		}
		switch hi - lo {
		case 1:
			w.single(lo, keep, w.passRowsMin)
		case 2:
			if w.strictPair(lo) {
				w.pair(lo, keep)
			} else {
				w.many(lo, hi, keep)
			}
		default:
			w.many(lo, hi, keep)
		}
		lo = hi
	}
}

// layOut groups the slices that overlap, gives them their row numbers, and fills
// the prefixes.
func (w *window) layOut() {
	w.ranges = w.ranges[:0]
	int64Keys := true
	for i := range w.slices {
		s := &w.slices[i]
		s.chunk.measureSeq()
		w.ranges = append(w.ranges, rowRange{&s.chunk.keys, s.lo, s.hi})
		int64Keys = int64Keys && s.chunk.keys.i64 != nil
	}
	w.exact = true
	if !int64Keys {
		w.plan = planPrefix(w.ranges, true)
		w.exact = w.plan.exact
	}
	w.group(int64Keys)
	base := 0
	for i := range w.slices {
		w.slices[i].base = base
		base += w.slices[i].hi - w.slices[i].lo
	}
	w.prefixes = resize(w.prefixes, w.rows)
	w.sliceOf = resize(w.sliceOf, w.rows)
	for i := range w.slices {
		s := &w.slices[i]
		n := s.hi - s.lo
		dst := w.prefixes[s.base : s.base+n]
		if int64Keys {
			for k, v := range s.chunk.keys.i64[s.lo:s.hi] {
				dst[k] = uint64(v) ^ 1<<63
			}
		} else {
			w.plan.fill(rowRange{&s.chunk.keys, s.lo, s.hi}, dst)
		}
		of := w.sliceOf[s.base : s.base+n]
		for k := range of {
			of[k] = uint32(i)
		}
	}
}

// group finds the sets of slices that overlap by the prefixes of their ends and
// sorts the slices by set, leaving source order inside a set.
func (w *window) group(int64Keys bool) {
	firstMax, lastMin := uint64(0), ^uint64(0)
	for i := range w.slices {
		s := &w.slices[i]
		if int64Keys {
			s.first, s.last = uint64(s.chunk.keys.i64[s.lo])^1<<63, uint64(s.chunk.keys.i64[s.hi-1])^1<<63
		} else {
			var end [1]uint64
			w.plan.fill(rowRange{&s.chunk.keys, s.lo, s.lo + 1}, end[:])
			s.first = end[0]
			w.plan.fill(rowRange{&s.chunk.keys, s.hi - 1, s.hi}, end[:])
			s.last = end[0]
		}
		s.group = 0
		firstMax, lastMin = max(firstMax, s.first), min(lastMin, s.last)
	}
	if firstMax <= lastMin {
		return // every slice overlaps every other
	}
	byFirst := make([]int, len(w.slices))
	for i := range byFirst {
		byFirst[i] = i
	}
	slices.SortFunc(byFirst, func(a, b int) int { return cmp.Compare(w.slices[a].first, w.slices[b].first) })
	group, end := 0, w.slices[byFirst[0]].last
	for _, i := range byFirst {
		s := &w.slices[i]
		if s.first > end {
			group++
		}
		s.group, end = group, max(end, s.last)
	}
	if group > 0 {
		slices.SortStableFunc(w.slices, func(a, b windowSlice) int { return cmp.Compare(a.group, b.group) })
	}
}

// single takes slice i, which no other overlaps.
func (w *window) single(i int, keep bool, passMin int) {
	s := &w.slices[i]
	strict := s.chunk.strict(s.lo, s.hi)
	drops := !keep && s.chunk.retracts(s.lo, s.hi)
	if strict && !drops && s.hi-s.lo >= passMin {
		w.parts = append(w.parts, part{s.chunk, s.lo, s.hi})
		return
	}
	from := len(w.sel)
	for r := s.lo; r < s.hi; r++ {
		best := r
		if !strict {
			for r+1 < s.hi && compareKeys(&s.chunk.keys, r, &s.chunk.keys, r+1) == 0 {
				r++
				if s.chunk.block.Seq.At(r) >= s.chunk.block.Seq.At(best) {
					best = r
				}
			}
		}
		if drops && retract(s.chunk.block.Kinds[best]) {
			continue
		}
		w.sel = append(w.sel, int32(s.base+best-s.lo))
	}
	w.selected(from)
}

// selected makes a part of sel[from:], joined to a selection right before it.
func (w *window) selected(from int) {
	if from == len(w.sel) {
		return
	}
	if n := len(w.parts); n > 0 && w.parts[n-1].chunk == nil {
		w.parts[n-1].hi = len(w.sel)
		return
	}
	w.parts = append(w.parts, part{nil, from, len(w.sel)})
}

func (w *window) strictPair(i int) bool {
	a, b := &w.slices[i], &w.slices[i+1]
	return a.chunk.strict(a.lo, a.hi) && b.chunk.strict(b.lo, b.hi)
}

// pair merges slices i and i+1, whose keys are unique in each.
func (w *window) pair(i int, keep bool) {
	a, b := &w.slices[i], &w.slices[i+1]
	x, y := a.base, b.base
	xEnd, yEnd := y, y+b.hi-b.lo
	from := len(w.sel)
	w.sel = slices.Grow(w.sel, yEnd-x)
	out := w.sel[:cap(w.sel)]
	k := from
	p := w.prefixes
	for x < xEnd && y < yEnd {
		if p[x] == p[y] {
			c := 0
			if !w.exact {
				c = compareKeys(&a.chunk.keys, a.lo+x-a.base, &b.chunk.keys, b.lo+y-b.base)
			}
			switch {
			case c < 0:
				out[k] = int32(x)
				x++
			case c > 0:
				out[k] = int32(y)
				y++
			default:
				out[k] = int32(y)
				if !w.supersedes(y, x) {
					out[k] = int32(x)
				}
				x++
				y++
			}
			k++
			continue
		}
		take, v := 0, x
		if p[y] < p[x] {
			take, v = 1, y
		}
		out[k] = int32(v)
		k++
		y += take
		x += 1 - take
	}
	for ; x < xEnd; x++ {
		out[k] = int32(x)
		k++
	}
	for ; y < yEnd; y++ {
		out[k] = int32(y)
		k++
	}
	w.sel = out[:k]
	w.dropRetracts(from, i, i+2, keep)
	w.selected(from)
}

// many merges slices [lo, hi) by ordering all their rows at once.
func (w *window) many(lo, hi int, keep bool) {
	first := w.slices[lo].base
	end := w.slices[hi-1].base + w.slices[hi-1].hi - w.slices[hi-1].lo
	var compare func(i, j int) int
	if !w.exact {
		compare = func(i, j int) int { return w.compareRows(first+i, first+j) }
	}
	packed, rowBits, whole := w.order(w.prefixes[first:end], w.exact, compare)
	mask := uint64(1)<<rowBits - 1
	from := len(w.sel)
	w.sel = slices.Grow(w.sel, len(packed))
	out := w.sel[from : from+len(packed)]
	k := 0
	for i := 0; i < len(packed); {
		best := first + int(packed[i]&mask)
		lead := packed[i] >> rowBits
		i++
		for i < len(packed) && packed[i]>>rowBits == lead {
			row := first + int(packed[i]&mask)
			if !whole && w.compareRows(best, row) != 0 {
				break
			}
			if w.supersedes(row, best) {
				best = row
			}
			i++
		}
		out[k] = int32(best)
		k++
	}
	w.sel = w.sel[:from+k]
	w.dropRetracts(from, lo, hi, keep)
	w.selected(from)
}

// dropRetracts removes the selected rows from position from on whose kind is -U
// or -D; they lie in slices [lo, hi).
func (w *window) dropRetracts(from, lo, hi int, keep bool) {
	if keep {
		return
	}
	kinds := false
	for i := lo; i < hi && !kinds; i++ {
		kinds = w.slices[i].chunk.block.Kinds != nil
	}
	if !kinds {
		return
	}
	k := from
	for _, row := range w.sel[from:] {
		w.sel[k] = row
		s := &w.slices[w.sliceOf[row]]
		if s.chunk.block.Kinds == nil || !retract(s.chunk.block.Kinds[s.lo+int(row)-s.base]) {
			k++
		}
	}
	w.sel = w.sel[:k]
}

func (w *window) compareRows(i, j int) int {
	if c := cmp.Compare(w.prefixes[i], w.prefixes[j]); c != 0 {
		return c
	}
	if w.exact {
		return 0
	}
	a, b := &w.slices[w.sliceOf[i]], &w.slices[w.sliceOf[j]]
	return compareKeys(&a.chunk.keys, a.lo+i-a.base, &b.chunk.keys, b.lo+j-b.base)
}

// supersedes tells whether row b, which comes behind a in source order, is the
// newer version of their key.
func (w *window) supersedes(b, a int) bool {
	x, y := &w.slices[w.sliceOf[a]], &w.slices[w.sliceOf[b]]
	switch {
	case y.chunk.seqMin >= x.chunk.seqMax:
		return true
	case y.chunk.seqMax < x.chunk.seqMin:
		return false
	}
	return y.chunk.block.Seq.At(y.lo+b-y.base) >= x.chunk.block.Seq.At(x.lo+a-x.base)
}
