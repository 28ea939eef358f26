package row

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Encode gives the bytes of a row without arity; vals[i] belongs to types[i]
// and nil is null. errs.ErrInvalid when a value has the wrong Go type or a
// complex type is not null.
func Encode(types []schema.Type, vals []Value) ([]byte, error) {
	return AppendRow(make([]byte, 0, FixedSize(len(types))+32), types, vals)
}

// AppendRow is Encode onto the end of dst. On error dst is returned as it was.
func AppendRow(dst []byte, types []schema.Type, vals []Value) ([]byte, error) {
	if len(types) != len(vals) {
		return dst, errs.Invalid("encode row: %d values for %d types", len(vals), len(types))
	}
	w := begin(dst, len(types))
	for i := range types {
		if !w.value(i, &types[i], vals[i]) {
			return dst, errs.Invalid("encode row: field %d: a %T is no value of the type (kind %d)", i, vals[i], types[i].Kind)
		}
	}
	if len(w.buf)-w.base > math.MaxInt32 {
		return dst, errs.Invalid("encode row: %d bytes do not fit 32-bit offsets", len(w.buf)-w.base)
	}
	return w.buf, nil
}

// writer builds one row at the end of buf. Fields must be written in order:
// the variable part is in field order.
type writer struct {
	buf  []byte
	base int // of byte 0 of the row
	slot int // of the slot of field 0
}

var zeros [64]byte

func appendZeros(b []byte, n int) []byte {
	for n > len(zeros) {
		b = append(b, zeros[:]...)
		n -= len(zeros)
	}
	return append(b, zeros[:n]...)
}

func begin(buf []byte, n int) writer {
	w := writer{base: len(buf), slot: len(buf) + nullBytes(n)}
	w.buf = appendZeros(buf, FixedSize(n))
	return w
}

func (w *writer) fixed(i int, v uint64) {
	binary.LittleEndian.PutUint64(w.buf[w.slot+8*i:], v)
}

// reference is the slot of an item that starts at the present end of the row.
func (w *writer) reference(i int, low uint32) {
	w.fixed(i, uint64(len(w.buf)-w.base)<<32|uint64(low))
}

// null marks field i. Types whose variable part can be updated in place keep
// their space when they are null (FORMAT §5.1, the exception).
func (w *writer) null(i int, t *schema.Type) {
	w.buf[w.base+(8+i)/8] |= 1 << ((8 + i) % 8)
	switch {
	case t.Kind == schema.Decimal && t.Prec > compactDecimal:
		w.reference(i, 0)
		w.buf = appendZeros(w.buf, wideDecimalSize)
	case isTimestamp(t) && t.Prec > compactTime:
		w.reference(i, 0)
		w.buf = appendZeros(w.buf, 8)
	}
}

func isTimestamp(t *schema.Type) bool {
	return t.Kind == schema.Timestamp || t.Kind == schema.TimestampLTZ
}

// text writes CHAR, VARCHAR, BINARY and VARBINARY.
func text[T string | []byte](w *writer, i int, v T) {
	if len(v) <= inlineBytes {
		slot := w.buf[w.slot+8*i : w.slot+8*i+8]
		copy(slot, v)
		slot[7] = 0x80 | byte(len(v))
		return
	}
	w.reference(i, uint32(len(v)))
	w.buf = append(w.buf, v...)
	if pad := len(v) % 8; pad != 0 {
		w.buf = append(w.buf, zeros[:8-pad]...)
	}
}

func (w *writer) decimal(i, prec int, v decimal128.Num) {
	if prec <= compactDecimal {
		w.fixed(i, v.LowBits())
		return
	}
	var be [wideDecimalSize]byte
	binary.BigEndian.PutUint64(be[:8], uint64(v.HighBits()))
	binary.BigEndian.PutUint64(be[8:], v.LowBits())
	// The shortest two's complement form: drop leading bytes that only repeat
	// the sign bit of the byte after them.
	sign := byte(v.HighBits() >> 63)
	from := 0
	for from < len(be)-1 && be[from] == sign && be[from+1]>>7 == sign&1 {
		from++
	}
	n := len(be) - from
	w.reference(i, uint32(n))
	w.buf = append(w.buf, be[from:]...)
	w.buf = append(w.buf, zeros[:from]...)
}

func (w *writer) timestamp(i, prec int, millis int64, nanos int32) {
	if prec <= compactTime {
		w.fixed(i, uint64(millis))
		return
	}
	w.reference(i, uint32(nanos))
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(millis))
}

// value writes one field; false when the Go type does not belong to t.
func (w *writer) value(i int, t *schema.Type, v Value) bool {
	if v == nil {
		w.null(i, t)
		return true
	}
	switch t.Kind {
	case schema.Boolean:
		x, ok := v.(bool)
		if x {
			w.fixed(i, 1)
		}
		return ok
	case schema.TinyInt:
		x, ok := v.(int8)
		w.fixed(i, uint64(uint8(x)))
		return ok
	case schema.SmallInt:
		x, ok := v.(int16)
		w.fixed(i, uint64(uint16(x)))
		return ok
	case schema.Int, schema.Date, schema.Time:
		x, ok := v.(int32)
		w.fixed(i, uint64(uint32(x)))
		return ok
	case schema.BigInt:
		x, ok := v.(int64)
		w.fixed(i, uint64(x))
		return ok
	case schema.Float:
		x, ok := v.(float32)
		w.fixed(i, uint64(math.Float32bits(x)))
		return ok
	case schema.Double:
		x, ok := v.(float64)
		w.fixed(i, math.Float64bits(x))
		return ok
	case schema.Char, schema.VarChar:
		x, ok := v.(string)
		text(w, i, x)
		return ok
	case schema.Binary, schema.VarBinary:
		x, ok := v.([]byte)
		text(w, i, x)
		return ok
	case schema.Decimal:
		x, ok := v.(decimal128.Num)
		ok = ok && (t.Prec > compactDecimal || fitsInt64(x))
		w.decimal(i, t.Prec, x)
		return ok
	case schema.Timestamp, schema.TimestampLTZ:
		x, ok := v.(Timestamp)
		ok = ok && x.Nanos >= 0 && x.Nanos < nanosPerMilli
		w.timestamp(i, t.Prec, x.Millis, x.Nanos)
		return ok
	}
	return false
}

func fitsInt64(v decimal128.Num) bool {
	return v.HighBits() == int64(v.LowBits())>>63
}
