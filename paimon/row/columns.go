package row

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tideline-db/tideline/paimon/schema"
)

// ValueAt reads element i of a column as a value of type t. Binary values are
// copies, so no value keeps the column alive. It gives nil for null, for complex
// types and for an array whose Arrow type is not one of t's.
func ValueAt(arr arrow.Array, t schema.Type, i int) Value {
	if arr.IsNull(i) {
		return nil
	}
	switch a := arr.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return a.Value(i)
	case *array.Int16:
		return a.Value(i)
	case *array.Int32:
		return a.Value(i)
	case *array.Date32:
		return int32(a.Value(i))
	case *array.Time32:
		return millisOfDay(a, i)
	case *array.Int64:
		return a.Value(i)
	case *array.Float32:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.String:
		return cloneText(a.Value(i))
	case *array.LargeString:
		return cloneText(a.Value(i))
	case *array.Binary:
		return append([]byte{}, a.Value(i)...)
	case *array.LargeBinary:
		return append([]byte{}, a.Value(i)...)
	case *array.FixedSizeBinary:
		return append([]byte{}, a.Value(i)...)
	case *array.Decimal128:
		return a.Value(i)
	case *array.Timestamp:
		return timestampAt(a, i)
	}
	return nil
}

// cloneText copies: strings of an Arrow column point into its buffer, which may
// be reused after the column's release.
func cloneText(s string) string { return string(append([]byte{}, s...)) }

func millisOfDay(a *array.Time32, i int) int32 {
	if a.DataType().(*arrow.Time32Type).Unit == arrow.Second {
		return int32(a.Value(i)) * 1000
	}
	return int32(a.Value(i))
}

// timestampAt splits by the unit of the column, rounding down.
func timestampAt(a *array.Timestamp, i int) Timestamp {
	v := int64(a.Value(i))
	switch a.DataType().(*arrow.TimestampType).Unit {
	case arrow.Second:
		return Timestamp{Millis: v * 1000}
	case arrow.Microsecond:
		return splitUnit(v, 1000, 1000)
	case arrow.Nanosecond:
		return splitUnit(v, nanosPerMilli, 1)
	}
	return Timestamp{Millis: v}
}

// splitUnit divides v by the units of a millisecond, rounding down; the rest
// has the given nanoseconds a unit.
func splitUnit(v, perMilli, nanos int64) Timestamp {
	q, r := v/perMilli, v%perMilli
	if r < 0 {
		q, r = q-1, r+perMilli
	}
	return Timestamp{Millis: q, Nanos: int32(r * nanos)}
}

// EncodeColumns appends row i of the columns, encoded as by Encode, to buf and
// returns it; cols[k] has the Arrow type of types[k]. Complex types are written as
// null. With a buf of enough capacity nothing is allocated.
func EncodeColumns(cols []arrow.Array, types []schema.Type, i int, buf []byte) []byte {
	w := begin(buf, len(types))
	for k := range types {
		w.element(k, &types[k], cols[k], i)
	}
	return w.buf
}

// element writes element i of arr as field k.
func (w *writer) element(k int, t *schema.Type, arr arrow.Array, i int) {
	if arr.IsNull(i) || complexKind(t.Kind) {
		w.null(k, t)
		return
	}
	switch a := arr.(type) {
	case *array.Boolean:
		if a.Value(i) {
			w.fixed(k, 1)
		}
	case *array.Int8:
		w.fixed(k, uint64(uint8(a.Value(i))))
	case *array.Int16:
		w.fixed(k, uint64(uint16(a.Value(i))))
	case *array.Int32:
		w.fixed(k, uint64(uint32(a.Value(i))))
	case *array.Date32:
		w.fixed(k, uint64(uint32(a.Value(i))))
	case *array.Time32:
		w.fixed(k, uint64(uint32(millisOfDay(a, i))))
	case *array.Int64:
		w.fixed(k, uint64(a.Value(i)))
	case *array.Float32:
		w.fixed(k, uint64(math.Float32bits(a.Value(i))))
	case *array.Float64:
		w.fixed(k, math.Float64bits(a.Value(i)))
	case *array.String:
		text(w, k, a.Value(i))
	case *array.LargeString:
		text(w, k, a.Value(i))
	case *array.Binary:
		text(w, k, a.Value(i))
	case *array.LargeBinary:
		text(w, k, a.Value(i))
	case *array.FixedSizeBinary:
		text(w, k, a.Value(i))
	case *array.Decimal128:
		w.decimal(k, t.Prec, a.Value(i))
	case *array.Timestamp:
		ts := timestampAt(a, i)
		w.timestamp(k, t.Prec, ts.Millis, ts.Nanos)
	default:
		w.null(k, t)
	}
}
