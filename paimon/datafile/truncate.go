package datafile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
)

// StatsKind says how much of a column's statistics a manifest keeps.
type StatsKind uint8

// The values of metadata.stats-mode (FORMAT §7.5).
const (
	StatsFull StatsKind = iota
	StatsNone
	StatsCounts
	StatsTruncate
)

// StatsMode is one parsed metadata.stats-mode.
type StatsMode struct {
	Kind   StatsKind
	Length int // StatsTruncate: characters of text, bytes of binary, at least 1
}

// String is the option text of the mode.
func (m StatsMode) String() string {
	switch m.Kind {
	case StatsNone:
		return "none"
	case StatsCounts:
		return "counts"
	case StatsTruncate:
		return fmt.Sprintf("truncate(%d)", m.Length)
	}
	return "full"
}

// ParseStatsMode reads "none", "counts", "full" or "truncate(n)", in any case.
func ParseStatsMode(text string) (StatsMode, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	switch s {
	case "none":
		return StatsMode{Kind: StatsNone}, nil
	case "counts":
		return StatsMode{Kind: StatsCounts}, nil
	case "full":
		return StatsMode{Kind: StatsFull}, nil
	}
	inner, ok := strings.CutPrefix(s, "truncate(")
	if ok {
		inner, ok = strings.CutSuffix(inner, ")")
	}
	if ok {
		if n, err := strconv.Atoi(strings.TrimSpace(inner)); err == nil && n > 0 {
			return StatsMode{Kind: StatsTruncate, Length: n}, nil
		}
	}
	return StatsMode{}, errs.Invalid("metadata.stats-mode %q", text)
}

// Truncate reduces full statistics to what the mode keeps (FORMAT §7.5). Under
// truncate(n) a minimum becomes its prefix and a maximum the smallest longer
// prefix bound; where there is no such bound both become null. Under none the
// caller leaves the column out (dense) or writes the null counts it gets.
func Truncate(s ColumnStats, m StatsMode) ColumnStats {
	switch m.Kind {
	case StatsNone, StatsCounts:
		return ColumnStats{Nulls: s.Nulls}
	case StatsFull:
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
