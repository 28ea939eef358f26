package datafile

import (
	"context"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Mapping reads files of one schema version as columns of another (FORMAT
// §2.3): columns and ROW members are matched by id, read under their old names,
// cast where that loses nothing, and filled with nulls where the file's version
// did not have them. It is immutable and may be shared.
type Mapping struct {
	want  []schema.Field // in the file's version
	plans []plan         // one for each table column
	out   *arrow.Schema
}

// plan makes one target array out of one source array.
type plan struct {
	src      int // position among the wanted columns or children, -1: nulls
	dt       arrow.DataType
	same     bool                                                         // the source array as it is
	cast     func(mem memory.Allocator, d arrow.ArrayData) *memory.Buffer // nil: the value buffers stay
	children []plan
}

// Evolve plans to read the given table columns from files written under
// version file. System columns (_SEQUENCE_NUMBER, _VALUE_KIND, _KEY_*) may be
// among them and are taken as they are. Safe casts are: wider integers, FLOAT to
// DOUBLE, a decimal of more digits and the same scale, and longer text or binary
// types. Every other change of type is ErrUnsupported and names the column.
func Evolve(file *schema.Schema, table []schema.Field) (*Mapping, error) {
	m := &Mapping{out: schema.ArrowSchema(table)}
	for i, f := range table {
		dt := m.out.Field(i).Type
		if dt.ID() == arrow.NULL {
			return nil, errs.Unsupported("column %s of type %s", f.Name, f.Type)
		}
		old, ok := f, true
		if !schema.IsSystemName(f.Name) {
			old, ok = fieldByID(file.Fields, f.ID)
		}
		if !ok {
			m.plans = append(m.plans, plan{src: -1, dt: dt})
			continue
		}
		p, want, err := evolveField(f.Name, old, f.Type, dt)
		if err != nil {
			return nil, err
		}
		p.src = len(m.want)
		m.want = append(m.want, want)
		m.plans = append(m.plans, p)
	}
	return m, nil
}

// Want returns the columns to read, named and typed as in the file's version.
func (m *Mapping) Want() []schema.Field { return m.want }

// Schema is the Arrow schema of the evolved batches.
func (m *Mapping) Schema() *arrow.Schema { return m.out }

// Source returns the file's column behind table column i; ok is false where
// the file's version did not have it.
func (m *Mapping) Source(i int) (f schema.Field, ok bool) {
	if m.plans[i].src < 0 {
		return schema.Field{}, false
	}
	return m.want[m.plans[i].src], true
}

// ReadAs is Read through a mapping: batches come in the mapping's schema.
func (r *Reader) ReadAs(ctx context.Context, m *Mapping, o ReadOptions) (*Batches, error) {
	b, err := r.Read(ctx, m.want, o)
	if err != nil {
		return nil, err
	}
	b.mapping = m
	return b, nil
}

// apply turns a batch of the wanted columns into table columns and releases it.
func (m *Mapping) apply(mem memory.Allocator, in arrow.RecordBatch) arrow.RecordBatch {
	defer in.Release()
	n := int(in.NumRows())
	cols := make([]arrow.Array, len(m.plans))
	for i, p := range m.plans {
		if p.src < 0 {
			cols[i] = array.MakeArrayOfNull(mem, p.dt, n)
			continue
		}
		d := p.apply(mem, in.Column(p.src).Data())
		cols[i] = array.MakeFromData(d)
		d.Release()
	}
	out := array.NewRecordBatch(m.out, cols, in.NumRows())
	for _, c := range cols {
		c.Release()
	}
	return out
}

// apply builds the target data; the caller releases it. Arrays of this
// package's reader have no offset.
func (p plan) apply(mem memory.Allocator, d arrow.ArrayData) arrow.ArrayData {
	if p.same {
		d.Retain()
		return d
	}
	buffers := append([]*memory.Buffer(nil), d.Buffers()...)
	if p.cast != nil {
		buf := p.cast(mem, d)
		defer buf.Release()
		buffers[1] = buf
	}
	below := d.Children()
	if p.dt.ID() == arrow.MAP {
		return p.applyMap(mem, d, buffers)
	}
	children := make([]arrow.ArrayData, len(p.children))
	for i, c := range p.children {
		if c.src < 0 {
			nulls := array.MakeArrayOfNull(mem, c.dt, d.Len())
			children[i] = nulls.Data()
			children[i].Retain()
			nulls.Release()
		} else {
			children[i] = c.apply(mem, below[c.src])
		}
	}
	return wrap(p.dt, d, buffers, children)
}

// applyMap rebuilds the entries below a map.
func (p plan) applyMap(mem memory.Allocator, d arrow.ArrayData, buffers []*memory.Buffer) arrow.ArrayData {
	entries := d.Children()[0]
	parts := make([]arrow.ArrayData, 2)
	for i, c := range p.children {
		parts[i] = c.apply(mem, entries.Children()[i])
	}
	e := wrap(p.dt.(*arrow.MapType).Elem(), entries, entries.Buffers(), parts)
	return wrap(p.dt, d, buffers, []arrow.ArrayData{e})
}

// wrap makes data of another type over buffers and children, which it releases.
func wrap(dt arrow.DataType, like arrow.ArrayData, buffers []*memory.Buffer, children []arrow.ArrayData) arrow.ArrayData {
	out := array.NewData(dt, like.Len(), buffers, children, like.NullN(), 0)
	for _, c := range children {
		c.Release()
	}
	return out
}

func fieldByID(fields []schema.Field, id int) (schema.Field, bool) {
	for _, f := range fields {
		if f.ID == id {
			return f, true
		}
	}
	return schema.Field{}, false
}

// evolveField plans old -> t and returns the part of old that must be read.
func evolveField(name string, old schema.Field, t schema.Type, dt arrow.DataType) (plan, schema.Field, error) {
	p, oldType, err := evolveType(name, old.Type, t, dt)
	old.Type = oldType
	return p, old, err
}

func evolveType(name string, from, to schema.Type, dt arrow.DataType) (plan, schema.Type, error) {
	if from.Kind == to.Kind {
		switch to.Kind {
		case schema.Row:
			return evolveRow(name, from, to, dt)
		case schema.Array:
			elem, want, err := evolveType(name+".element", *from.Elem, *to.Elem, dt.(*arrow.ListType).Elem())
			from.Elem = &want
			return collect(dt, from, elem), from, err
		case schema.Map:
			mt := dt.(*arrow.MapType)
			key, wantKey, err := evolveType(name+".key", *from.Key, *to.Key, mt.KeyType())
			if err != nil {
				return plan{}, from, err
			}
			value, wantValue, err := evolveType(name+".value", *from.Elem, *to.Elem, mt.ItemType())
			from.Key, from.Elem = &wantKey, &wantValue
			return collect(dt, from, key, value), from, err
		case schema.Multiset:
			mt := dt.(*arrow.MapType)
			elem, want, err := evolveType(name+".element", *from.Elem, *to.Elem, mt.KeyType())
			from.Elem = &want
			return collect(dt, from, elem, plan{same: true, dt: mt.ItemType()}), from, err
		}
	}
	p, ok := evolveScalar(from, to, dt)
	if !ok {
		return plan{}, from, errs.Unsupported("cast of column %s from %s to %s", name, from, to)
	}
	return p, from, nil
}

// collect plans a node over its children, in place where nothing changes.
func collect(dt arrow.DataType, from schema.Type, children ...plan) plan {
	p := plan{dt: dt, children: children, same: true}
	for i := range children {
		p.children[i].src = i
		p.same = p.same && children[i].same
	}
	source, err := schema.ArrowType(from)
	p.same = p.same && err == nil && arrow.TypeEqual(source, dt)
	return p
}

func evolveRow(name string, from, to schema.Type, dt arrow.DataType) (plan, schema.Type, error) {
	st := dt.(*arrow.StructType)
	p := plan{dt: dt}
	want := from
	want.Fields = nil
	same := true
	for i, f := range to.Fields {
		old, ok := fieldByID(from.Fields, f.ID)
		if !ok {
			p.children = append(p.children, plan{src: -1, dt: st.Field(i).Type})
			same = false
			continue
		}
		child, wantField, err := evolveField(name+"."+f.Name, old, f.Type, st.Field(i).Type)
		if err != nil {
			return plan{}, from, err
		}
		child.src = len(want.Fields)
		same = same && child.same
		want.Fields = append(want.Fields, wantField)
		p.children = append(p.children, child)
	}
	if len(want.Fields) == 0 && len(from.Fields) > 0 {
		// No member is left, but one must be read to tell null rows.
		want.Fields = from.Fields[:1]
	}
	source, err := schema.ArrowType(want)
	p.same = same && err == nil && arrow.TypeEqual(source, dt)
	return p, want, nil
}

// evolveScalar plans types without members.
func evolveScalar(from, to schema.Type, dt arrow.DataType) (plan, bool) {
	p := plan{dt: dt, same: true}
	a, b := from, to
	a.Nullable, b.Nullable = true, true
	if a.Equal(b) {
		return p, true
	}
	switch {
	case isText(from.Kind) && isText(to.Kind) || isBinary(from.Kind) && isBinary(to.Kind):
		fixed := to.Kind == schema.Char || to.Kind == schema.Binary // would pad
		return p, !fixed && to.Length >= from.Length
	case from.Kind == schema.Decimal && to.Kind == schema.Decimal:
		p.same = false
		return p, to.Scale == from.Scale && to.Prec >= from.Prec
	}
	p.same = false
	p.cast = widening(from.Kind, to.Kind)
	return p, p.cast != nil
}

func isText(k schema.Kind) bool   { return k == schema.Char || k == schema.VarChar }
func isBinary(k schema.Kind) bool { return k == schema.Binary || k == schema.VarBinary }

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// widening returns the conversion of value buffers between number types.
func widening(from, to schema.Kind) func(memory.Allocator, arrow.ArrayData) *memory.Buffer {
	switch [2]schema.Kind{from, to} {
	case [2]schema.Kind{schema.TinyInt, schema.SmallInt}:
		return widen[int8, int16]
	case [2]schema.Kind{schema.TinyInt, schema.Int}:
		return widen[int8, int32]
	case [2]schema.Kind{schema.TinyInt, schema.BigInt}:
		return widen[int8, int64]
	case [2]schema.Kind{schema.SmallInt, schema.Int}:
		return widen[int16, int32]
	case [2]schema.Kind{schema.SmallInt, schema.BigInt}:
		return widen[int16, int64]
	case [2]schema.Kind{schema.Int, schema.BigInt}:
		return widen[int32, int64]
	case [2]schema.Kind{schema.Float, schema.Double}:
		return widen[float32, float64]
	}
	return nil
}

func widen[A, B number](mem memory.Allocator, d arrow.ArrayData) *memory.Buffer {
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(d.Len() * int(unsafe.Sizeof(B(0))))
	dst, src := arrow.GetData[B](buf.Bytes()), arrow.GetData[A](d.Buffers()[1].Bytes())
	for i, v := range src[:d.Len()] {
		dst[i] = B(v)
	}
	return buf
}
