package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tideline-db/tideline/internal/errs"
)

// StatsKind is how much of a column's statistics goes into the manifest.
type StatsKind uint8

// The kinds of FORMAT §7.5.
const (
	StatsNone     StatsKind = iota + 1 // nothing, the column is left out of a dense store
	StatsCounts                        // null counts
	StatsTruncate                      // null counts, min and max cut to Length
	StatsFull                          // null counts, min and max
)

// StatsMode is one value of metadata.stats-mode.
type StatsMode struct {
	Kind   StatsKind
	Length int // characters of a string or bytes of a binary, StatsTruncate only
}

// KeyStatsMode is the mode of key and system columns, whatever the options say.
var KeyStatsMode = StatsMode{Kind: StatsTruncate, Length: 128}

// String is the text of the option.
func (m StatsMode) String() string {
	switch m.Kind {
	case StatsNone:
		return "none"
	case StatsCounts:
		return "counts"
	case StatsFull:
		return "full"
	}
	return "truncate(" + strconv.Itoa(m.Length) + ")"
}

// ParseStatsMode reads none, counts, full or truncate(n), in any case.
func ParseStatsMode(text string) (StatsMode, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	switch word {
	case "none":
		return StatsMode{Kind: StatsNone}, nil
	case "counts":
		return StatsMode{Kind: StatsCounts}, nil
	case "full":
		return StatsMode{Kind: StatsFull}, nil
	}
	if num, ok := strings.CutPrefix(word, "truncate("); ok && strings.HasSuffix(num, ")") {
		n, err := strconv.ParseInt(strings.TrimSuffix(num, ")"), 10, 32)
		if err == nil && n > 0 {
			return StatsMode{Kind: StatsTruncate, Length: int(n)}, nil
		}
	}
	return StatsMode{}, errs.Invalid("%q is not none, counts, full or truncate(n)", clipName(text))
}

// StatsModes are the modes of the columns of a schema, in order: the column's own
// mode, else none behind the first StatsKeepFirst columns, else the table's.
func (o Options) StatsModes(fields []Field) []StatsMode {
	modes := make([]StatsMode, len(fields))
	for i, f := range fields {
		mode, own := o.StatsModeColumn[f.Name]
		switch {
		case own:
		case o.StatsKeepFirst >= 0 && i >= o.StatsKeepFirst:
			mode = StatsMode{Kind: StatsNone}
		default:
			mode = o.StatsMode
		}
		modes[i] = mode
	}
	return modes
}

// columnStats collects fields.<column>.stats-mode.
func (r *optionReader) columnStats() map[string]StatsMode {
	modes := map[string]StatsMode{}
	for _, key := range slices.Sorted(maps.Keys(r.vals)) {
		name, ok := columnOption(key, "stats-mode")
		if !ok {
			continue
		}
		modes[name] = read(r, key, StatsMode{}, ParseStatsMode)
	}
	return modes
}

// columnOption takes the column name out of fields.<column>.<option>.
func columnOption(key, option string) (string, bool) {
	rest, ok := strings.CutPrefix(key, "fields.")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "."+option)
}
