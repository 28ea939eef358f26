package jsonl

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// newNested makes the column of a collection or row.
func newNested(t schema.Type, dt arrow.DataType) (column, error) {
	if t.Kind == schema.Row {
		return newRow(t.Fields, dt.(*arrow.StructType))
	}
	var err error
	c := &list{dt: dt, offsets: []int32{0}, elemType: t.Elem}
	switch t.Kind {
	case schema.Array:
		c.elem, err = newColumn(*t.Elem, dt.(*arrow.ListType).Elem())
		return c, err
	case schema.Multiset:
		c.keyType, c.elemType = t.Elem, &schema.Type{Kind: schema.Int}
	default:
		c.keyType = t.Key
	}
	m := dt.(*arrow.MapType)
	if c.key, err = newColumn(*c.keyType, m.KeyType()); err != nil {
		return nil, err
	}
	c.entry = m.Elem()
	c.elem, err = newColumn(*c.elemType, m.ItemType())
	return c, err
}

// at puts a step of the path in front of a value error.
func at(step string, err error) error {
	if err == nil {
		return nil
	}
	var p *pathError
	if errors.As(err, &p) {
		if p.path[0] != '[' && p.path[0] != '{' {
			step += "."
		}
		return &pathError{step + p.path, p.err}
	}
	return &pathError{step, err}
}

// pathError is a value error below a column.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return fmt.Sprintf("column %s: %v", e.path, e.err) }
func (e *pathError) Unwrap() error { return e.err }

// value appends the next value or NULL, which the type must allow.
func value(c column, t *schema.Type, s *scanner) error {
	if s.null() {
		return missing(c, t)
	}
	return c.json(s)
}

func missing(c column, t *schema.Type) error {
	if !t.Nullable {
		return errs.Invalid("NULL where %s asks for a value", t)
	}
	c.null()
	return nil
}

// list is a column of arrays, or of maps when it has keys.
type list struct {
	validity
	dt       arrow.DataType
	offsets  []int32 // one more than rows
	elem     column
	elemType *schema.Type
	key      column // nil: an array
	keyType  *schema.Type
	entry    arrow.DataType
}

func (c *list) json(s *scanner) error {
	var err error
	switch {
	case c.key == nil:
		err = s.each('[', ']', func() error { return at("[]", value(c.elem, c.elemType, s)) })
	case s.peek() == '{':
		err = s.members(func(key []byte) error {
			if err := c.key.text(key); err != nil {
				return at("{key}", err)
			}
			return c.pairValue(s)
		})
	default:
		err = s.each('[', ']', func() error { return c.pair(s) })
	}
	if err != nil {
		return err
	}
	if c.elem.rows() > math.MaxInt32 {
		return errs.Invalid("more than %d elements in one batch", math.MaxInt32)
	}
	c.end(true)
	return nil
}

func (c *list) pair(s *scanner) error {
	if err := s.need('[', "the '[' of a [key, value] pair"); err != nil {
		return err
	}
	if s.null() {
		return errs.Invalid("NULL as the key of a map")
	}
	if err := c.key.json(s); err != nil {
		return at("{key}", err)
	}
	if err := s.need(',', "',' between key and value"); err != nil {
		return err
	}
	if err := c.pairValue(s); err != nil {
		return err
	}
	return s.need(']', "the ']' of a [key, value] pair")
}

func (c *list) pairValue(s *scanner) error { return at("{value}", value(c.elem, c.elemType, s)) }

func (c *list) text(cell []byte) error { return jsonCell(c, cell) }

// jsonCell reads a nested value that stands as text in a cell.
func jsonCell(c column, cell []byte) error {
	s := scanner{s: cell}
	if err := c.json(&s); err != nil {
		return err
	}
	return s.rest()
}

func (c *list) null() { c.end(false) }

func (c *list) end(valid bool) {
	c.offsets = append(c.offsets, int32(c.elem.rows()))
	c.validity.add(valid)
}

func (c *list) cut(rows int) {
	c.offsets = c.offsets[:rows+1]
	c.validity.cut(rows)
	elements := int(c.offsets[rows])
	c.elem.cut(elements)
	if c.key != nil {
		c.key.cut(elements)
	}
}

