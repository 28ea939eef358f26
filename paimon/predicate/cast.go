package predicate

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// fit says how a literal lies in the values of a column type.
type fit int8

const (
	fitExact fit = iota
	fitFloor     // the literal lies between the value returned and the next one
	fitBelow     // the literal is below every value of the type
	fitAbove     // the literal is above every value of the type
)

// cast converts a literal to the row.Value of type t.
func cast(v any, t schema.Type) (row.Value, fit, error) {
	if v == nil {
		return nil, fitExact, nil
	}
	switch t.Kind {
	case schema.Boolean:
		return castBool(v)
	case schema.TinyInt, schema.SmallInt, schema.Int, schema.BigInt:
		return castInteger(v, t.Kind)
	case schema.Float, schema.Double:
		return castFloat(v, t.Kind)
	case schema.Decimal:
		return castDecimal(v, t)
	case schema.Char, schema.VarChar:
		switch s := v.(type) {
		case string:
			return s, fitExact, nil
		case []byte:
			return string(s), fitExact, nil
		}
	case schema.Binary, schema.VarBinary:
		switch s := v.(type) {
		case string:
			return []byte(s), fitExact, nil
		case []byte:
			return s, fitExact, nil
		}
	case schema.Date:
		return castDate(v)
	case schema.Time:
		return castTime(v)
	case schema.Timestamp, schema.TimestampLTZ:
		return castTimestamp(v, t.Prec)
	default:
		return nil, 0, errs.Unsupported("a column of type %s cannot be compared with a literal", t)
	}
	return nil, 0, mismatch(v, t.Kind)
}

func mismatch(v any, k schema.Kind) error {
	return errs.Invalid("the literal %v (%T) is no value of a column of type %s", v, v, k)
}

func castBool(v any) (row.Value, fit, error) {
	switch b := v.(type) {
	case bool:
		return b, fitExact, nil
	case string:
		switch strings.ToLower(b) {
		case "true":
			return true, fitExact, nil
		case "false":
			return false, fitExact, nil
		}
	}
	return nil, 0, mismatch(v, schema.Boolean)
}

func castInteger(v any, k schema.Kind) (row.Value, fit, error) {
	r, ok := rational(v)
	if !ok {
		return nil, 0, mismatch(v, k)
	}
	n := new(big.Int).Div(r.Num(), r.Denom()) // rounds down: the denominator is positive
	f := fitExact
	if !r.IsInt() {
		f = fitFloor
	}
	bits := map[schema.Kind]uint{schema.TinyInt: 7, schema.SmallInt: 15, schema.Int: 31, schema.BigInt: 63}[k]
	limit := new(big.Int).Lsh(big.NewInt(1), bits)
	if n.Cmp(limit) >= 0 {
		return nil, fitAbove, nil
	}
	if n.Cmp(limit.Neg(limit)) < 0 {
		return nil, fitBelow, nil
	}
	i := n.Int64()
	switch k {
	case schema.TinyInt:
		return int8(i), f, nil
	case schema.SmallInt:
		return int16(i), f, nil
	case schema.Int:
		return int32(i), f, nil
	}
	return i, f, nil
}

func castFloat(v any, k schema.Kind) (row.Value, fit, error) {
	var f float64
	switch x := v.(type) {
	case float64:
		f = x
	case float32:
		f = float64(x)
	default:
		text, ok := numberText(v)
		if !ok {
			return nil, 0, mismatch(v, k)
		}
		var err error
		if f, err = strconv.ParseFloat(text, 64); err != nil && !math.IsInf(f, 0) {
			return nil, 0, mismatch(v, k)
		}
	}
	if k == schema.Float {
		return float32(f), fitExact, nil
	}
	return f, fitExact, nil
}

func castDecimal(v any, t schema.Type) (row.Value, fit, error) {
	if d, ok := v.(decimal128.Num); ok {
		return d, fitExact, nil // already at the column's scale
	}
	r, ok := rational(v)
	if !ok {
		return nil, 0, mismatch(v, t.Kind)
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)
	r.Mul(r, new(big.Rat).SetInt(scale))
	n := new(big.Int).Div(r.Num(), r.Denom())
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Prec)), nil)
	switch {
	case n.Cmp(limit) >= 0:
		return nil, fitAbove, nil
	case n.Cmp(limit.Neg(limit)) <= 0:
		return nil, fitBelow, nil
	case r.IsInt():
		return decimal128.FromBigInt(n), fitExact, nil
	}
	return decimal128.FromBigInt(n), fitFloor, nil
}

