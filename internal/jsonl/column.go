package jsonl

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// column collects the values of one column. Unlike an Arrow builder it can be cut
// back to what it was before a row that was refused.
type column interface {
	json(s *scanner) error  // appends the next value of s
	text(cell []byte) error // appends a value in its bare form, as in CSV
	null()                  // appends NULL, allowed or not
	cut(rows int)           // drops what came after
	rows() int
	finish() *array.Data       // hands over the values and begins anew
	last() (v any, isNil bool) // last value: int64 or []byte, else nil
}

// validity says which values are not null.
type validity struct {
	n, nulls int
	bits     []byte
}

func (v *validity) add(valid bool) {
	if v.n&7 == 0 {
		v.bits = append(v.bits, 0)
	}
	if valid {
		v.bits[v.n>>3] |= 1 << (v.n & 7)
	} else {
		v.nulls++
	}
	v.n++
}

func (v *validity) valid(i int) bool { return v.bits[i>>3]&(1<<(i&7)) != 0 }

func (v *validity) cut(rows int) {
	for ; v.n > rows; v.n-- {
		at := v.n - 1
		if !v.valid(at) {
			v.nulls--
		}
		v.bits[at>>3] &^= 1 << (at & 7)
	}
	v.bits = v.bits[:(rows+7)/8]
}

// take hands over the bitmap, nil when nothing is null.
func (v *validity) take() (n, nulls int, bits *memory.Buffer) {
	n, nulls = v.n, v.nulls
	if nulls > 0 {
		bits = memory.NewBufferBytes(v.bits)
		v.bits = make([]byte, 0, cap(v.bits))
	}
	v.n, v.nulls, v.bits = 0, 0, v.bits[:0]
	return n, nulls, bits
}

// reuse is a fresh slice for as many values as the last batch had.
func reuse[T any](last []T) []T { return make([]T, 0, len(last)) }

// fixed is a column of values of one width.
type fixed[T any] struct {
	validity
	dt     arrow.DataType
	vals   []T
	parse  func(text []byte, quoted bool) (T, error)
	bytes  func([]T) []byte
	number func(T) int64 // nil where last has no answer
}

func (c *fixed[T]) json(s *scanner) error {
	text, quoted, err := s.scalar()
	if err != nil {
		return err
	}
	return c.add(text, quoted)
}

func (c *fixed[T]) text(cell []byte) error { return c.add(cell, true) }

func (c *fixed[T]) add(text []byte, quoted bool) error {
	v, err := c.parse(text, quoted)
	if err != nil {
		return err
	}
	c.vals = append(c.vals, v)
	c.validity.add(true)
	return nil
}

func (c *fixed[T]) null() {
	var zero T
	c.vals = append(c.vals, zero)
	c.validity.add(false)
}

func (c *fixed[T]) cut(rows int) {
	c.vals = c.vals[:rows]
	c.validity.cut(rows)
}

func (c *fixed[T]) rows() int { return c.n }

func (c *fixed[T]) finish() *array.Data {
	vals := c.vals
	c.vals = reuse(vals)
	n, nulls, bits := c.take()
	return array.NewData(c.dt, n, []*memory.Buffer{bits, memory.NewBufferBytes(c.bytes(vals))}, nil, nulls, 0)
}

func (c *fixed[T]) last() (any, bool) {
	if c.n == 0 || !c.valid(c.n-1) {
		return nil, true
	}
	if c.number == nil {
		return nil, false
	}
	return c.number(c.vals[c.n-1]), false
}

// maxTextBytes keeps 32-bit offsets of a batch valid.
const maxTextBytes = 1 << 30

// texts is a column of strings or bytes.
type texts struct {
	validity
	t       schema.Type
	dt      arrow.DataType
	offsets []int32 // one more than rows
	data    []byte
	hex     bool
}

func (c *texts) json(s *scanner) error {
	text, quoted, err := s.scalar()
	if err != nil {
		return err
	}
	if !quoted {
		return errs.Invalid("%s is not in quotes, as %s asks", show(text), c.t)
	}
	return c.text(text)
}

func (c *texts) text(cell []byte) error {
	if len(c.data)+len(cell) > maxTextBytes {
		return errs.Invalid("more than %d bytes of text in one batch", maxTextBytes)
	}
	if !c.hex {
		c.data = append(c.data, cell...)
	} else {
		var err error
		if c.data, err = parseHex(c.t, c.data, cell); err != nil {
			return err
		}
	}
	c.end(true)
	return nil
}

func (c *texts) null() { c.end(false) }

func (c *texts) end(valid bool) {
	c.offsets = append(c.offsets, int32(len(c.data)))
	c.validity.add(valid)
}

func (c *texts) cut(rows int) {
	c.offsets = c.offsets[:rows+1]
	c.data = c.data[:c.offsets[rows]]
	c.validity.cut(rows)
}

func (c *texts) rows() int { return c.n }

