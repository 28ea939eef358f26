package jsonl

import (
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

const hexDigits = "0123456789abcdef"

// AppendValue appends the JSON text of a single scalar, as it stands in keys and
// partitions.
func AppendValue(dst []byte, t schema.Type, v row.Value) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case int8:
		return strconv.AppendInt(dst, int64(v), 10)
	case int16:
		return strconv.AppendInt(dst, int64(v), 10)
	case int32:
		switch t.Kind {
		case schema.Date:
			return append(appendDate(append(dst, '"'), int64(v)), '"')
		case schema.Time:
			return append(appendTime(append(dst, '"'), int64(v), t.Prec), '"')
		}
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float32:
		return appendFloat(dst, float64(v), 32)
	case float64:
		return appendFloat(dst, v, 64)
	case string:
		return AppendString(dst, v)
	case []byte:
		return append(appendHex(append(dst, '"'), v), '"')
	case decimal128.Num:
		return append(appendDecimal(append(dst, '"'), v, t.Scale), '"')
	case row.Timestamp:
		second, millis := floorDiv(v.Millis, 1000)
		dst = appendTimestamp(append(dst, '"'), second, millis*1e6+int64(v.Nanos), t.Prec)
		if t.Kind == schema.TimestampLTZ {
			dst = append(dst, 'Z')
		}
		return append(dst, '"')
	}
	return append(dst, null...)
}

// AppendString appends a JSON string.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = append(append(dst, s[plain:i]...), "\ufffd"...)
			i++
			plain = i
			continue
		}
		dst = append(dst, s[plain:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		plain = i
	}
	return append(append(dst, s[plain:]...), '"')
}

func appendHex(dst, v []byte) []byte {
	for _, b := range v {
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}

// appendFloat writes plain digits where they are short and an exponent elsewhere.
func appendFloat(dst []byte, f float64, size int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	form := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(dst, f, form, -1, size)
}

// appendDecimal writes an unscaled value with exactly scale digits behind the
// point.
func appendDecimal(dst []byte, v decimal128.Num, scale int) []byte {
	hi, lo := uint64(v.HighBits()), v.LowBits()
	if v.Sign() < 0 {
		dst = append(dst, '-')
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	var digits [48]byte // filled from the end; 2^127 has 39 digits
	at := len(digits)
	for n := 0; hi != 0 || lo != 0 || n <= scale; n++ {
		var r uint64
		hi, r = hi/10, hi%10
		lo, r = bits.Div64(r, lo, 10)
		if n == scale && scale > 0 {
			at--
			digits[at] = '.'
		}
		at--
		digits[at] = byte('0' + r)
	}
	return append(dst, digits[at:]...)
}
