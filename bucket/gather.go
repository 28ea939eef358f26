package bucket

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// selection names rows of a column: those of idx in that order, or without idx
// the range [lo, hi).
type selection struct {
	idx    []int32
	lo, hi int
}

func (s selection) rows() int {
	if s.idx != nil {
		return len(s.idx)
	}
	return s.hi - s.lo
}

// gather copies the selected rows of a column to buffers of exactly their size
// on the Go heap, and counts the bytes of these buffers.
func gather(n *node, r *raw, s selection, bytes *int64) arrow.ArrayData {
	rows := s.rows()
	valid, nulls := gatherValidity(r, s, bytes)
	buffers := make([]*memory.Buffer, 2, 3)
	buffers[0] = valid
	var children []arrow.ArrayData
	switch n.shape {
	case shapeFixed:
		buffers[1] = memory.NewBufferBytes(gatherFixed(n.width, r.fixed, s))
		*bytes += int64(rows * n.width)
	case shapeBool:
		bits := gatherBits(r.bits, r.off, s)
		buffers[1] = memory.NewBufferBytes(bits)
		*bytes += int64(len(bits))
	case shapeText:
		offsets, data := gatherText(r, s)
		buffers[1] = memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets))
		buffers = append(buffers, memory.NewBufferBytes(data))
		*bytes += int64(4*len(offsets) + len(data))
	case shapeList:
		offsets, inner := gatherList(r, s)
		buffers[1] = memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets))
		*bytes += int64(4 * len(offsets))
		children = []arrow.ArrayData{gather(n.children[0], &r.children[0], inner, bytes)}
	case shapeStruct:
		buffers = buffers[:1]
		for i, c := range n.children {
			children = append(children, gather(c, &r.children[i], s, bytes))
		}
	}
	return array.NewData(n.dt, rows, buffers, children, nulls, 0)
}

// gatherArray is gather for a whole column.
func gatherArray(n *node, r *raw, s selection, bytes *int64) arrow.Array {
	return array.MakeFromData(gather(n, r, s, bytes))
}

func gatherValidity(r *raw, s selection, bytes *int64) (*memory.Buffer, int) {
	if r.valid == nil {
		return nil, 0
	}
	rows := s.rows()
	bits := gatherBits(r.valid, r.off, s)
	nulls := rows - bitutil.CountSetBits(bits, 0, rows)
	if nulls == 0 {
		return nil, 0
	}
	*bytes += int64(len(bits))
	return memory.NewBufferBytes(bits), nulls
}

func gatherBits(src []byte, off int, s selection) []byte {
	dst := make([]byte, (s.rows()+7)/8)
	if s.idx == nil {
		bitutil.CopyBitmap(src, off+s.lo, s.hi-s.lo, dst, 0)
		return dst
	}
	for i, j := range s.idx {
		at := off + int(j)
		dst[i>>3] |= src[at>>3] >> (at & 7) & 1 << (i & 7)
	}
	return dst
}

func gatherFixed(width int, src []byte, s selection) []byte {
	if s.idx == nil {
		dst := alignedBytes((s.hi - s.lo) * width)
		copy(dst, src[s.lo*width:s.hi*width])
		return dst
	}
	switch width {
	case 1:
		return take(src, s.idx)
	case 2:
		return arrow.Int16Traits.CastToBytes(take(arrow.Int16Traits.CastFromBytes(src), s.idx))
	case 4:
		return arrow.Int32Traits.CastToBytes(take(arrow.Int32Traits.CastFromBytes(src), s.idx))
	case 8:
		return arrow.Int64Traits.CastToBytes(take(arrow.Int64Traits.CastFromBytes(src), s.idx))
	}
	return arrow.Decimal128Traits.CastToBytes(take(castDecimals(src), s.idx))
}

func castDecimals(b []byte) []decimal128.Num { return arrow.Decimal128Traits.CastFromBytes(b) }

func take[T any](src []T, idx []int32) []T {
	dst := make([]T, len(idx))
	for i, j := range idx {
		dst[i] = src[j]
	}
	return dst
}

// alignedBytes is memory that may hold values of any width.
func alignedBytes(n int) []byte {
	return arrow.Int64Traits.CastToBytes(make([]int64, (n+7)/8))[:n:n]
}

// gatherText copies texts behind one another. What lies under a null is not
// copied when rows are picked.
func gatherText(r *raw, s selection) ([]int32, []byte) {
	offsets := make([]int32, s.rows()+1)
	if s.idx == nil {
		from := r.offsets[s.lo]
		for i, v := range r.offsets[s.lo : s.hi+1] {
			offsets[i] = v - from
		}
		data := make([]byte, offsets[len(offsets)-1])
		copy(data, r.data[from:])
		return offsets, data
	}
	size := int32(0)
	for i, j := range s.idx {
		if !r.isNull(int(j)) {
			size += r.offsets[j+1] - r.offsets[j]
		}
		offsets[i+1] = size
	}
	data := make([]byte, size)
	for i, j := range s.idx {
		from := r.offsets[j]
		copy(data[offsets[i]:offsets[i+1]], r.data[from:])
	}
	return offsets, data
}

// gatherList gives the new positions and which rows of the child they need.
func gatherList(r *raw, s selection) ([]int32, selection) {
	offsets := make([]int32, s.rows()+1)
	if s.idx == nil {
		from := r.offsets[s.lo]
		for i, v := range r.offsets[s.lo : s.hi+1] {
			offsets[i] = v - from
		}
		return offsets, selection{lo: int(from), hi: int(r.offsets[s.hi])}
	}
	size := int32(0)
	for i, j := range s.idx {
		if !r.isNull(int(j)) {
			size += r.offsets[j+1] - r.offsets[j]
		}
		offsets[i+1] = size
	}
	inner := make([]int32, 0, size)
	for _, j := range s.idx {
		if !r.isNull(int(j)) {
			for k := r.offsets[j]; k < r.offsets[j+1]; k++ {
				inner = append(inner, k)
			}
		}
	}
	return offsets, selection{idx: inner}
}
