package merge

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Gather copies the rows sel of every column, in the order of sel, to new arrays
// with buffers from alloc; nil means the Go heap. nil columns stay nil; a nil sel
// (what Sort returns for sorted input) copies nothing and retains the columns.
// Null slots of the result hold no bytes. sel must lie inside of the columns. The
// caller releases the arrays.
func Gather(alloc memory.Allocator, cols []arrow.Array, sel []int32) []arrow.Array {
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		switch {
		case c == nil:
		case sel == nil:
			c.Retain()
			out[i] = c
		default:
			out[i] = gatherArray(alloc, c, sel)
		}
	}
	return out
}

func gatherArray(alloc memory.Allocator, arr arrow.Array, sel []int32) arrow.Array {
	if arr.DataType().ID() == arrow.NULL {
		return array.NewNull(len(sel))
	}
	c := viewColumn(arr)
	return c.gather(alloc, arr.DataType(), sel)
}

// gather copies the rows sel to a new array of type dt.
func (c *column) gather(alloc memory.Allocator, dt arrow.DataType, sel []int32) arrow.Array {
	n := len(sel)
	validity, nulls := c.gatherValidity(alloc, sel)
	switch c.shape {
	case shapeBits:
		buf := newBuffer(alloc, int(bitutil.BytesForBits(int64(n))))
		gatherBits(buf.Bytes(), c.bits, c.bitOff, sel)
		return makeArray(dt, n, []*memory.Buffer{validity, buf}, nil, nulls)
	case shapeFixed:
		buf := newBuffer(alloc, n*c.width)
		gatherFixed(buf.Bytes(), c.values, c.width, sel)
		return makeArray(dt, n, []*memory.Buffer{validity, buf}, nil, nulls)
	case shapeBytes:
		offsets, values := c.gatherBytes(alloc, sel)
		return makeArray(dt, n, []*memory.Buffer{validity, offsets, values}, nil, nulls)
	case shapeList:
		offsets, rows := c.gatherLists(alloc, sel)
		child := gatherArray(alloc, c.child(), rows)
		return makeArray(dt, n, []*memory.Buffer{validity, offsets}, []arrow.Array{child}, nulls)
	case shapeStruct:
		s := c.array.(*array.Struct)
		children := make([]arrow.Array, s.NumField())
		for i := range children {
			children[i] = gatherArray(alloc, s.Field(i), sel)
		}
		return makeArray(dt, n, []*memory.Buffer{validity}, children, nulls)
	}
	if validity != nil {
		validity.Release()
	}
	return gatherSlices(alloc, c.array, sel)
}

