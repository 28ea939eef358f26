package merge

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// emit makes the next output block from the first part of the window and takes
// its rows off the window.
func (u *union) emit() *Block {
	w := &u.window
	p := &w.parts[w.head]
	n := min(p.hi-p.lo, u.batchRows())
	heavy := p.chunk == nil && w.heavy()
	if heavy {
		n = w.lightRows(w.sel[p.lo : p.lo+n])
	}
	var b *Block
	if p.chunk != nil {
		b = u.pass(p.chunk, p.lo, p.lo+n)
	} else {
		b = u.copySelected(w.sel[p.lo:p.lo+n], heavy)
	}
	p.lo += n
	if p.lo == p.hi {
		w.head++
	}
	return b
}

func (u *union) batchRows() int {
	bytes := 1
	for i := range min(len(u.window.slices), 8) {
		bytes = max(bytes, u.window.slices[i].chunk.meanRowBytes())
	}
	return max(min(u.options.BatchRows, batchBytesMax/bytes), 1)
}

// pass hands out rows [lo, hi) of a chunk without copying them.
func (u *union) pass(c *chunk, lo, hi int) *Block {
	b := &Block{Columns: make([]arrow.Array, len(c.block.Columns)), Rows: hi - lo, Unique: true}
	for i, a := range c.block.Columns {
		switch {
		case a == nil:
		case lo == 0 && hi == c.block.Rows:
			a.Retain()
			b.Columns[i] = a
		default:
			b.Columns[i] = array.NewSlice(a, int64(lo), int64(hi))
		}
	}
	if u.options.KeepDeletes {
		b.Kinds = make([]int8, hi-lo)
		if c.block.Kinds != nil {
			copy(b.Kinds, c.block.Kinds[lo:hi])
		}
		b.Seq.Explicit = make([]int64, hi-lo)
		for i := range b.Seq.Explicit {
			b.Seq.Explicit[i] = c.block.Seq.At(lo + i)
		}
	}
	return b
}

// stretchRowsMin is the mean length of consecutive row numbers from which on
// rows are copied stretch by stretch, straight from their blocks.
const stretchRowsMin = 12

// heavyBytes is the size of one column of a window, or of a batch, above which
// int32 offsets are near their end.
const heavyBytes = 1 << 30

// heavy tells whether a string or binary column of the window is too large to be
// laid out at once. The size of a window follows from mean row sizes, so this
// takes a few enormous values among small ones.
func (w *window) heavy() bool {
	if w.weighed == 0 {
		w.weighed = 1
		for i, a := range w.slices[0].chunk.block.Columns {
			if a != nil && w.columnBytes(i) > w.heavyBytes {
				w.weighed = 2
			}
		}
	}
	return w.weighed == 2
}

func (w *window) columnBytes(i int) int64 {
	total := int64(0)
	for k := range w.slices {
		s := &w.slices[k]
		total += s.chunk.column(i).bytes(s.lo, s.hi)
	}
	return total
}

// bytes is the size of the values of rows [lo, hi), of nested types by the mean.
func (c *column) bytes(lo, hi int) int64 {
	switch c.shape {
	case shapeBytes:
		return int64(c.offsets[hi] - c.offsets[lo])
	case shapeBits, shapeFixed:
		return int64(hi-lo) * int64(max(c.width, 1))
	default:
		return int64(c.array.Data().SizeInBytes()) * int64(hi-lo) / int64(max(c.rows, 1))
	}
}

// lightRows returns how many of the rows sel, at least one, make a batch that is
// not heavy.
func (w *window) lightRows(sel []int32) int {
	cols := w.slices[0].chunk.block.Columns
	total := int64(0)
	for n, row := range sel {
		s := &w.slices[w.sliceAt(int(row))]
		r := s.lo + int(row) - s.base
		for i, a := range cols {
			if a != nil {
				total += s.chunk.column(i).bytes(r, r+1)
			}
		}
		if total > w.heavyBytes && n > 0 {
			return n
		}
	}
	return len(sel)
}

