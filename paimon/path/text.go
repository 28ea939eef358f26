package path

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// maxText leaves room for a key of one byte and the equals sign.
const maxText = MaxComponent - 2

// PartitionText is the text of a partition value (FORMAT §1.2), not escaped.
// null, empty and blank values give defaultName. legacy is the option
// partition.legacy-name.
//
// ErrInvalid: the value is not of the type, is not finite, is not UTF-8, holds a
// NUL, or its directory name would be too long. ErrUnsupported: the type has no
// text.
func PartitionText(t schema.Type, v row.Value, legacy bool, defaultName string) (string, error) {
	if v == nil {
		return defaultName, nil
	}
	text, err := valueText(t, v, legacy)
	if err != nil {
		return "", err
	}
	if blank(text) {
		return defaultName, nil
	}
	if err := checkText(text); err != nil {
		return "", err
	}
	return text, nil
}

func checkText(text string) error {
	if !utf8.ValidString(text) {
		return errs.Invalid("partition value %q is not UTF-8", text)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return errs.Invalid("partition value %q holds a NUL, which no directory name can", text)
	}
	if n := len(Escape(text)); n > maxText {
		return errs.Invalid("partition value takes %d bytes in its directory name, at most %d are possible", n, maxText)
	}
	return nil
}

func valueText(t schema.Type, v row.Value, legacy bool) (string, error) {
	switch t.Kind {
	case schema.Boolean:
		if b, ok := v.(bool); ok {
			return strconv.FormatBool(b), nil
		}
	case schema.TinyInt, schema.SmallInt, schema.Int, schema.BigInt, schema.Date, schema.Time:
		n, ok := integer(v)
		if !ok {
			return "", mismatch(t, v)
		}
		if !legacy && t.Kind == schema.Time {
			return "", errs.Unsupported("partition value of type %s with partition.legacy-name = \"false\"", t)
		}
		if !legacy && t.Kind == schema.Date {
			return dateText(time.Unix(n*86400, 0).UTC()), nil
		}
		return strconv.FormatInt(n, 10), nil
	case schema.Float:
		if f, ok := v.(float32); ok {
			return JavaFloat(f)
		}
	case schema.Double:
		if f, ok := v.(float64); ok {
			return JavaDouble(f)
		}
	case schema.Decimal:
		if d, ok := v.(decimal128.Num); ok {
			return decimalText(d, t.Scale), nil
		}
	case schema.Char, schema.VarChar:
		if s, ok := v.(string); ok {
			return s, nil
		}
	case schema.Timestamp, schema.TimestampLTZ:
		ts, ok := v.(row.Timestamp)
		if !ok || ts.Nanos < 0 || ts.Nanos > 999_999 {
			return "", mismatch(t, v)
		}
		if legacy {
			return isoText(ts), nil
		}
		if t.Kind == schema.TimestampLTZ {
			return "", errs.Unsupported("partition value of type %s with partition.legacy-name = \"false\"", t)
		}
		return sqlText(ts, t.Prec), nil
	default:
		return "", errs.Unsupported("partition value of type %s", t)
	}
	return "", mismatch(t, v)
}

func mismatch(t schema.Type, v row.Value) error {
	return errs.Invalid("partition value of Go type %T for a column of type %s", v, t)
}

func integer(v row.Value) (int64, bool) {
	switch n := v.(type) {
	case int8:
		return int64(n), true
	case int16:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

// blank follows Java's Character.isWhitespace, which leaves out non-breaking
// spaces and takes in the four separator control characters.
func blank(text string) bool {
	for _, r := range text {
		switch {
		case r >= 0x09 && r <= 0x0d, r >= 0x1c && r <= 0x1f:
		case r == 0xa0 || r == 0x2007 || r == 0x202f:
			return false
		case unicode.In(r, unicode.Z):
		default:
			return false
		}
	}
	return true
}

func decimalText(d decimal128.Num, scale int) string {
	n := d.BigInt()
	digits := n.String()
	sign := ""
	if n.Sign() < 0 {
		sign, digits = "-", digits[1:]
	}
	if scale <= 0 {
		return sign + digits
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

func dateText(t time.Time) string {
	y, m, d := t.Date()
	return fmt.Sprintf("%04d-%02d-%02d", y, m, d)
}

func moment(ts row.Timestamp) (t time.Time, nanos int) {
	t = time.UnixMilli(ts.Millis).UTC()
	return t, t.Nanosecond() + int(ts.Nanos)
}

// isoText is Java's LocalDateTime.toString: the shortest of minutes, seconds,
// milliseconds, microseconds and nanoseconds that is exact.
func isoText(ts row.Timestamp) string {
	t, nanos := moment(ts)
	year, month, day := t.Date()
	var b strings.Builder
	switch {
	case year > 9999:
		fmt.Fprintf(&b, "+%d", year)
	case year < 0:
		fmt.Fprintf(&b, "-%04d", -year)
	default:
		fmt.Fprintf(&b, "%04d", year)
	}
	fmt.Fprintf(&b, "-%02d-%02dT%02d:%02d", month, day, t.Hour(), t.Minute())
	if t.Second() > 0 || nanos > 0 {
		fmt.Fprintf(&b, ":%02d", t.Second())
	}
	switch {
	case nanos == 0:
	case nanos%1_000_000 == 0:
		fmt.Fprintf(&b, ".%03d", nanos/1_000_000)
	case nanos%1000 == 0:
		fmt.Fprintf(&b, ".%06d", nanos/1000)
	default:
		fmt.Fprintf(&b, ".%09d", nanos)
	}
	return b.String()
}

// sqlText is the text of CAST(TIMESTAMP(prec) AS STRING): at least prec digits of
// a second, more only if they are not zero.
func sqlText(ts row.Timestamp, prec int) string {
	t, nanos := moment(ts)
	text := dateText(t) + fmt.Sprintf(" %02d:%02d:%02d", t.Hour(), t.Minute(), t.Second())
	fraction := fmt.Sprintf("%09d", nanos)
	for len(fraction) > prec && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	if fraction == "" {
		return text
	}
	return text + "." + fraction
}

// JavaFloat is Float.toString of Java 19 and later. Values that are not finite
// are ErrInvalid.
func JavaFloat(f float32) (string, error) { return javaText(float64(f), 32) }

// JavaDouble is Double.toString of Java 19 and later. Values that are not finite
// are ErrInvalid.
func JavaDouble(f float64) (string, error) { return javaText(f, 64) }

func javaText(f float64, bits int) (string, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", errs.Invalid("the number %v is not finite", f)
	}
	if f == 0 {
		if math.Signbit(f) {
			return "-0.0", nil
		}
		return "0.0", nil
	}
	if size := math.Abs(f); size >= 1e-3 && size < 1e7 {
		text := strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text, nil
	}
	text := strconv.FormatFloat(f, 'e', -1, bits)
	mantissa, exponent, _ := strings.Cut(text, "e")
	if !strings.Contains(mantissa, ".") {
		// Java prints two digits at least, and then the two nearest to the
		// number: 4.9E-324 where one digit would be 5e-324.
		mantissa, exponent, _ = strings.Cut(strconv.FormatFloat(f, 'e', 1, bits), "e")
	}
	n, err := strconv.Atoi(exponent)
	if err != nil {
		return "", errs.Invalid("the number %v has no text", f)
	}
	return mantissa + "E" + strconv.Itoa(n), nil
}
