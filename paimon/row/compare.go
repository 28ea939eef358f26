package row

import (
	"bytes"
	"cmp"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/paimon/schema"
)

// Compare orders two rows of the same types field by field, ascending (FORMAT
// §7.3): negative, zero or positive.
func Compare(types []schema.Type, a, b []Value) int {
	for i := range types {
		if c := CompareValue(types[i], a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// CompareValue orders two values of one type: null first, text by unsigned
// bytes, -0.0 before 0.0, NaN greatest. Values of complex types are nil and
// hence equal. It panics when a value does not belong to t.
func CompareValue(t schema.Type, a, b Value) int {
	if a == nil || b == nil {
		return boolRank(a != nil) - boolRank(b != nil)
	}
	switch t.Kind {
	case schema.Boolean:
		return boolRank(a.(bool)) - boolRank(b.(bool))
	case schema.TinyInt:
		return cmp.Compare(a.(int8), b.(int8))
	case schema.SmallInt:
		return cmp.Compare(a.(int16), b.(int16))
	case schema.Int, schema.Date, schema.Time:
		return cmp.Compare(a.(int32), b.(int32))
	case schema.BigInt:
		return cmp.Compare(a.(int64), b.(int64))
	case schema.Float:
		return CompareFloat(float64(a.(float32)), float64(b.(float32)))
	case schema.Double:
		return CompareFloat(a.(float64), b.(float64))
	case schema.Char, schema.VarChar:
		return cmp.Compare(a.(string), b.(string))
	case schema.Binary, schema.VarBinary:
		return bytes.Compare(a.([]byte), b.([]byte))
	case schema.Decimal:
		return a.(decimal128.Num).Cmp(b.(decimal128.Num))
	case schema.Timestamp, schema.TimestampLTZ:
		x, y := a.(Timestamp), b.(Timestamp)
		return cmp.Or(cmp.Compare(x.Millis, y.Millis), cmp.Compare(x.Nanos, y.Nanos))
	}
	return 0
}

// CompareFloat is Java's order of floating-point numbers: -0.0 before 0.0, all
// NaN equal and greater than everything else.
func CompareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a != a || b != b:
		return boolRank(a != a) - boolRank(b != b)
	case a == 0 && b == 0:
		return boolRank(math.Signbit(b)) - boolRank(math.Signbit(a))
	}
	return 0
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}
