package tideline

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/predicate"
	"github.com/tideline-db/tideline/paimon/schema"
)

// projection is what one scan reads and returns.
//
//	layout   the columns that the merge needs: asked, key and predicate columns
//	output   the asked ones, in the asked order, members of a ROW cut to the asked
type projection struct {
	output  []schema.Field
	arrow   *arrow.Schema
	layout  merge.Layout
	from    []int // table column of each layout column
	pick    []int // layout column of each output column
	where   *predicate.Predicate
	keyOnly *predicate.Predicate // conjuncts of where over key columns
}

func newProjection(s *schema.Schema, scan Scan) (*projection, error) {
	p := &projection{}
	if err := p.bind(s, scan.where); err != nil {
		return nil, err
	}
	var err error
	if p.output, err = selected(s, scan.columns); err != nil {
		return nil, err
	}
	p.arrow = schema.ArrowSchema(p.output)
	key := s.TrimmedKey()
	for _, f := range p.output {
		p.pick = append(p.pick, p.add(s, f.Name, f))
	}
	if p.where != nil {
		for _, name := range p.where.Columns() {
			top, _, nested := strings.Cut(name, ".")
			at := p.add(s, top, s.Fields[s.FieldIndex(top)])
			if nested { // the predicate may need a member that was not asked for
				p.layout.Fields[at] = s.Fields[s.FieldIndex(top)]
			}
		}
	}
	for _, k := range key {
		p.layout.Key = append(p.layout.Key, p.add(s, s.Fields[k].Name, s.Fields[k]))
	}
	return p, nil
}

// bind joins the predicates and types their literals.
func (p *projection) bind(s *schema.Schema, where []*predicate.Predicate) error {
	if len(where) == 0 {
		return nil
	}
	joined := where[0]
	if len(where) > 1 {
		joined = &predicate.Predicate{Op: predicate.And, Children: where}
	}
	var err error
	if p.where, err = predicate.Bind(joined, s.Fields); err != nil {
		return err
	}
	p.keyOnly, _ = predicate.SplitKey(p.where, s.PrimaryKeys)
	return nil
}

// add puts a column into the layout once.
func (p *projection) add(s *schema.Schema, name string, f schema.Field) int {
	if at := p.find(name); at >= 0 {
		return at
	}
	p.layout.Fields = append(p.layout.Fields, f)
	p.from = append(p.from, s.FieldIndex(name))
	return len(p.from) - 1
}

// find is the place of a top-level column in the layout, -1 when it is not there.
func (p *projection) find(name string) int {
	return slices.IndexFunc(p.layout.Fields, func(f schema.Field) bool { return f.Name == name })
}

// keyTypes are the types of the key columns, in key order.
func (p *projection) keyTypes() []schema.Type {
	types := make([]schema.Type, len(p.layout.Key))
	for i, at := range p.layout.Key {
		types[i] = p.layout.Fields[at].Type
	}
	return types
}

// selected resolves the asked names; nil asks for every column.
func selected(s *schema.Schema, names []string) ([]schema.Field, error) {
	if names == nil {
		return s.Fields, nil
	}
	var out []schema.Field
	for _, name := range names {
		top, rest, nested := name, "", false
		at := s.FieldIndex(name)
		if at < 0 {
			top, rest, nested = strings.Cut(name, ".")
			at = s.FieldIndex(top)
		}
		if at < 0 {
			return nil, errs.Invalid("column %q is not in the table (%s)", name, columnNames(s.Fields))
		}
		f := s.Fields[at]
		if nested {
			var err error
			if f.Type, err = member(f.Type, rest, name); err != nil {
				return nil, err
			}
		}
		same := slices.IndexFunc(out, func(o schema.Field) bool { return o.ID == f.ID })
		switch {
		case same < 0:
			out = append(out, f)
		case nested && out[same].Type.Kind == schema.Row:
			out[same].Type = mergeMembers(out[same].Type, f.Type)
		default:
			return nil, errs.Invalid("column %q is selected twice", top)
		}
	}
	return out, nil
}

