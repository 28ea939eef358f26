package datafile

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// slots describes the validity of one node over a block: how many slots there
// are, how many hold a value, and the bitmap when some do not.
type slots struct {
	n, valid int
	bitmap   *memory.Buffer // nil when all are valid
}

func (s *slots) release() {
	if s.bitmap != nil {
		s.bitmap.Release()
	}
}

// slotsOf walks the levels of the first leaf below c.
func slotsOf(c *column, b *leafBlock, mem memory.Allocator) slots {
	if b.def == nil {
		return slots{n: b.entries, valid: b.entries}
	}
	s := slots{}
	for i, d := range b.def[:b.entries] {
		if d < c.floor || b.rep != nil && b.rep[i] > c.rep {
			continue
		}
		s.n++
		if d >= c.def {
			s.valid++
		}
	}
	if s.valid == s.n {
		return s
	}
	s.bitmap = memory.NewResizableBuffer(mem)
	s.bitmap.Resize((s.n + 7) / 8)
	bits := s.bitmap.Bytes()
	clear(bits)
	at := 0
	for i, d := range b.def[:b.entries] {
		if d < c.floor || b.rep != nil && b.rep[i] > c.rep {
			continue
		}
		if d >= c.def {
			bits[at>>3] |= 1 << (at & 7)
		}
		at++
	}
	return s
}

// assembler builds Arrow arrays from decoded leaves.
type assembler struct {
	mem    memory.Allocator
	blocks map[int]*leafBlock // by leaf column
}

// build returns the array of a node; the caller releases it.
func (a assembler) build(c *column) (arrow.Array, error) {
	if c.leaf >= 0 {
		return a.leaf(c)
	}
	first := a.blocks[c.firstLeaf().leaf]
	s := slotsOf(c, first, a.mem)
	defer s.release()
	if !c.t.Nullable && c.rep == 0 && c.floor == 0 && s.valid != s.n {
		return nil, fmt.Errorf("column %s is NOT NULL and holds %d nulls", c.name, s.n-s.valid)
	}
	var buffers []*memory.Buffer
	buffers = append(buffers, s.bitmap)
	if c.dt.ID() != arrow.STRUCT {
		offsets, err := a.offsets(c, first, s.n)
		if err != nil {
			return nil, err
		}
		defer offsets.Release()
		buffers = append(buffers, offsets)
	}
	children := make([]arrow.ArrayData, 0, len(c.children))
	defer func() {
		for _, d := range children {
			d.Release()
		}
	}()
	for _, child := range c.children {
		arr, err := a.build(child)
		if err != nil {
			return nil, err
		}
		d := arr.Data()
		d.Retain()
		arr.Release()
		children = append(children, d)
	}
	return assembleNode(c, s, buffers, children)
}

