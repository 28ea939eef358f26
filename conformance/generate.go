package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Row is one change of a table.
type Row struct {
	Kind string // +I -U +U -D
	JSON string // the columns, without _kind
}

func (r Row) withKind() string {
	return fmt.Sprintf(`{"_kind":%q,%s`, r.Kind, r.JSON[1:])
}

// Case is a table, what is written to it, and what must be visible after each commit.
type Case struct {
	Name    string
	Seed    uint64
	Schema  Schema
	Commits [][]Row
}

// Visible is the content after the first n commits: with a primary key the last
// change of each key, nothing where that is -D or -U; without one every row, in the
// order of writing. It is the slow obvious model that every engine has to meet.
func (c Case) Visible(n int) []string {
	var order []string
	last := map[string]Row{}
	var all []string
	for _, commit := range c.Commits[:n] {
		for _, r := range commit {
			if len(c.Schema.PrimaryKeys) == 0 {
				all = append(all, r.JSON)
				continue
			}
			k := c.key(r)
			if _, ok := last[k]; !ok {
				order = append(order, k)
			}
			last[k] = r
		}
	}
	for _, k := range order {
		if r := last[k]; r.Kind == "+I" || r.Kind == "+U" {
			all = append(all, r.JSON)
		}
	}
	return all
}

func (c Case) key(r Row) string {
	values, err := decodeRow(r.JSON)
	if err != nil {
		panic(err) // the generator's own text
	}
	var b strings.Builder
	for _, name := range c.Schema.PrimaryKeys {
		fmt.Fprintf(&b, "%v\x00", values[name])
	}
	return b.String()
}

// HasDeletes tells whether any row is -D or -U.
func (c Case) HasDeletes() bool {
	for _, commit := range c.Commits {
		for _, r := range commit {
			if r.Kind == "-D" || r.Kind == "-U" {
				return true
			}
		}
	}
	return false
}

// Shape says what a generated table looks like.
type Shape struct {
	Columns   []string // "name TYPE"; nested types as `name {"type":...}`
	Partition []string
	Primary   []string
	Options   map[string]string
	Commits   int
	Rows      int // per commit
	Keys      int // distinct values of each key column; small means many updates
	Deletes   bool
	PlainText bool // key texts without anything that a path escapes
}

// Generate makes the case of a shape and a seed; the same both times.
func Generate(name string, shape Shape, seed uint64) Case {
	c := Case{Name: name, Seed: seed, Schema: Schema{
		PartitionKeys: nonNil(shape.Partition), PrimaryKeys: nonNil(shape.Primary), Options: shape.Options,
	}}
	id := 0
	for _, text := range shape.Columns {
		name, typ, _ := strings.Cut(text, " ")
		raw := json.RawMessage(typ)
		if !strings.HasPrefix(typ, "{") {
			raw, _ = json.Marshal(typ)
		}
		column := id
		for strings.Contains(string(raw), `"id":0`) { // members of rows are numbered depth first
			id++
			raw = json.RawMessage(strings.Replace(string(raw), `"id":0`, fmt.Sprintf(`"id":%d`, id), 1))
		}
		id++
		c.Schema.Fields = append(c.Schema.Fields, Field{ID: column, Name: name, Type: raw})
	}
	types, err := c.Schema.types()
	if err != nil {
		panic(fmt.Sprintf("case %s: %v", name, err)) // a mistake in the tests
	}
	g := &values{rng: rand.New(rand.NewPCG(seed, uint64(len(shape.Columns)))), plain: shape.PlainText}
	few := g.keyPools(c.Schema, types, shape)
	alive := map[string]bool{}
	for range shape.Commits {
		var commit []Row
		for range shape.Rows {
			r := Row{Kind: "+I", JSON: g.row(c.Schema, types, few)}
			if len(shape.Primary) > 0 {
				k := c.key(r)
				r.Kind = g.kind(alive[k], shape.Deletes)
				alive[k] = r.Kind == "+I" || r.Kind == "+U"
			}
			commit = append(commit, r)
		}
		c.Commits = append(c.Commits, commit)
	}
	return c
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// kind draws the change of a key. A key that is not there is deleted now and then too:
// a lone -D must stay invisible.
func (g *values) kind(alive, deletes bool) string {
	if deletes && g.rng.IntN(5) == 0 {
		if alive && g.rng.IntN(4) == 0 {
			return "-U"
		}
		return "-D"
	}
	if alive && g.rng.IntN(2) == 0 {
		return "+U"
	}
	return "+I"
}

// keyPools draws the values that key and partition columns choose from.
func (g *values) keyPools(s Schema, types []*dataType, shape Shape) map[string][]any {
	few := map[string][]any{}
	draw := func(names []string, n int) {
		for _, name := range names {
			if _, ok := few[name]; ok {
				continue
			}
			for i, f := range s.Fields {
				if f.Name == name {
					for range n {
						few[name] = append(few[name], g.value(types[i], true))
					}
				}
			}
		}
	}
	draw(shape.Partition, 3) // few partitions, so that buckets are not one row each
	draw(shape.Primary, max(shape.Keys, 1))
	return few
}

func (g *values) row(s Schema, types []*dataType, few map[string][]any) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range s.Fields {
		if i > 0 {
			b.WriteByte(',')
		}
		v := any(nil)
		if pool, ok := few[f.Name]; ok {
			v = pool[g.rng.IntN(len(pool))]
		} else {
			v = g.value(types[i], false)
		}
		fmt.Fprintf(&b, "%s:%s", text(f.Name), text(v))
	}
	b.WriteByte('}')
	return b.String()
}

// text is JSON without the HTML escapes, which would only blur a report.
func text(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // values of this package only
	}
	return strings.TrimSpace(b.String())
}