// member cuts a ROW type to one path of members.
func member(t schema.Type, path, whole string) (schema.Type, error) {
	if t.Kind != schema.Row {
		return t, errs.Invalid("column %q: only members of a ROW can be selected, not of %s", whole, t)
	}
	name, rest, nested := strings.Cut(path, ".")
	for _, f := range t.Fields {
		if f.Name != name {
			continue
		}
		if nested {
			var err error
			if f.Type, err = member(f.Type, rest, whole); err != nil {
				return t, err
			}
		}
		t.Fields = []schema.Field{f}
		return t, nil
	}
	return t, errs.Invalid("column %q: %q is not a member of its row (%s)", whole, name, columnNames(t.Fields))
}

// mergeMembers joins two cuts of the same ROW.
func mergeMembers(a, b schema.Type) schema.Type {
	a.Fields = slices.Clone(a.Fields)
	for _, f := range b.Fields {
		at := slices.IndexFunc(a.Fields, func(o schema.Field) bool { return o.ID == f.ID })
		if at < 0 {
			a.Fields = append(a.Fields, f)
		} else if f.Type.Kind == schema.Row {
			a.Fields[at].Type = mergeMembers(a.Fields[at].Type, f.Type)
		}
	}
	return a
}

func columnNames(fields []schema.Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// block picks the layout's columns from a block of all table columns, members of
// a ROW cut by id. Nothing is copied.
func (p *projection) block(s *schema.Schema, full *merge.Block) *merge.Block {
	columns := make([]arrow.Array, len(p.from))
	for i, at := range p.from {
		columns[i] = cut(full.Columns[at], s.Fields[at].Type, p.layout.Fields[i].Type)
	}
	narrow := *full
	narrow.Columns = columns
	return &narrow
}

// cut narrows a struct array to the members that want names, by field id. It
// returns arr itself when nothing is to be done, else an array of its own that
// whoever got it may release.
func cut(arr arrow.Array, have, want schema.Type) arrow.Array {
	if have.Kind != schema.Row || have.Equal(want) {
		return arr
	}
	data := cutData(arr.Data(), have, want)
	defer data.Release()
	return array.NewStructData(data)
}

// cutData is cut below the array; the result always carries a reference.
func cutData(data arrow.ArrayData, have, want schema.Type) arrow.ArrayData {
	if have.Kind != schema.Row || have.Equal(want) {
		data.Retain()
		return data
	}
	children := make([]arrow.ArrayData, len(want.Fields))
	for i, f := range want.Fields {
		at := slices.IndexFunc(have.Fields, func(o schema.Field) bool { return o.ID == f.ID })
		children[i] = cutData(data.Children()[at], have.Fields[at].Type, f.Type)
		defer children[i].Release()
	}
	dt, err := schema.ArrowType(want)
	if err != nil { // the table could not have been opened
		panic(err)
	}
	return array.NewData(dt, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}

// record returns the asked columns of a merged block as a record batch, which
// the caller releases.
func (p *projection) record(b *merge.Block) arrow.RecordBatch {
	columns := make([]arrow.Array, len(p.pick))
	for i, at := range p.pick {
		columns[i] = cut(b.Columns[at], p.layout.Fields[at].Type, p.output[i].Type)
		if columns[i] != b.Columns[at] {
			defer columns[i].Release()
		}
	}
	return array.NewRecordBatch(p.arrow, columns, int64(b.Rows))
}

// filtered applies the exact filter to a merged block and projects it; nil when
// no row is left. The caller releases the batch.
func (p *projection) filtered(b *merge.Block, candidates bool, alloc memory.Allocator) (arrow.RecordBatch, error) {
	if p.where == nil || candidates {
		return p.record(b), nil
	}
	sel := p.where.Eval(func(name string) arrow.Array { return p.column(b, name) }, b.Rows).Selection(nil)
	switch len(sel) {
	case 0:
		return nil, nil
	case b.Rows:
		return p.record(b), nil
	}
	batch := p.record(b)
	defer batch.Release()
	columns := merge.Gather(alloc, batch.Columns(), sel)
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	return array.NewRecordBatch(p.arrow, columns, int64(len(sel))), nil
}

// column is a top-level column of a block by name, nil when there is none.
func (p *projection) column(b *merge.Block, name string) arrow.Array {
	if at := p.find(name); at >= 0 {
		return b.Columns[at]
	}
	return nil
}