func assembleNode(c *column, s slots, buffers []*memory.Buffer, children []arrow.ArrayData) (arrow.Array, error) {
	for _, d := range children[1:] {
		if d.Len() != children[0].Len() {
			return nil, fmt.Errorf("the leaves of column %s disagree about its structure", c.name)
		}
	}
	below := children
	switch c.dt.ID() {
	case arrow.STRUCT:
		if children[0].Len() != s.n {
			return nil, fmt.Errorf("the leaves of column %s disagree about its structure", c.name)
		}
	case arrow.MAP:
		if children[0].NullN() > 0 {
			return nil, fmt.Errorf("column %s holds a null map key", c.name)
		}
		entries := array.NewData(c.dt.(*arrow.MapType).Elem(), children[0].Len(), []*memory.Buffer{nil}, children, 0, 0)
		defer entries.Release()
		below = []arrow.ArrayData{entries}
	}
	data := array.NewData(c.dt, s.n, buffers, below, s.n-s.valid, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// offsets counts the elements of each slot of a list or map.
func (a assembler) offsets(c *column, b *leafBlock, n int) (*memory.Buffer, error) {
	elem := c.children[0]
	buf := memory.NewResizableBuffer(a.mem)
	buf.Resize((n + 1) * 4)
	out := asInt32s(buf.Bytes())
	at, count := 0, int32(0)
	for i, d := range b.def[:b.entries] {
		if d >= c.floor && b.rep[i] <= c.rep {
			out[at] = count
			at++
		}
		if d >= elem.floor && b.rep[i] <= elem.rep {
			if at == 0 {
				buf.Release()
				return nil, errors.New("a list element without a list")
			}
			count++
		}
	}
	out[at] = count
	return buf, nil
}

// owned reports whether a block holds exactly one batch of the leaf, so that the
// arrays may take its buffers instead of copying them.
func (c *column) owned() bool { return c.rep == 0 }

// leaf builds the array of a leaf.
func (a assembler) leaf(c *column) (arrow.Array, error) {
	b := a.blocks[c.leaf]
	s := slotsOf(c, b, a.mem)
	defer s.release()
	if s.valid != b.present {
		return nil, fmt.Errorf("column %s has %d values for %d levels", c.name, b.present, s.valid)
	}
	if !c.t.Nullable && s.valid != s.n && c.floor == 0 && c.def <= 1 {
		return nil, fmt.Errorf("column %s is NOT NULL and holds %d nulls", c.name, s.n-s.valid)
	}
	var buffers []*memory.Buffer
	var err error
	if c.put.variable {
		buffers, err = a.variable(c, b, s)
	} else {
		buffers, err = a.fixed(c, b, s)
	}
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", c.name, err)
	}
	data := array.NewData(c.dt, s.n, buffers, nil, s.n-s.valid, 0)
	for _, buf := range buffers[1:] {
		buf.Release()
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

// fixed returns validity and values of a fixed-width leaf.
func (a assembler) fixed(c *column, b *leafBlock, s slots) ([]*memory.Buffer, error) {
	w := c.put.width
	var out *memory.Buffer
	if c.put.run == nil && c.owned() {
		out, b.data = b.data, memory.NewResizableBuffer(a.mem)
		out.ResizeNoShrink(s.n * w)
	} else {
		out = memory.NewResizableBuffer(a.mem)
		out.Resize(s.n * w)
		if err := a.convert(c, b, out.Bytes()); err != nil {
			out.Release()
			return nil, err
		}
	}
	if s.bitmap != nil {
		spread(out.Bytes(), w, s)
	}
	if c.dt.ID() == arrow.BOOL {
		packed := packBits(a.mem, out.Bytes())
		out.Release()
		out = packed
	}
	return []*memory.Buffer{s.bitmap, out}, nil
}

func (a assembler) convert(c *column, b *leafBlock, out []byte) error {
	switch {
	case b.width == 0: // decimals in BYTE_ARRAY
		if b.present == 0 {
			return nil
		}
		return fixedFromBytes(out, asInt32s(b.offsets.Bytes()), b.data.Bytes(), b.present)
	case c.put.run == nil:
		copy(out, b.data.Bytes()[:b.present*b.width])
		return nil
	}
	return c.put.run(out, b.data.Bytes(), b.present)
}

// variable returns validity, offsets and data of a text or binary leaf.
func (a assembler) variable(c *column, b *leafBlock, s slots) ([]*memory.Buffer, error) {
	if b.width > 0 { // FIXED_LEN_BYTE_ARRAY
		return a.fixedAsVariable(b, s)
	}
	var offsets, data *memory.Buffer
	if c.owned() {
		b.growOffsets(max(s.n-b.present, 0))
		offsets, data = b.offsets, b.data
		b.offsets, b.data = memory.NewResizableBuffer(a.mem), memory.NewResizableBuffer(a.mem)
		offsets.ResizeNoShrink((s.n + 1) * 4)
		data.ResizeNoShrink(b.used)
	} else {
		offsets, data = memory.NewResizableBuffer(a.mem), memory.NewResizableBuffer(a.mem)
		offsets.Resize((s.n + 1) * 4)
		clear(offsets.Bytes()[:4])
		data.Resize(b.used)
		if b.present > 0 {
			copy(offsets.Bytes(), b.offsets.Bytes()[:(b.present+1)*4])
			copy(data.Bytes(), b.data.Bytes()[:b.used])
		}
	}
	if s.bitmap != nil {
		spreadOffsets(asInt32s(offsets.Bytes()), s)
	}
	return []*memory.Buffer{s.bitmap, offsets, data}, nil
}

func (a assembler) fixedAsVariable(b *leafBlock, s slots) ([]*memory.Buffer, error) {
	if int64(b.present)*int64(b.width) > maxBlockBytes {
		return nil, errBlockFull
	}
	offsets, data := memory.NewResizableBuffer(a.mem), memory.NewResizableBuffer(a.mem)
	offsets.Resize((s.n + 1) * 4)
	out := asInt32s(offsets.Bytes())
	for i := range b.present + 1 {
		out[i] = int32(i * b.width)
	}
	data.Resize(b.present * b.width)
	copy(data.Bytes(), b.data.Bytes())
	if s.bitmap != nil {
		spreadOffsets(out, s)
	}
	return []*memory.Buffer{s.bitmap, offsets, data}, nil
}

// spread moves packed values to their slots, from the back, and clears the
// others.
func spread(b []byte, w int, s slots) {
	switch w {
	case 1:
		spreadValues(b, s)
	case 2:
		spreadValues(arrow.GetData[int16](b), s)
	case 4:
		spreadValues(asInt32s(b), s)
	case 8:
		spreadValues(asInt64s(b), s)
	default:
		spreadValues(arrow.GetData[decimal128.Num](b), s)
	}
}

func spreadValues[T any](v []T, s slots) {
	var zero T
	bits, from := s.bitmap.Bytes(), s.valid-1
	for i := s.n - 1; i > from; i-- {
		if bits[i>>3]&(1<<(i&7)) == 0 {
			v[i] = zero
			continue
		}
		v[i] = v[from]
		from--
	}
}

// spreadOffsets does the same for value ends: a null slot ends where the value
// before it ends.
func spreadOffsets(off []int32, s slots) {
	bits, from := s.bitmap.Bytes(), s.valid
	for i := s.n; i > from; i-- {
		off[i] = off[from]
		if bits[(i-1)>>3]&(1<<((i-1)&7)) != 0 {
			from--
		}
	}
}

func packBits(mem memory.Allocator, v []byte) *memory.Buffer {
	buf := memory.NewResizableBuffer(mem)
	buf.Resize((len(v) + 7) / 8)
	bits := buf.Bytes()
	clear(bits)
	for i, x := range v {
		bits[i>>3] |= (x & 1) << (i & 7)
	}
	return buf
}
