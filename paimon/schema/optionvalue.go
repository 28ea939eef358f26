package schema

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-db/tideline/internal/errs"
)

// ParseDuration reads a duration in Flink's notation: a whole number and a unit,
// "5 min", "1234 ms", "1 h", "7 d"; without a unit it is milliseconds.
func ParseDuration(text string) (time.Duration, error) {
	num, unit, err := splitUnit(text)
	if err != nil {
		return 0, err
	}
	scale, ok := durationUnits[unit]
	if !ok {
		return 0, errs.Invalid("%q is not a duration such as \"5 min\" or \"1234 ms\"", text)
	}
	if num > math.MaxInt64/int64(scale) {
		return 0, errs.Invalid("duration %q is too long", text)
	}
	return time.Duration(num) * scale, nil
}

var durationUnits = map[string]time.Duration{
	"":  time.Millisecond,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"ms": time.Millisecond, "milli": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"µs": time.Microsecond, "micro": time.Microsecond, "micros": time.Microsecond,
	"microsecond": time.Microsecond, "microseconds": time.Microsecond,
	"ns": 1, "nano": 1, "nanos": 1, "nanosecond": 1, "nanoseconds": 1,
}

// ParseSize reads a memory size in Flink's notation: a whole number and a unit
// counted in powers of 1024, "128 MB", "1 gb", "500 b"; without a unit it is
// bytes.
func ParseSize(text string) (int64, error) {
	num, unit, err := splitUnit(text)
	if err != nil {
		return 0, err
	}
	scale, ok := sizeUnits[unit]
	if !ok {
		return 0, errs.Invalid("%q is not a size such as \"128 mb\"", text)
	}
	if num > math.MaxInt64/scale {
		return 0, errs.Invalid("size %q is too large", text)
	}
	return num * scale, nil
}

var sizeUnits = map[string]int64{
	"": 1, "b": 1, "bytes": 1,
	"k": 1 << 10, "kb": 1 << 10, "kibibytes": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mebibytes": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gibibytes": 1 << 30,
	"t": 1 << 40, "tb": 1 << 40, "tebibytes": 1 << 40,
}

// splitUnit splits "128 MB" into 128 and "mb".
func splitUnit(text string) (int64, string, error) {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	num, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil {
		return 0, "", errs.Invalid("%q does not start with a whole number", clipName(text))
	}
	return num, strings.ToLower(strings.TrimSpace(text[end:])), nil
}

// optionReader reads typed values out of an option map and keeps the first
// error.
type optionReader struct {
	vals map[string]string
	err  error
}

func (r *optionReader) fail(key string, err error) {
	switch {
	case r.err != nil: // the first one counts
	case errors.Is(err, errs.ErrInvalid):
		r.err = fmt.Errorf("option %s = %q: %w", key, clipName(r.vals[key]), err)
	default:
		r.err = errs.Invalid("option %s = %q: %v", key, clipName(r.vals[key]), err)
	}
}

// read converts the value of key, def when the key is absent.
func read[T any](r *optionReader, key string, def T, convert func(string) (T, error)) T {
	text, ok := r.vals[key]
	if !ok {
		return def
	}
	val, err := convert(text)
	if err != nil {
		r.fail(key, err)
		return def
	}
	return val
}

func (r *optionReader) text(key, def string) string {
	return read(r, key, def, func(s string) (string, error) { return s, nil })
}

func (r *optionReader) word(key, def string) string {
	return read(r, key, def, func(s string) (string, error) { return strings.ToLower(strings.TrimSpace(s)), nil })
}

func (r *optionReader) bool(key string, def bool) bool { return read(r, key, def, parseBool) }

func parseBool(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errs.Invalid("true or false is expected")
}

func (r *optionReader) duration(key string, def, low time.Duration) time.Duration {
	return read(r, key, def, func(s string) (time.Duration, error) {
		d, err := ParseDuration(s)
		if err == nil && d < low {
			err = errs.Invalid("at least %v is expected", low)
		}
		return d, err
	})
}

func (r *optionReader) size(key string, def, low int64) int64 {
	return read(r, key, def, func(s string) (int64, error) {
		n, err := ParseSize(s)
		if err == nil && n < low {
			err = errs.Invalid("at least %d bytes are expected", low)
		}
		return n, err
	})
}

func (r *optionReader) int(key string, def, low, high int) int {
	return read(r, key, def, func(s string) (int, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
		if err != nil {
			return 0, errs.Invalid("a whole number is expected")
		}
		if int(n) < low || int(n) > high {
			return 0, errs.Invalid("a number from %d to %d is expected", low, high)
		}
		return int(n), nil
	})
}
