package snapshot

import (
	"context"

	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/predicate"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// pruner drops files by the statistics in their metadata. Statistics of a file
// are those of its own schema; a column counts only when it has the same id and
// type in both. What is not known never drops a file.
type pruner struct {
	t      *Table
	schema *schema.Schema
	where  []*predicate.Predicate
	files  map[int64]*fileColumns
}

// fileColumns maps the columns of the query's schema to those of a file's schema.
type fileColumns struct {
	schema *schema.Schema
	types  []schema.Type  // of all columns of the file's schema
	index  map[string]int // query column -> column of the file's schema
	byName map[string]int // file column -> its index
	keyAt  map[int]int    // file column -> position in the key statistics
	keys   []schema.Type
}

func (t *Table) newPruner(_ context.Context, s *schema.Schema, f Filter) (*pruner, error) {
	p := &pruner{t: t, schema: s, files: map[int64]*fileColumns{}}
	if f.Key != nil {
		p.where = append(p.where, f.Key)
	}
	if f.Value != nil && !s.IsPrimaryKey() {
		p.where = append(p.where, f.Value)
	}
	for i, w := range p.where {
		bound, err := predicate.Bind(w, s.Fields)
		if err != nil {
			return nil, err
		}
		p.where[i] = bound
	}
	return p, nil
}

func (p *pruner) keep(ctx context.Context, f *manifest.FileMeta) (bool, error) {
	if len(p.where) == 0 {
		return true, nil
	}
	cols, err := p.columns(ctx, f.SchemaID)
	if err != nil {
		return false, err
	}
	stats := cols.stats(f)
	for _, w := range p.where {
		if !w.MayMatch(stats) {
			return false, nil
		}
	}
	return true, nil
}

func (p *pruner) columns(ctx context.Context, id int64) (*fileColumns, error) {
	if c := p.files[id]; c != nil {
		return c, nil
	}
	own, err := p.t.Schema(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &fileColumns{schema: own, index: map[string]int{}, byName: map[string]int{}, keyAt: map[int]int{}}
	byID := map[int]int{}
	for i, f := range own.Fields {
		byID[f.ID] = i
		c.byName[f.Name] = i
		c.types = append(c.types, f.Type)
	}
	for _, f := range p.schema.Fields {
		if i, ok := byID[f.ID]; ok && sameKind(f.Type, own.Fields[i].Type) {
			c.index[f.Name] = i
		}
	}
	for k, i := range own.TrimmedKey() {
		c.keyAt[i] = k
		c.keys = append(c.keys, own.Fields[i].Type)
	}
	p.files[id] = c
	return c, nil
}

func sameKind(a, b schema.Type) bool {
	a.Nullable, b.Nullable = false, false
	return a.Equal(b)
}

// stats answers for one file. The rows of the statistics are decoded once, when
// the first column is asked for.
func (c *fileColumns) stats(f *manifest.FileMeta) func(string) (lo, hi row.Value, nulls, rows int64, known bool) {
	var key, value *decodedStats
	return func(name string) (row.Value, row.Value, int64, int64, bool) {
		i, ok := c.index[name]
		if !ok {
			return nil, nil, 0, 0, false
		}
		if k, isKey := c.keyAt[i]; isKey {
			if key == nil {
				key = decodeStats(&f.KeyStats, c.keys)
			}
			if lo, hi, nulls, known := key.column(k, f.Rows); known {
				return lo, hi, nulls, f.Rows, true
			}
		}
		if value == nil {
			value = c.valueStats(f)
		}
		lo, hi, nulls, known := value.column(value.position(i), f.Rows)
		return lo, hi, nulls, f.Rows, known
	}
}

type decodedStats struct {
	min, max []row.Value
	nulls    []int64
	at       map[int]int // column of the file's schema -> position; nil: the same
}

func (c *fileColumns) valueStats(f *manifest.FileMeta) *decodedStats {
	if !f.HasStatsCols {
		if f.HasWriteCols {
			return &decodedStats{}
		}
		return decodeStats(&f.ValueStats, c.types)
	}
	at := make(map[int]int, len(f.ValueStatsCols))
	types := make([]schema.Type, len(f.ValueStatsCols))
	for k, name := range f.ValueStatsCols {
		i, ok := c.byName[name]
		if !ok {
			return &decodedStats{}
		}
		at[i], types[k] = k, c.types[i]
	}
	d := decodeStats(&f.ValueStats, types)
	d.at = at
	return d
}

// decodeStats gives empty statistics for anything that does not fit the types:
// pruning is an optimisation and must not fail a read.
func decodeStats(s *manifest.Stats, types []schema.Type) *decodedStats {
	if s.Arity != len(types) || len(s.NullCounts) != len(types) || len(types) == 0 {
		return &decodedStats{}
	}
	lo, err := row.Decode(types, s.Min)
	if err != nil {
		return &decodedStats{}
	}
	hi, err := row.Decode(types, s.Max)
	if err != nil {
		return &decodedStats{}
	}
	return &decodedStats{min: lo, max: hi, nulls: s.NullCounts}
}

func (d *decodedStats) position(column int) int {
	if d.at == nil {
		return column
	}
	if k, ok := d.at[column]; ok {
		return k
	}
	return -1
}

// column answers for position k. Bounds that are null although the column has
// values were not collected.
func (d *decodedStats) column(k int, rows int64) (lo, hi row.Value, nulls int64, known bool) {
	if k < 0 || k >= len(d.nulls) || d.nulls[k] < 0 || (d.min[k] == nil || d.max[k] == nil) && d.nulls[k] < rows {
		return nil, nil, 0, false
	}
	return d.min[k], d.max[k], d.nulls[k], true
}
