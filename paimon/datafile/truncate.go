package datafile

import (
	"unicode/utf8"

	"github.com/tideline-db/tideline/paimon/schema"
)

// Truncate reduces full statistics to what the mode keeps (FORMAT §7.5). Under
// truncate(n) a minimum becomes its prefix and a maximum the smallest longer
// prefix bound; where there is no such bound both become null. Under none the
// caller leaves the column out (dense) or writes the null counts it gets.
func Truncate(s ColumnStats, m schema.StatsMode) ColumnStats {
	switch m.Kind {
	case schema.StatsNone, schema.StatsCounts:
		return ColumnStats{Nulls: s.Nulls}
	case schema.StatsFull:
		return s
	}
	if !s.HasMinMax {
		return s
	}
	switch hi := s.Max.(type) {
	case string:
		bound, ok := textUpper(hi, m.Length)
		if !ok {
			return ColumnStats{Nulls: s.Nulls}
		}
		s.Min, s.Max = textPrefix(s.Min.(string), m.Length), bound
	case []byte:
		bound, ok := bytesUpper(hi, m.Length)
		if !ok {
			return ColumnStats{Nulls: s.Nulls}
		}
		lo := s.Min.([]byte)
		s.Min, s.Max = lo[:min(len(lo), m.Length)], bound
	}
	return s
}

// textPrefix keeps the first n characters.
func textPrefix(s string, n int) string {
	at := 0
	for range n {
		if at >= len(s) {
			return s
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at]
}

// textUpper cuts s to n characters and increments the last one that has a
// successor. Text that is not longer than n is its own bound.
func textUpper(s string, n int) (string, bool) {
	prefix := textPrefix(s, n)
	if len(prefix) == len(s) {
		return s, true
	}
	for len(prefix) > 0 {
		r, size := utf8.DecodeLastRuneInString(prefix)
		if r == utf8.RuneError && size <= 1 {
			return "", false // not UTF-8: a character has no meaning here
		}
		prefix = prefix[:len(prefix)-size]
		if r == utf8.MaxRune {
			continue
		}
		r++
		if r == 0xD800 { // surrogates are no characters
			r = 0xE000
		}
		return prefix + string(r), true
	}
	return "", false
}

func bytesUpper(b []byte, n int) ([]byte, bool) {
	if len(b) <= n {
		return b, true
	}
	for i := n - 1; i >= 0; i-- {
		if b[i] != 0xFF {
			out := append([]byte{}, b[:i+1]...)
			out[i]++
			return out, true
		}
	}
	return nil, false
}
