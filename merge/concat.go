package merge

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// piece is a stretch of rows of one column.
type piece struct {
	col    *column
	lo, hi int
}

func (p piece) rows() int { return p.hi - p.lo }

// concatScratch is memory that concatView reuses from window to window.
type concatScratch struct {
	values  []byte
	offsets []int32
	valid   []byte
	owned   arrow.Array // nested columns are concatenated by Arrow
}

func (s *concatScratch) release() {
	if s.owned != nil {
		s.owned.Release()
		s.owned = nil
	}
}

// concatView lays the pieces one behind the other in scratch memory and returns
// a view of them, valid until the next call with the same scratch.
func concatView(s *concatScratch, alloc memory.Allocator, pieces []piece, rows int) column {
	s.release()
	first := pieces[0].col
	c := column{shape: first.shape, width: first.width, rows: rows}
	if first.shape >= shapeList {
		s.owned = concatNested(alloc, pieces)
		return viewColumn(s.owned)
	}
	if anyNulls(pieces) {
		s.valid = resize(s.valid, (rows+7)/8)
		concatValidity(s.valid, pieces)
		c.valid = s.valid
	}
	switch first.shape {
	case shapeBits:
		s.values = resize(s.values, (rows+7)/8)
		concatBits(s.values, pieces)
		c.bits = s.values
	case shapeFixed:
		s.values = resize(s.values, rows*first.width)
		concatFixed(s.values, first.width, pieces)
		c.values = s.values
	case shapeBytes:
		s.offsets = resize(s.offsets, rows+1)
		s.values = resize(s.values, int(bytesOf(pieces))+copySlack)
		concatBytes(s.offsets, s.values, pieces)
		c.offsets, c.values = s.offsets, s.values
	}
	return c
}

// concatArray copies the pieces to one new array of type dt.
func concatArray(alloc memory.Allocator, dt arrow.DataType, pieces []piece, rows int) arrow.Array {
	first := pieces[0].col
	if first.shape >= shapeList {
		return concatNested(alloc, pieces)
	}
	var validity *memory.Buffer
	nulls := 0
	if anyNulls(pieces) {
		validity = newBuffer(alloc, (rows+7)/8)
		nulls = rows - concatValidity(validity.Bytes(), pieces)
	}
	switch first.shape {
	case shapeBits:
		buf := newBuffer(alloc, (rows+7)/8)
		concatBits(buf.Bytes(), pieces)
		return makeArray(dt, rows, []*memory.Buffer{validity, buf}, nil, nulls)
	case shapeFixed:
		buf := newBuffer(alloc, rows*first.width)
		concatFixed(buf.Bytes(), first.width, pieces)
		return makeArray(dt, rows, []*memory.Buffer{validity, buf}, nil, nulls)
	default:
		offs := newBuffer(alloc, (rows+1)*4)
		values := newBuffer(alloc, int(bytesOf(pieces)))
		concatBytes(castBytes[int32](offs.Bytes()), values.Bytes(), pieces)
		return makeArray(dt, rows, []*memory.Buffer{validity, offs, values}, nil, nulls)
	}
}

func concatNested(alloc memory.Allocator, pieces []piece) arrow.Array {
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	parts := make([]arrow.Array, len(pieces))
	for i, p := range pieces {
		parts[i] = array.NewSlice(p.col.array, int64(p.lo), int64(p.hi))
	}
	out, err := array.Concatenate(parts, alloc)
	for _, p := range parts {
		p.Release()
	}
	if err != nil {
		panic(err) // one type throughout, so only a type that Arrow cannot copy
	}
	return out
}

func anyNulls(pieces []piece) bool {
	for _, p := range pieces {
		if p.col.valid != nil {
			return true
		}
	}
	return false
}

// concatValidity writes the validity bits of the pieces and returns how many are
// set.
func concatValidity(dst []byte, pieces []piece) int {
	at, set := 0, 0
	for _, p := range pieces {
		n := p.rows()
		if p.col.valid == nil {
			bitutil.SetBitsTo(dst, int64(at), int64(n), true)
			set += n
		} else {
			bitutil.CopyBitmap(p.col.valid, p.col.validOff+p.lo, n, dst, at)
			set += bitutil.CountSetBits(p.col.valid, p.col.validOff+p.lo, n)
		}
		at += n
	}
	return set
}

func concatBits(dst []byte, pieces []piece) {
	at := 0
	for _, p := range pieces {
		bitutil.CopyBitmap(p.col.bits, p.col.bitOff+p.lo, p.rows(), dst, at)
		at += p.rows()
	}
}

func concatFixed(dst []byte, width int, pieces []piece) {
	at := 0
	for _, p := range pieces {
		at += copy(dst[at:], p.col.values[p.lo*width:p.hi*width])
	}
}

// bytesOf returns how many value bytes the pieces of a bytes column hold.
func bytesOf(pieces []piece) int64 {
	total := int64(0)
	for _, p := range pieces {
		total += int64(p.col.offsets[p.hi] - p.col.offsets[p.lo])
	}
	return total
}

func concatBytes(offs []int32, dst []byte, pieces []piece) {
	at, to := 0, int32(0)
	for _, p := range pieces {
		src := p.col.offsets[p.lo : p.hi+1]
		shift := to - src[0]
		o := offs[at : at+len(src)]
		for i, v := range src {
			o[i] = v + shift
		}
		to += int32(copy(dst[to:], p.col.values[src[0]:src[len(src)-1]]))
		at += p.rows()
	}
	offs[at] = to
}
