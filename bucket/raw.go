package bucket

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/internal/errs"
)

// raw is a checked view of the buffers of one Arrow array. The positions of
// texts and lists are known to be monotone and inside of what they point to, so
// that no kernel needs to check again. It aliases the array.
type raw struct {
	rows     int
	nulls    int
	valid    []byte // validity bitmap, bit off+i; nil when nothing is null
	bits     []byte // shapeBool: bit off+i
	off      int
	fixed    []byte  // shapeFixed: rows*width bytes
	offsets  []int32 // shapeText, shapeList: rows+1 positions
	data     []byte  // shapeText
	children []raw
}

func (r *raw) isNull(i int) bool { return r.valid != nil && !bitutil.BitIsSet(r.valid, r.off+i) }

func (r *raw) bit(i int) bool { return bitutil.BitIsSet(r.bits, r.off+i) }

func (r *raw) text(i int) []byte { return r.data[r.offsets[i]:r.offsets[i+1]] }

func malformed(n *node, format string, args ...any) error {
	return errs.Invalid("column %s: malformed array: "+format+"; nothing was written", append([]any{n.name}, args...)...)
}

// view checks rows [from, from+rows) of an array's data against its layout and
// fills r. Nothing is read through an unchecked position.
func (r *raw) view(n *node, d arrow.ArrayData, from, rows int) error {
	if d == nil || rows < 0 || from < 0 || d.Len() < from+rows {
		return malformed(n, "fewer than %d values", from+rows)
	}
	buffers := d.Buffers()
	off := d.Offset() + from
	if off < 0 {
		return malformed(n, "negative offset %d", off)
	}
	*r = raw{rows: rows, off: off}
	if len(buffers) > 0 && buffers[0] != nil && buffers[0].Len() > 0 {
		r.valid = buffers[0].Bytes()
		if len(r.valid) < (off+rows+7)/8 {
			return malformed(n, "a validity bitmap of %d bytes for %d values", len(r.valid), off+rows)
		}
		if r.nulls = rows - bitutil.CountSetBits(r.valid, off, rows); r.nulls == 0 {
			r.valid = nil
		}
	}
	switch n.shape {
	case shapeFixed, shapeBool:
		return r.viewValues(n, bufferBytes(buffers, 1), off)
	case shapeText:
		r.data = bufferBytes(buffers, 2)
		return r.viewOffsets(n, bufferBytes(buffers, 1), off, len(r.data))
	case shapeList:
		return r.viewList(n, d, off)
	}
	return r.viewStruct(n, d, off)
}

func bufferBytes(buffers []*memory.Buffer, i int) []byte {
	if i < len(buffers) && buffers[i] != nil {
		return buffers[i].Bytes()
	}
	return nil
}

func (r *raw) viewValues(n *node, b []byte, off int) error {
	if n.shape == shapeBool {
		if len(b) < (off+r.rows+7)/8 {
			return malformed(n, "%d bytes of values for %d values", len(b), off+r.rows)
		}
		r.bits = b
		return nil
	}
	if len(b) < (off+r.rows)*n.width {
		return malformed(n, "%d bytes of values for %d values", len(b), off+r.rows)
	}
	r.fixed = b[off*n.width : (off+r.rows)*n.width : (off+r.rows)*n.width]
	return nil
}

// viewOffsets checks that positions ascend and stay inside of limit values.
func (r *raw) viewOffsets(n *node, b []byte, off, limit int) error {
	if r.rows == 0 {
		r.offsets = noOffsets
		return nil
	}
	all := arrow.Int32Traits.CastFromBytes(b)
	if len(all) < off+r.rows+1 {
		return malformed(n, "%d positions for %d values", len(all), off+r.rows)
	}
	r.offsets = all[off : off+r.rows+1]
	last := int32(0)
	for i, v := range r.offsets {
		if v < last {
			return malformed(n, "position %d at value %d goes back", v, i)
		}
		last = v
	}
	if int(last) > limit {
		return malformed(n, "position %d is behind the end of %d", last, limit)
	}
	return nil
}

var noOffsets = []int32{0}

func (r *raw) viewList(n *node, d arrow.ArrayData, off int) error {
	kids := d.Children()
	if len(kids) != 1 || kids[0] == nil {
		return malformed(n, "%d children where one belongs", len(kids))
	}
	r.children = make([]raw, 1)
	if err := r.children[0].view(n.children[0], kids[0], 0, kids[0].Len()); err != nil {
		return err
	}
	return r.viewOffsets(n, bufferBytes(d.Buffers(), 1), off, kids[0].Len())
}

func (r *raw) viewStruct(n *node, d arrow.ArrayData, off int) error {
	kids := d.Children()
	if len(kids) != len(n.children) {
		return malformed(n, "%d children for %d fields", len(kids), len(n.children))
	}
	r.children = make([]raw, len(kids))
	for i, k := range kids {
		if err := r.children[i].view(n.children[i], k, off, r.rows); err != nil {
			return err
		}
	}
	return nil
}
