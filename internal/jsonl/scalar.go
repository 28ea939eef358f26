package jsonl

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// clipText shortens text for messages.
const clipText = 60

func show(text []byte) string {
	if len(text) > clipText {
		return strconv.Quote(string(text[:clipText])) + "..."
	}
	return strconv.Quote(string(text))
}

func refuse(t schema.Type, text []byte) error {
	return errs.Invalid("%s is no %s", show(text), t)
}

func parseBool(t schema.Type, text []byte) (bool, error) {
	switch len(text) {
	case 4:
		if strings.EqualFold(string(text), "true") {
			return true, nil
		}
	case 5:
		if strings.EqualFold(string(text), "false") {
			return false, nil
		}
	}
	return false, refuse(t, text)
}

// parseInteger reads a whole number in [lo, hi]; 1.0 and 1e3 are whole.
func parseInteger(t schema.Type, text []byte, lo, hi int64) (int64, error) {
	n, ok := plainInteger(text)
	if !ok {
		v, err := parseUnscaled(text, 0)
		if err != nil {
			return 0, refuse(t, text)
		}
		if n, ok = fitsInt64(v); !ok {
			return 0, errs.Invalid("%s is out of the range of %s", show(text), t)
		}
	}
	if n < lo || n > hi {
		return 0, errs.Invalid("%s is out of the range of %s", show(text), t)
	}
	return n, nil
}

func plainInteger(text []byte) (int64, bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if text[0] == '-' {
		n = -n
	}
	return n, true
}

func fitsInt64(v decimal128.Num) (int64, bool) {
	n := int64(v.LowBits())
	return n, v.HighBits() == n>>63
}

func parseFloat(t schema.Type, text []byte, size int) (float64, error) {
	for _, c := range text {
		if c == '_' || c == 'x' || c == 'X' {
			return 0, refuse(t, text) // forms of Go, not of data
		}
	}
	f, err := strconv.ParseFloat(string(text), size)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errs.Invalid("%s is out of the range of %s", show(text), t)
	}
	if err != nil {
		return 0, refuse(t, text)
	}
	return f, nil
}

var errDigits = errors.New("more digits than the scale")

// maxExponent is far above what 38 digits can use.
const maxExponent = 100_000

// parseUnscaled reads a decimal number times 10^scale.
func parseUnscaled(text []byte, scale int) (decimal128.Num, error) {
	bad := strconv.ErrSyntax
	rest, negative := text, false
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		negative, rest = rest[0] == '-', rest[1:]
	}
	mantissa, exponent := rest, 0
	for i, c := range rest {
		if c == 'e' || c == 'E' {
			n, err := strconv.Atoi(string(rest[i+1:]))
			if err != nil || n > maxExponent || n < -maxExponent {
				return decimal128.Num{}, bad
			}
			mantissa, exponent = rest[:i], n
			break
		}
	}
	digits, point, seen := make([]byte, 0, 64), -1, 0
	for _, c := range mantissa {
		switch {
		case c == '.' && point < 0:
			point = seen
		case c >= '0' && c <= '9':
			seen++
			if c != '0' || len(digits) > 0 {
				digits = append(digits, c-'0')
			}
		default:
			return decimal128.Num{}, bad
		}
	}
	if seen == 0 {
		return decimal128.Num{}, bad
	}
	shift := scale + exponent
	if point >= 0 {
		shift -= seen - point
	}
	return unscaled(digits, shift, negative)
}

// unscaled is the number of the digits times 10^shift, which must be whole and
// have at most 38 digits.
func unscaled(digits []byte, shift int, negative bool) (decimal128.Num, error) {
	for ; shift < 0 && len(digits) > 0; shift++ {
		if digits[len(digits)-1] != 0 {
			return decimal128.Num{}, errDigits
		}
		digits = digits[:len(digits)-1]
	}
	if len(digits) == 0 {
		return decimal128.Num{}, nil
	}
	if len(digits)+shift > 38 {
		return decimal128.Num{}, strconv.ErrRange
	}
	v, ten := decimal128.Num{}, decimal128.FromI64(10)
	for _, d := range digits {
		v = v.Mul(ten).Add(decimal128.FromU64(uint64(d)))
	}
	for range shift {
		v = v.Mul(ten)
	}
	if negative {
		v = v.Negate()
	}
	return v, nil
}

func parseDecimal(t schema.Type, text []byte) (decimal128.Num, error) {
	v, err := parseUnscaled(text, t.Scale)
	switch {
	case errors.Is(err, errDigits):
		return v, errs.Invalid("%s has more than %d digits behind the point", show(text), t.Scale)
	case errors.Is(err, strconv.ErrRange) || err == nil && !v.FitsInPrecision(int32(t.Prec)):
		return v, errs.Invalid("%s is out of the range of %s", show(text), t)
	case err != nil:
		return v, refuse(t, text)
	}
	return v, nil
}

func parseDay(t schema.Type, text []byte) (int32, error) {
	day, ok := parseDate(text)
	if !ok {
		return 0, refuse(t, text)
	}
	if day < math.MinInt32 || day > math.MaxInt32 {
		return 0, errs.Invalid("%s is out of the range of %s", show(text), t)
	}
	return int32(day), nil
}

// finest is 10^(9-prec), the nanoseconds of the last digit.
func finest(prec int) int64 {
	unit := int64(1)
	for range 9 - prec {
		unit *= 10
	}
	return unit
}

func parseMillisOfDay(t schema.Type, text []byte) (int32, error) {
	second, nanos, exact, ok := parseTime(text)
	if !ok {
		return 0, refuse(t, text)
	}
	if prec := min(t.Prec, 3); !exact || nanos%finest(prec) != 0 {
		return 0, errs.Invalid("%s has more than the %d fractional digits of %s", show(text), prec, t)
	}
	return int32(second*1000 + nanos/1e6), nil
}

// parseInstant reads a timestamp in units of 1/perSecond seconds.
func parseInstant(t schema.Type, text []byte, perSecond int64) (int64, error) {
	second, nanos, exact, ok := parseTimestamp(text)
	if !ok {
		return 0, refuse(t, text)
	}
	if !exact || nanos%finest(t.Prec) != 0 {
		return 0, errs.Invalid("%s has more than the %d fractional digits of %s", show(text), t.Prec, t)
	}
	part := nanos / (1e9 / perSecond)
	if second > math.MaxInt64/perSecond-1 || second < math.MinInt64/perSecond+1 {
		return 0, errs.Invalid("%s is out of the range that Arrow holds for %s", show(text), t)
	}
	return second*perSecond + part, nil
}

func parseHex(t schema.Type, dst, text []byte) ([]byte, error) {
	begin := len(dst)
	dst, err := hex.AppendDecode(dst, text)
	if err != nil {
		return dst[:begin], errs.Invalid("%s is not written in hexadecimal digits, as %s asks", show(text), t)
	}
	return dst, nil
}