// literalDigitsMax bounds the size and exponent of numeric literals, whose exact
// value is computed.
const literalDigitsMax = 400

// rational returns the exact value of a numeric literal.
func rational(v any) (*big.Rat, bool) {
	switch x := v.(type) {
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, false
		}
		return new(big.Rat).SetFloat64(x), true
	case float32:
		return rational(float64(x))
	}
	text, ok := numberText(v)
	if !ok || len(text) > literalDigitsMax {
		return nil, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if strings.ContainsAny(mantissa, "/_xpob") || mantissa == "" {
		return nil, false
	}
	if exponent != "" {
		if e, err := strconv.Atoi(exponent); err != nil || e > literalDigitsMax || e < -literalDigitsMax {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

func numberText(v any) (string, bool) {
	switch x := v.(type) {
	case Number:
		return string(x), true
	case string:
		return strings.TrimSpace(x), true
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(x), true
	}
	return "", false
}

const dayMillis = 24 * 60 * 60 * 1000

func castDate(v any) (row.Value, fit, error) {
	switch x := v.(type) {
	case int32:
		return x, fitExact, nil
	case time.Time:
		y, m, d := x.Date()
		return int32(floorDiv(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix(), dayMillis/1000)), fitExact, nil
	case string:
		if t, err := time.Parse("2006-01-02", strings.TrimSpace(x)); err == nil {
			return int32(floorDiv(t.Unix(), dayMillis/1000)), fitExact, nil
		}
		if ts, ok := parseTimestamp(x); ok {
			days := floorDiv(ts.Millis, dayMillis)
			if days*dayMillis == ts.Millis && ts.Nanos == 0 {
				return int32(days), fitExact, nil
			}
			return int32(days), fitFloor, nil
		}
	}
	return nil, 0, mismatch(v, schema.Date)
}

func castTime(v any) (row.Value, fit, error) {
	switch x := v.(type) {
	case int32:
		return x, fitExact, nil
	case string:
		if t, err := time.Parse("15:04:05.999999999", strings.TrimSpace(x)); err == nil {
			nanos := t.Sub(t.Truncate(24 * time.Hour))
			if nanos%time.Millisecond != 0 {
				return int32(nanos / time.Millisecond), fitFloor, nil
			}
			return int32(nanos / time.Millisecond), fitExact, nil
		}
	}
	return nil, 0, mismatch(v, schema.Time)
}

// castTimestamp also rounds down to the unit that columns of the precision are
// stored in: milliseconds up to 3 digits, microseconds up to 6, else nanoseconds.
func castTimestamp(v any, prec int) (row.Value, fit, error) {
	var ts row.Timestamp
	switch x := v.(type) {
	case row.Timestamp:
		ts = x
	case time.Time:
		ts = timestampOf(x)
	case string:
		var ok bool
		if ts, ok = parseTimestamp(x); !ok {
			return nil, 0, mismatch(v, schema.Timestamp)
		}
	default:
		return nil, 0, mismatch(v, schema.Timestamp)
	}
	unit := int32(1)
	switch {
	case prec <= 3:
		unit = 1_000_000
	case prec <= 6:
		unit = 1_000
	}
	if rest := ts.Nanos % unit; rest != 0 {
		ts.Nanos -= rest
		return ts, fitFloor, nil
	}
	return ts, fitExact, nil
}

func timestampOf(t time.Time) row.Timestamp {
	return row.Timestamp{Millis: t.UnixMilli(), Nanos: int32(t.Nanosecond() % 1_000_000)}
}

// parseTimestamp reads a date, or a date and a time parted by a blank or T, with
// up to 9 digits of a second and an optional zone; without a zone it is taken as
// UTC, which for a TIMESTAMP is the local date-time itself.
func parseTimestamp(s string) (row.Timestamp, bool) {
	s = strings.Replace(strings.TrimSpace(s), "T", " ", 1)
	for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return timestampOf(t), true
		}
	}
	return row.Timestamp{}, false
}

func formatTimestamp(ts row.Timestamp) string {
	t := time.UnixMilli(ts.Millis).Add(time.Duration(ts.Nanos)).UTC()
	return t.Format("2006-01-02 15:04:05.999999999")
}

func formatDate(days int32) string {
	return time.Unix(int64(days)*dayMillis/1000, 0).UTC().Format("2006-01-02")
}

func formatTime(millis int32) string {
	return time.UnixMilli(int64(millis)).UTC().Format("15:04:05.999")
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
