package conformance

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// values draws values in the package's notation: mostly ordinary ones, and now and
// then the edge of a type.
type values struct {
	rng   *rand.Rand
	plain bool
}

// texts holds what formats and paths trip over. As partition values they exercise
// the escaping of directory names.
var texts = []string{"", " ", "a/b", "x=y", "100%", "é", "日本語", "quote\"d", "back\\slash", "tab\there", "a:b,c", "😀",
	"ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ", "\u007f", "naïve\u0301", "null", "__DEFAULT_PARTITION__"}

// value draws one value of a type, null now and then unless the type or the use
// forbids it.
func (g *values) value(t *dataType, key bool) any {
	if !t.notNull && !key && g.rng.IntN(6) == 0 {
		return nil
	}
	edge := g.rng.IntN(8) == 0
	switch t.root {
	case "BOOLEAN":
		return g.rng.IntN(2) == 0
	case "TINYINT":
		return g.integer(8, edge)
	case "SMALLINT":
		return g.integer(16, edge)
	case "INT", "INTEGER":
		return g.integer(32, edge)
	case "BIGINT":
		return g.integer(64, edge)
	case "FLOAT":
		return g.float(edge, key, 32)
	case "DOUBLE":
		return g.float(edge, key, 64)
	case "DECIMAL", "NUMERIC", "DEC":
		return g.decimal(t.arg(0, 10), t.arg(1, 0), edge)
	case "CHAR":
		return g.characters(t.arg(0, 1), t.arg(0, 1))
	case "VARCHAR":
		return g.string(t.arg(0, 1), key)
	case "STRING":
		return g.string(math.MaxInt32, key)
	case "BINARY":
		return g.binary(t.arg(0, 1), t.arg(0, 1))
	case "VARBINARY":
		return g.binary(0, min(t.arg(0, 1), 40))
	case "BYTES":
		return g.binary(0, 40)
	case "DATE":
		return g.date(edge)
	case "TIME":
		return g.clock(int64(g.rng.IntN(86_400_000))*1e6, t.arg(0, 0))
	case "TIMESTAMP":
		return g.timestamp(t.arg(0, 6), edge)
	case "TIMESTAMP_LTZ":
		return g.timestamp(t.arg(0, 6), edge) + "Z"
	case "ARRAY":
		items := make([]any, g.rng.IntN(4))
		for i := range items {
			items[i] = g.value(t.elem, false)
		}
		return items
	case "MAP", "MULTISET":
		return g.pairs(t)
	case "ROW":
		members := make(map[string]any, len(t.names))
		for i, n := range t.names {
			members[n] = g.value(t.children[i], false)
		}
		return members
	}
	panic("no generator for type " + t.root) // a mistake in the tests
}

func (g *values) integer(bits int, edge bool) int64 {
	lowest := int64(math.MinInt64) >> (64 - bits)
	if edge {
		return []int64{lowest, -lowest - 1, 0, -1}[g.rng.IntN(4)]
	}
	if g.rng.IntN(2) == 0 {
		return int64(g.rng.IntN(200)) - 100
	}
	return int64(g.rng.Uint64()) >> (64 - bits)
}

func (g *values) float(edge, key bool, bits int) any {
	if edge && !key {
		return []any{"NaN", "Infinity", "-Infinity", json.Number("-0.0"), json.Number("0.0")}[g.rng.IntN(5)]
	}
	f := (g.rng.Float64() - 0.5) * math.Pow10(g.rng.IntN(30)-10)
	if g.rng.IntN(2) == 0 {
		f = float64(g.rng.IntN(2000))/4 - 250
	}
	if f == 0 {
		f = 0 // no accidental negative zero
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, bits))
}

func (g *values) decimal(precision, scale int, edge bool) string {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	most.Sub(most, big.NewInt(1))
	n := new(big.Int)
	switch {
	case edge && g.rng.IntN(2) == 0:
		n.Set(most)
	case edge:
	default:
		digits := 1 + g.rng.IntN(precision)
		for range digits {
			n.Mul(n, big.NewInt(10)).Add(n, big.NewInt(int64(g.rng.IntN(10))))
		}
	}
	sign := ""
	if n.Sign() != 0 && g.rng.IntN(2) == 0 {
		sign = "-"
	}
	s := n.String()
	if scale == 0 {
		return sign + s
	}
	s = strings.Repeat("0", max(0, scale+1-len(s))) + s
	return sign + s[:len(s)-scale] + "." + s[len(s)-scale:]
}

func (g *values) string(most int, key bool) string {
	if g.rng.IntN(4) == 0 {
		s := texts[g.rng.IntN(len(texts))]
		if utf8.RuneCountInString(s) <= most && !(key && (g.plain || strings.TrimSpace(s) == "")) {
			return s
		}
	}
	return g.characters(1, min(most, 12))
}

func (g *values) characters(least, most int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	n := least + g.rng.IntN(most-least+1)
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[g.rng.IntN(len(letters))]
	}
	return string(b)
}

func (g *values) binary(least, most int) string {
	b := make([]byte, least+g.rng.IntN(most-least+1))
	for i := range b {
		b[i] = byte(g.rng.Uint32())
	}
	return hex.EncodeToString(b)
}

func (g *values) day(edge bool) time.Time {
	if edge {
		return []time.Time{time.Unix(0, 0), time.Unix(-86400, 0), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
			time.Date(1600, 2, 29, 0, 0, 0, 0, time.UTC)}[g.rng.IntN(4)].UTC()
	}
	return time.Unix(int64(g.rng.IntN(40000)-15000)*86400, 0).UTC()
}

func (g *values) date(edge bool) string { return g.day(edge).Format(time.DateOnly) }

// clock is a time of day cut to its precision; the format keeps milliseconds only.
func (g *values) clock(nanos int64, precision int) string {
	step := int64(math.Pow10(9 - precision))
	t := time.Unix(0, nanos/step*step).UTC()
	s := t.Format("15:04:05")
	if precision > 0 {
		s += "." + fmt.Sprintf("%09d", t.Nanosecond())[:precision]
	}
	return s
}

func (g *values) timestamp(precision int, edge bool) string {
	// Nanoseconds of an int64 end in 2262, and other engines keep them so.
	if precision > 6 {
		edge = false
	}
	nanos := g.rng.Int64N(86400 * 1e9)
	return g.day(edge).Format(time.DateOnly) + " " + g.clock(nanos, precision)
}

func (g *values) pairs(t *dataType) []any {
	out := []any{}
	seen := map[string]bool{}
	for range g.rng.IntN(4) {
		k := g.value(t.key, true) // null map keys differ between engines
		if s := text(k); !seen[s] {
			seen[s] = true
			v := any(1 + g.rng.IntN(9)) // a MULTISET counts its elements
			if t.root == "MAP" {
				v = g.value(t.elem, false)
			}
			out = append(out, []any{k, v})
		}
	}
	return out
}