// gatherSlices serves the types that have no path of their own: rows are sliced
// and concatenated one stretch at a time.
func gatherSlices(alloc memory.Allocator, arr arrow.Array, sel []int32) arrow.Array {
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	var parts []arrow.Array
	for lo := 0; lo < len(sel); {
		hi := lo + 1
		for hi < len(sel) && sel[hi] == sel[hi-1]+1 {
			hi++
		}
		parts = append(parts, array.NewSlice(arr, int64(sel[lo]), int64(sel[hi-1])+1))
		lo = hi
	}
	if len(parts) == 0 {
		parts = append(parts, array.NewSlice(arr, 0, 0))
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

func (c *column) gatherValidity(alloc memory.Allocator, sel []int32) (*memory.Buffer, int) {
	if c.valid == nil {
		return nil, 0
	}
	buf := newBuffer(alloc, int(bitutil.BytesForBits(int64(len(sel)))))
	set := gatherBits(buf.Bytes(), c.valid, c.validOff, sel)
	return buf, len(sel) - set
}

// gatherBits writes the bits src[off+sel[i]] to dst and returns how many are set.
func gatherBits(dst, src []byte, off int, sel []int32) int {
	set := 0
	for i := 0; i < len(sel); i += 8 {
		var b byte
		for k, s := range sel[i:min(i+8, len(sel))] {
			p := off + int(s)
			bit := src[p>>3] >> uint(p&7) & 1
			b |= bit << uint(k)
			set += int(bit)
		}
		dst[i>>3] = b
	}
	return set
}

func gatherFixed(dst, src []byte, width int, sel []int32) {
	switch width {
	case 1:
		gatherValues[uint8](dst, src, sel)
	case 2:
		gatherValues[uint16](dst, src, sel)
	case 4:
		gatherValues[uint32](dst, src, sel)
	case 8:
		gatherValues[uint64](dst, src, sel)
	case 16:
		gatherValues[[2]uint64](dst, src, sel)
	default:
		for i, s := range sel {
			copy(dst[i*width:(i+1)*width], src[int(s)*width:(int(s)+1)*width])
		}
	}
}

func gatherValues[T uint8 | uint16 | uint32 | uint64 | [2]uint64](dst, src []byte, sel []int32) {
	d, s := castBytes[T](dst), castBytes[T](src)
	d = d[:len(sel)]
	for i, p := range sel {
		d[i] = s[p]
	}
}

// castBytes views b as values of a fixed-width type without pointers.
func castBytes[T uint8 | uint16 | uint32 | uint64 | int32 | [2]uint64](b []byte) []T {
	var t T
	n := len(b) / int(unsafe.Sizeof(t))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// gatherBytes copies strings in two passes: lengths to offsets, then the bytes.
func (c *column) gatherBytes(alloc memory.Allocator, sel []int32) (offsets, values *memory.Buffer) {
	offsets = newBuffer(alloc, (len(sel)+1)*4)
	offs := castBytes[int32](offsets.Bytes())
	total := c.gatherOffsets(offs, sel)
	values = newBuffer(alloc, int(total)+copySlack)
	copyStrings(values.Bytes(), offs, c.values, c.offsets, sel)
	if alloc == nil {
		return offsets, memory.NewBufferBytes(values.Bytes()[:total])
	}
	values.ResizeNoShrink(int(total))
	return offsets, values
}

func (c *column) gatherOffsets(offs []int32, sel []int32) int32 {
	total := int32(0)
	offs = offs[:len(sel)+1]
	if c.valid == nil {
		src := c.offsets
		for i, s := range sel {
			offs[i] = total
			total += src[s+1] - src[s]
		}
	} else {
		for i, s := range sel {
			offs[i] = total
			if bitutil.BitIsSet(c.valid, c.validOff+int(s)) {
				total += c.offsets[s+1] - c.offsets[s]
			}
		}
	}
	offs[len(sel)] = total
	return total
}

// copySlack is how far copyStrings may write behind the end of the last string.
const copySlack = 32

// copyStrings copies string sel[i] of src to dst at offs[i]. Strings of up to 32
// bytes are copied as whole 16-byte blocks: what is too much is overwritten by
// the next string or falls into the slack behind dst.
func copyStrings(dst []byte, offs []int32, src []byte, srcOffs []int32, sel []int32) {
	for i, s := range sel {
		to, n := offs[i], int(offs[i+1]-offs[i])
		from := int(srcOffs[s])
		switch {
		case n <= 16 && from+16 <= len(src):
			*(*[16]byte)(dst[to:]) = *(*[16]byte)(src[from:])
		case n <= 32 && from+32 <= len(src):
			*(*[32]byte)(dst[to:]) = *(*[32]byte)(src[from:])
		default:
			copy(dst[to:int(to)+n], src[from:from+n])
		}
	}
}

// gatherLists returns the new offsets and the child rows that they select.
func (c *column) gatherLists(alloc memory.Allocator, sel []int32) (*memory.Buffer, []int32) {
	buf := newBuffer(alloc, (len(sel)+1)*4)
	offs := castBytes[int32](buf.Bytes())
	total := c.gatherOffsets(offs, sel)
	rows := make([]int32, 0, total)
	for i, s := range sel {
		from := c.offsets[s]
		for k := range offs[i+1] - offs[i] {
			rows = append(rows, from+k)
		}
	}
	return buf, rows
}