func (c *texts) finish() *array.Data {
	offsets, data := c.offsets, c.data
	c.offsets, c.data = append(reuse(offsets), 0), reuse(data)
	n, nulls, bits := c.take()
	return array.NewData(c.dt, n, []*memory.Buffer{bits, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(data)}, nil, nulls, 0)
}

func (c *texts) last() (any, bool) {
	if c.n == 0 || !c.valid(c.n-1) {
		return nil, true
	}
	return c.data[c.offsets[c.n-1]:c.offsets[c.n]], false
}

// bools is a column of booleans.
type bools struct {
	validity
	t    schema.Type
	vals validity
}

func (c *bools) json(s *scanner) error {
	text, _, err := s.scalar()
	if err != nil {
		return err
	}
	return c.text(text)
}

func (c *bools) text(cell []byte) error {
	v, err := parseBool(c.t, cell)
	if err != nil {
		return err
	}
	c.vals.add(v)
	c.validity.add(true)
	return nil
}

func (c *bools) null() {
	c.vals.add(false)
	c.validity.add(false)
}

func (c *bools) cut(rows int) {
	c.vals.cut(rows)
	c.validity.cut(rows)
}

func (c *bools) rows() int { return c.n }

func (c *bools) finish() *array.Data {
	vals := c.vals.bits
	c.vals = validity{bits: reuse(vals)}
	n, nulls, bits := c.take()
	return array.NewData(arrow.FixedWidthTypes.Boolean, n, []*memory.Buffer{bits, memory.NewBufferBytes(vals)}, nil, nulls, 0)
}

func (c *bools) last() (any, bool) { return nil, c.n == 0 || !c.valid(c.n-1) }

// newColumn makes the column of a type; dt is its Arrow type.
func newColumn(t schema.Type, dt arrow.DataType) (column, error) {
	switch t.Kind {
	case schema.Boolean:
		return &bools{t: t}, nil
	case schema.TinyInt:
		return integerColumn(t, dt, -1<<7, 1<<7-1, arrow.Int8Traits.CastToBytes), nil
	case schema.SmallInt:
		return integerColumn(t, dt, -1<<15, 1<<15-1, arrow.Int16Traits.CastToBytes), nil
	case schema.Int:
		return integerColumn(t, dt, -1<<31, 1<<31-1, arrow.Int32Traits.CastToBytes), nil
	case schema.BigInt:
		return integerColumn(t, dt, -1<<63, 1<<63-1, arrow.Int64Traits.CastToBytes), nil
	case schema.Float:
		return &fixed[float32]{dt: dt, bytes: arrow.Float32Traits.CastToBytes, parse: func(text []byte, _ bool) (float32, error) {
			f, err := parseFloat(t, text, 32)
			return float32(f), err
		}}, nil
	case schema.Double:
		return &fixed[float64]{dt: dt, bytes: arrow.Float64Traits.CastToBytes, parse: func(text []byte, _ bool) (float64, error) {
			return parseFloat(t, text, 64)
		}}, nil
	case schema.Decimal:
		return &fixed[decimal128.Num]{dt: dt, bytes: arrow.Decimal128Traits.CastToBytes, parse: func(text []byte, _ bool) (decimal128.Num, error) {
			return parseDecimal(t, text)
		}}, nil
	case schema.Char, schema.VarChar, schema.Binary, schema.VarBinary:
		hex := t.Kind == schema.Binary || t.Kind == schema.VarBinary
		return &texts{t: t, dt: dt, offsets: []int32{0}, hex: hex}, nil
	case schema.Date:
		return temporalColumn(t, dt, arrow.Int32Traits.CastToBytes, parseDay), nil
	case schema.Time:
		return temporalColumn(t, dt, arrow.Int32Traits.CastToBytes, parseMillisOfDay), nil
	case schema.Timestamp, schema.TimestampLTZ:
		unit := perSecond(dt.(*arrow.TimestampType).Unit)
		return temporalColumn(t, dt, arrow.Int64Traits.CastToBytes, func(t schema.Type, text []byte) (int64, error) {
			return parseInstant(t, text, unit)
		}), nil
	case schema.Array, schema.Map, schema.Multiset, schema.Row:
		return newNested(t, dt)
	}
	return nil, errs.Unsupported("type %s", t.Kind)
}

func integerColumn[T int8 | int16 | int32 | int64](t schema.Type, dt arrow.DataType, lo, hi int64, bytes func([]T) []byte) column {
	return &fixed[T]{dt: dt, bytes: bytes,
		parse: func(text []byte, _ bool) (T, error) {
			n, err := parseInteger(t, text, lo, hi)
			return T(n), err
		},
		number: func(v T) int64 { return int64(v) },
	}
}

// temporalColumn takes strings only: a bare number could mean seconds as well as
// milliseconds.
func temporalColumn[T int32 | int64](t schema.Type, dt arrow.DataType, bytes func([]T) []byte, parse func(schema.Type, []byte) (T, error)) column {
	return &fixed[T]{dt: dt, bytes: bytes, parse: func(text []byte, quoted bool) (T, error) {
		if !quoted {
			return 0, refuse(t, text)
		}
		return parse(t, text)
	}}
}
