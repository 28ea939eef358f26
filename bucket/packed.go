package bucket

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/tideline-db/tideline/merge"
)

// packed is the rows of a small part in one allocation, column behind column, in
// the order in which they came:
//
//	[kinds: rows bytes, when some row is not +I]
//	per column:
//	  [has nulls: 1 byte]
//	  [validity:  rows bytes, when it has nulls]
//	  [values:    rows*width bytes | text: rows lengths of 4 bytes, then the bytes]
//
// A whole Arrow column costs some 300 bytes of objects; a packed row costs its
// values.
type packed struct {
	rows  int
	kinds bool
	buf   []byte
}

// markBytes is what an open chunk retains for one batch besides its rows.
const markBytes = 8

// retained is what the rows cost inside of a chunk.
func (p packed) retained(t *Table) int64 {
	n := markBytes
	if p.kinds {
		n += p.rows
	}
	p.each(t, func(_ *node, c packedColumn) {
		n += len(c.valid) + len(c.values)
		n += len(c.text)
	})
	return int64(n)
}

// pack copies the selected rows of the columns.
func (part *Part) pack(t *Table, columns []raw, s selection, kinds []int8) {
	rows := s.rows()
	kinds = pickKinds(kinds, s)
	size := len(kinds) + len(columns) + rows*t.rowBytes
	nullable := 0
	for i := range columns {
		r := &columns[i]
		if r.valid != nil {
			nullable++
		}
		if r.offsets == nil {
			continue
		}
		if s.idx == nil {
			size += int(r.offsets[s.hi] - r.offsets[s.lo])
			continue
		}
		for _, j := range s.idx {
			size += int(r.offsets[j+1] - r.offsets[j])
		}
	}
	size += nullable * rows
	buf := part.packed.buf[:0]
	if cap(buf) < size {
		buf = make([]byte, 0, size)
	}
	for _, k := range kinds {
		buf = append(buf, byte(k))
	}
	for i, n := range t.columns {
		buf = packColumn(buf, n, &columns[i], s)
	}
	part.packed = packed{rows: rows, kinds: kinds != nil, buf: buf}
	// One byte of each column is a flag that the chunk does not keep.
	part.Bytes = int64(len(buf) - len(columns) + markBytes)
}

func packColumn(buf []byte, n *node, r *raw, s selection) []byte {
	if r.valid == nil {
		buf = append(buf, 0)
	} else {
		buf = append(buf, 1)
		for i := range s.rows() {
			if r.isNull(s.at(i)) {
				buf = append(buf, 0)
			} else {
				buf = append(buf, 1)
			}
		}
	}
	switch n.shape {
	case shapeFixed:
		if s.idx == nil {
			return append(buf, r.fixed[s.lo*n.width:s.hi*n.width]...)
		}
		for _, j := range s.idx {
			buf = append(buf, r.fixed[int(j)*n.width:(int(j)+1)*n.width]...)
		}
	case shapeBool:
		for i := range s.rows() {
			if r.bit(s.at(i)) {
				buf = append(buf, 1)
			} else {
				buf = append(buf, 0)
			}
		}
	case shapeText:
		for i := range s.rows() {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(len(r.text(s.at(i)))))
		}
		for i := range s.rows() {
			buf = append(buf, r.text(s.at(i))...)
		}
	}
	return buf
}

func (s selection) at(i int) int {
	if s.idx != nil {
		return int(s.idx[i])
	}
	return s.lo + i
}

// packedColumn aliases one column of packed rows.
type packedColumn struct {
	valid  []byte // one byte a row; nil: nothing is null
	values []byte // rows*width bytes, for text the lengths
	text   []byte
}

func (c packedColumn) textLen(i int) int {
	return int(binary.LittleEndian.Uint32(c.values[4*i:]))
}

// rowKinds are the kinds of the rows, nil when all are +I.
func (p packed) rowKinds() []byte {
	if !p.kinds {
		return nil
	}
	return p.buf[:p.rows]
}

// next cuts the column of n off the front of buf.
func (p packed) next(n *node, buf []byte) (c packedColumn, rest []byte) {
	flag := buf[0]
	buf = buf[1:]
	if flag != 0 {
		c.valid, buf = buf[:p.rows], buf[p.rows:]
	}
	size := p.rows * n.cellBytes()
	c.values, buf = buf[:size], buf[size:]
	if n.shape == shapeText {
		size = 0
		for i := range p.rows {
			size += c.textLen(i)
		}
		c.text, buf = buf[:size], buf[size:]
	}
	return c, buf
}

func (p packed) columnsAt() []byte { return p.buf[len(p.rowKinds()):] }

func (p packed) each(t *Table, f func(*node, packedColumn)) {
	buf := p.columnsAt()
	for _, n := range t.columns {
		var c packedColumn
		c, buf = p.next(n, buf)
		f(n, c)
	}
}

// after copies the rows from cut on.
func (p packed) after(t *Table, cut int) packed {
	out := packed{rows: p.rows - cut}
	if kinds := p.rowKinds(); kinds != nil {
		for _, k := range kinds[cut:] {
			out.kinds = out.kinds || int8(k) != merge.KindInsert
		}
		if out.kinds {
			out.buf = append(out.buf, kinds[cut:]...)
		}
	}
	p.each(t, func(n *node, c packedColumn) {
		if c.valid == nil {
			out.buf = append(out.buf, 0)
		} else {
			out.buf = append(append(out.buf, 1), c.valid[cut:]...)
		}
		out.buf = append(out.buf, c.values[cut*n.cellBytes():]...)
		if n.shape == shapeText {
			from := 0
			for i := range cut {
				from += c.textLen(i)
			}
			out.buf = append(out.buf, c.text[from:]...)
		}
	})
	return out
}

// bitsOf turns one byte a row into a bitmap.
func bitsOf(bytes []byte) []byte {
	bits := make([]byte, (len(bytes)+7)/8)
	for i, b := range bytes {
		if b != 0 {
			bitutil.SetBit(bits, i)
		}
	}
	return bits
}
