package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// diffRowsMax is how many differing rows of each side a report shows.
const diffRowsMax = 5

// Diff compares two sets of rows (JSON lines) as multisets under a schema. It
// returns "" when they are equal, else a report with the first differing rows of
// either side. Columns that are not in the schema, or not in a row, are errors.
func Diff(s Schema, wantName string, want []string, gotName string, got []string) (string, error) {
	types, err := s.types()
	if err != nil {
		return "", err
	}
	count := map[string]int{}
	for i, line := range want {
		c, err := canonicalLine(s, types, line)
		if err != nil {
			return "", fmt.Errorf("%s, row %d: %w", wantName, i, err)
		}
		count[c]++
	}
	for i, line := range got {
		c, err := canonicalLine(s, types, line)
		if err != nil {
			return "", fmt.Errorf("%s, row %d: %w", gotName, i, err)
		}
		count[c]--
	}
	var missing, extra []string
	for c, n := range count {
		for ; n > 0; n-- {
			missing = append(missing, c)
		}
		for ; n < 0; n++ {
			extra = append(extra, c)
		}
	}
	if len(missing)+len(extra) == 0 {
		return "", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s has %d rows, %s has %d", wantName, len(want), gotName, len(got))
	list(&b, "only in "+wantName, missing)
	list(&b, "only in "+gotName, extra)
	return b.String(), nil
}

// Select returns the rows whose column equals the column of one of them, by the
// rules of [Diff]: what a reader must find for that value.
func Select(s Schema, rows []string, column, like string) (found []string, value string, err error) {
	types, err := s.types()
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == column })
	if i < 0 {
		return nil, "", fmt.Errorf("no column %s", column)
	}
	one := func(line string) (any, string, error) {
		values, err := decodeRow(line)
		if err != nil {
			return nil, "", err
		}
		var b strings.Builder
		err = canonical(&b, values[column], types[i])
		return values[column], b.String(), err
	}
	v, want, err := one(like)
	if err != nil {
		return nil, "", err
	}
	for _, r := range rows {
		_, c, err := one(r)
		if err != nil {
			return nil, "", err
		}
		if c == want {
			found = append(found, r)
		}
	}
	return found, text(v), nil
}

func list(b *strings.Builder, title string, rows []string) {
	if len(rows) == 0 {
		return
	}
	sort.Strings(rows)
	fmt.Fprintf(b, "\n%s (%d):", title, len(rows))
	for i, r := range rows {
		if i == diffRowsMax {
			b.WriteString("\n  ...")
			break
		}
		b.WriteString("\n  " + r)
	}
}

// canonicalLine is a text that two rows share exactly when they are equal.
func canonicalLine(s Schema, types []*dataType, line string) (string, error) {
	values, err := decodeRow(line)
	if err != nil {
		return "", err
	}
	delete(values, "_kind")
	var b strings.Builder
	for i, f := range s.Fields {
		v, ok := values[f.Name]
		if !ok {
			return "", fmt.Errorf("column %s is missing in %s", f.Name, line)
		}
		delete(values, f.Name)
		fmt.Fprintf(&b, "%s=", f.Name)
		if err := canonical(&b, v, types[i]); err != nil {
			return "", fmt.Errorf("column %s: %w", f.Name, err)
		}
		b.WriteByte(' ')
	}
	for name := range values {
		return "", fmt.Errorf("column %s is not in the schema: %s", name, line)
	}
	return b.String(), nil
}

// decodeRow keeps numbers as text: float64 would round a BIGINT.
func decodeRow(line string) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(line)))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return nil, fmt.Errorf("row %q: %w", line, err)
	}
	return values, nil
}

func canonical(b *strings.Builder, v any, t *dataType) error {
	if v == nil {
		b.WriteString("null")
		return nil
	}
	switch t.root {
	case "FLOAT", "DOUBLE":
		f, err := number(v, t)
		if err != nil {
			return err
		}
		// The sign of a zero is data; NaN has one text.
		if math.IsNaN(f) {
			b.WriteString("NaN")
		} else {
			b.WriteString(strconv.FormatFloat(f, 'g', -1, bits(t)))
		}
	case "ARRAY":
		items, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%v is no array", v)
		}
		b.WriteByte('[')
		for i, x := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := canonical(b, x, t.elem); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case "MAP", "MULTISET":
		return canonicalMap(b, v, t)
	case "ROW":
		members, ok := v.(map[string]any)
		if !ok || len(members) != len(t.names) {
			return fmt.Errorf("%v is no row of %v", v, t.names)
		}
		b.WriteByte('{')
		for i, name := range t.names {
			x, ok := members[name]
			if !ok {
				return fmt.Errorf("member %s is missing in %v", name, v)
			}
			fmt.Fprintf(b, "%s:", name)
			if err := canonical(b, x, t.children[i]); err != nil {
				return err
			}
			b.WriteByte(';')
		}
		b.WriteByte('}')
	default:
		switch x := v.(type) {
		case string:
			b.WriteString(strconv.Quote(x))
		case json.Number:
			b.WriteString(x.String())
		case bool:
			b.WriteString(strconv.FormatBool(x))
		default:
			return fmt.Errorf("%v is no %s", v, t.root)
		}
	}
	return nil
}

func canonicalMap(b *strings.Builder, v any, t *dataType) error {
	items, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%v is no array of pairs", v)
	}
	pairs := make([]string, len(items))
	for i, x := range items {
		pair, ok := x.([]any)
		if !ok || len(pair) != 2 {
			return fmt.Errorf("%v is no pair", x)
		}
		var p strings.Builder
		if err := canonical(&p, pair[0], t.key); err != nil {
			return err
		}
		p.WriteString("->")
		if err := canonical(&p, pair[1], t.elem); err != nil {
			return err
		}
		pairs[i] = p.String()
	}
	slices.Sort(pairs)
	fmt.Fprintf(b, "<%s>", strings.Join(pairs, ","))
	return nil
}

func bits(t *dataType) int {
	if t.root == "FLOAT" {
		return 32
	}
	return 64
}

// number reads a FLOAT or DOUBLE: a JSON number, or the names of what is none.
func number(v any, t *dataType) (float64, error) {
	switch x := v.(type) {
	case json.Number:
		return strconv.ParseFloat(x.String(), bits(t))
	case string:
		switch x {
		case "NaN":
			return math.NaN(), nil
		case "Infinity":
			return math.Inf(1), nil
		case "-Infinity":
			return math.Inf(-1), nil
		}
	}
	return 0, fmt.Errorf("%v is no %s", v, t.root)
}