// copySelected copies rows of the window to a new block; heavy ones go straight
// from their blocks to the new one.
func (u *union) copySelected(sel []int32, heavy bool) *Block {
	w := &u.window
	cols := w.slices[0].chunk.block.Columns
	b := &Block{Columns: make([]arrow.Array, len(cols)), Rows: len(sel), Unique: true}
	stretches := 1
	for i := 1; i < len(sel); i++ {
		if sel[i] != sel[i-1]+1 {
			stretches++
		}
	}
	direct := heavy || stretches*stretchRowsMin <= len(sel)
	if direct {
		w.findStretches(sel)
	}
	for i, a := range cols {
		switch {
		case a == nil:
		case direct:
			b.Columns[i] = concatArray(u.options.Alloc, a.DataType(), w.pieces(w.stretches, i), len(sel))
		default:
			b.Columns[i] = u.view(i).gather(u.options.Alloc, a.DataType(), sel)
		}
	}
	if u.options.KeepDeletes {
		w.systemColumns(b, sel)
	}
	return b
}

// view returns column i of all slices laid one behind the other.
func (u *union) view(i int) *column {
	w := &u.window
	if len(w.views) == 0 {
		w.views = resize(w.views, len(u.layout.Fields))
		clear(w.views)
	}
	if w.views[i].shape == 0 && len(w.slices) == 1 {
		s := &w.slices[0]
		u.scratch[i].release()
		u.scratch[i].owned = array.NewSlice(s.chunk.block.Columns[i], int64(s.lo), int64(s.hi))
		w.views[i] = viewColumn(u.scratch[i].owned)
	}
	if w.views[i].shape == 0 {
		w.whole = w.whole[:0]
		for k := range w.slices {
			w.whole = append(w.whole, stretch{k, w.slices[k].lo, w.slices[k].hi})
		}
		w.views[i] = concatView(&u.scratch[i], u.options.Alloc, w.pieces(w.whole, i), w.rows)
	}
	return &w.views[i]
}

// stretch is rows [lo, hi) of the chunk of a slice.
type stretch struct {
	slice, lo, hi int
}

// findStretches splits sel into stretches of consecutive rows of one slice.
func (w *window) findStretches(sel []int32) {
	w.stretches = w.stretches[:0]
	for i := 0; i < len(sel); {
		k := w.sliceAt(int(sel[i]))
		s := &w.slices[k]
		end := int32(s.base + s.hi - s.lo)
		j := i + 1
		for j < len(sel) && sel[j] == sel[j-1]+1 && sel[j] < end {
			j++
		}
		lo := s.lo + int(sel[i]) - s.base
		w.stretches = append(w.stretches, stretch{k, lo, lo + j - i})
		i = j
	}
}

func (w *window) sliceAt(row int) int {
	if len(w.slices) == 1 {
		return 0
	}
	return int(w.sliceOf[row])
}

// pieces returns column i of the stretches; valid until the next call.
func (w *window) pieces(stretches []stretch, i int) []piece {
	w.pieceList = w.pieceList[:0]
	for _, s := range stretches {
		w.pieceList = append(w.pieceList, piece{w.slices[s.slice].chunk.column(i), s.lo, s.hi})
	}
	return w.pieceList
}

// systemColumns fills kinds and sequence numbers of the selected rows.
func (w *window) systemColumns(b *Block, sel []int32) {
	b.Kinds = make([]int8, len(sel))
	b.Seq.Explicit = make([]int64, len(sel))
	for i, row := range sel {
		s := &w.slices[w.sliceAt(int(row))]
		r := s.lo + int(row) - s.base
		if s.chunk.block.Kinds != nil {
			b.Kinds[i] = s.chunk.block.Kinds[r]
		}
		b.Seq.Explicit[i] = s.chunk.block.Seq.At(r)
	}
}