func (c *list) rows() int { return c.n }

func (c *list) finish() *array.Data {
	offsets := c.offsets
	c.offsets = append(reuse(offsets), 0)
	children := []arrow.ArrayData{c.elem.finish()}
	if c.key != nil {
		entries := children[0].Len()
		children = []arrow.ArrayData{array.NewData(c.entry, entries, []*memory.Buffer{nil}, []arrow.ArrayData{c.key.finish(), children[0]}, 0, 0)}
	}
	n, nulls, bits := c.take()
	return array.NewData(c.dt, n, []*memory.Buffer{bits, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets))}, children, nulls, 0)
}

func (c *list) last() (any, bool) { return nil, c.n == 0 || !c.validity.valid(c.n-1) }

// record reads objects into columns: the rows of a batch, or the values of a ROW.
type record struct {
	fields []schema.Field
	cols   []column
	index  map[string]int
	seen   []int // number of the object that set each column last
	object int
	// loose skips keys that are no field.
	loose bool
}

func newRecord(fields []schema.Field, types func(i int) arrow.DataType) (*record, error) {
	r := &record{fields: fields, cols: make([]column, len(fields)), index: make(map[string]int, len(fields)), seen: make([]int, len(fields))}
	for i, f := range fields {
		var err error
		if r.cols[i], err = newColumn(f.Type, types(i)); err != nil {
			return nil, at(f.Name, err)
		}
		r.index[f.Name] = i
	}
	return r, nil
}

// json appends one object to every column. After an error some columns are longer
// than others: cut them.
func (r *record) json(s *scanner) error {
	r.object++
	object, next, set := r.object, 0, 0
	err := s.members(func(key []byte) error {
		i := next
		if i >= len(r.fields) || string(key) != r.fields[i].Name { // usually in order
			var known bool
			if i, known = r.index[string(key)]; !known {
				if r.loose {
					return s.skip(0)
				}
				return errs.Invalid("key %s is no column", show(key))
			}
		}
		if r.seen[i] == object {
			return errs.Invalid("key %s stands twice in one object", show(key))
		}
		r.seen[i] = object
		next = i + 1
		set++
		return at(r.fields[i].Name, value(r.cols[i], &r.fields[i].Type, s))
	})
	if err != nil {
		return err
	}
	if set == len(r.fields) {
		return nil
	}
	for i := range r.fields {
		if r.seen[i] != object {
			if err := missing(r.cols[i], &r.fields[i].Type); err != nil {
				return at(r.fields[i].Name, err)
			}
		}
	}
	return nil
}

func (r *record) cutColumns(rows int) {
	for _, c := range r.cols {
		c.cut(rows)
	}
}

// rowColumn is a column of ROW values.
type rowColumn struct {
	*record
	validity
	dt arrow.DataType
}

func newRow(fields []schema.Field, dt *arrow.StructType) (column, error) {
	r, err := newRecord(fields, func(i int) arrow.DataType { return dt.Field(i).Type })
	return &rowColumn{record: r, dt: dt}, err
}

func (c *rowColumn) json(s *scanner) error {
	if err := c.record.json(s); err != nil {
		return err
	}
	c.validity.add(true)
	return nil
}

func (c *rowColumn) text(cell []byte) error { return jsonCell(c, cell) }

func (c *rowColumn) null() {
	for _, child := range c.cols {
		child.null()
	}
	c.validity.add(false)
}

func (c *rowColumn) cut(rows int) {
	c.cutColumns(rows)
	c.validity.cut(rows)
}

func (c *rowColumn) rows() int { return c.n }

func (c *rowColumn) finish() *array.Data {
	children := make([]arrow.ArrayData, len(c.cols))
	for i, child := range c.cols {
		children[i] = child.finish()
	}
	n, nulls, bits := c.take()
	return array.NewData(c.dt, n, []*memory.Buffer{bits}, children, nulls, 0)
}

func (c *rowColumn) last() (any, bool) { return nil, c.n == 0 || !c.validity.valid(c.n-1) }
