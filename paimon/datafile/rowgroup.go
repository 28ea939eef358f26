package datafile

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// RowGroup is one row group of an open file, with its statistics.
type RowGroup struct {
	Index int
	r     *Reader
}

// RowGroups lists the row groups in file order.
func (r *Reader) RowGroups() []RowGroup {
	out := make([]RowGroup, len(r.meta.RowGroups))
	for i := range out {
		out[i] = RowGroup{Index: i, r: r}
	}
	return out
}

// Rows is the number of rows in the group.
func (g RowGroup) Rows() int64 { return g.r.meta.RowGroups[g.Index].NumRows }

// Bytes is the uncompressed size of the group as its writer says.
func (g RowGroup) Bytes() int64 { return max(0, g.r.meta.RowGroups[g.Index].TotalByteSize) }

// Stats returns the range and null count of a column without nesting, by its
// name in the file. ok is false when the null count is not known; HasMinMax says
// whether the range is. Text bounds may have been cut by the writer, so they are
// bounds and not values.
func (g RowGroup) Stats(f schema.Field) (st ColumnStats, ok bool) {
	if guard("statistics", func() error { st, ok = g.stats(f); return nil }) != nil {
		return ColumnStats{}, false
	}
	return st, ok
}

func (g RowGroup) stats(f schema.Field) (ColumnStats, bool) {
	res := resolver{sc: g.r.meta.Schema, file: g.r.f.Name()}
	c, err := res.column(f)
	if err != nil || c.nested() {
		return ColumnStats{}, false
	}
	s := g.r.meta.RowGroups[g.Index].Columns[c.leaf].MetaData.Statistics
	if s == nil || s.NullCount == nil || *s.NullCount < 0 || *s.NullCount > g.Rows() {
		return ColumnStats{}, false
	}
	st := ColumnStats{Nulls: *s.NullCount}
	lo, okLo := c.bound(s.MinValue)
	hi, okHi := c.bound(s.MaxValue)
	if okLo && okHi {
		st.Min, st.Max, st.HasMinMax = lo, hi, true
	}
	return st, true
}

// bound decodes one PLAIN encoded bound. Only min_value and max_value are used:
// the older fields have no defined order for text and decimals.
func (c *column) bound(b []byte) (row.Value, bool) {
	if b == nil {
		return nil, false
	}
	switch c.t.Kind {
	case schema.Char, schema.VarChar:
		return string(b), true
	case schema.Binary, schema.VarBinary:
		return append([]byte{}, b...), true
	case schema.Decimal:
		return c.decimalBound(b)
	}
	if len(b) != c.width || c.width == 12 {
		return nil, false
	}
	out := b
	if c.put.run != nil {
		out = make([]byte, c.put.width)
		if err := c.put.run(out, b, 1); err != nil {
			return nil, false
		}
	}
	return scalar(c.t, out)
}

func scalar(t schema.Type, b []byte) (row.Value, bool) {
	switch t.Kind {
	case schema.Boolean:
		return b[0] != 0, true
	case schema.TinyInt:
		return int8(b[0]), true
	case schema.SmallInt:
		return int16(binary.LittleEndian.Uint16(b)), true
	case schema.Int, schema.Date, schema.Time:
		return int32(binary.LittleEndian.Uint32(b)), true
	case schema.BigInt:
		return int64(binary.LittleEndian.Uint64(b)), true
	case schema.Float, schema.Double:
		// Some writers leave NaN out of the range and some do not, and NaN is the
		// greatest value here, so the range says nothing certain.
		return nil, false
	case schema.Timestamp, schema.TimestampLTZ:
		v := int64(binary.LittleEndian.Uint64(b))
		if t.Prec <= 3 {
			return row.Timestamp{Millis: v}, true
		}
		if t.Prec <= 6 {
			return microsValue(v), true
		}
	}
	return nil, false
}

func (c *column) decimalBound(b []byte) (row.Value, bool) {
	var out [16]byte
	if len(b) == 0 {
		return nil, false
	}
	if c.width == 4 || c.width == 8 { // INT32, INT64, or a short FIXED_LEN_BYTE_ARRAY
		if len(b) != c.width || c.put.run(out[:], b, 1) != nil {
			return nil, false
		}
	} else if bigEndian128(out[:], b) != nil {
		return nil, false
	}
	return decimal128.New(int64(binary.LittleEndian.Uint64(out[8:])), binary.LittleEndian.Uint64(out[:8])), true
}
