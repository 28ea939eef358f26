package datafile

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// column is a wanted column laid over the file's own schema tree: where its
// leaves are, and which levels mean what.
//
// An entry of a leaf below is a slot of this node when its repetition level is
// at most rep and its definition level at least floor; the slot holds a value
// when its definition level is at least def.
type column struct {
	name  string // path, for messages
	t     schema.Type
	dt    arrow.DataType
	def   int16
	rep   int16
	floor int16

	leaf     int // index of the leaf column in the file, for leaves
	width    int // physical width of the leaf (see physicalWidth)
	put      converter
	children []*column // Row: members; Array: element; Map: key, value
}

// nesting is where a node hangs in the file.
type nesting struct {
	def, rep, floor int16
}

// resolver lays wanted fields over one file schema.
type resolver struct {
	sc   *pqschema.Schema
	file string
}

// column finds a top-level column by name.
func (r resolver) column(f schema.Field) (*column, error) {
	root := r.sc.Root()
	i := root.FieldIndexByName(f.Name)
	if i < 0 {
		return nil, errs.Invalid("data file %s has no column %s", r.file, f.Name)
	}
	dt := schema.ArrowField(f).Type
	if dt.ID() == arrow.NULL {
		return nil, errs.Unsupported("column %s of type %s", f.Name, f.Type)
	}
	return r.node(f.Name, f.Type, dt, root.Field(i), nesting{})
}

func (r resolver) node(name string, t schema.Type, dt arrow.DataType, n pqschema.Node, at nesting) (*column, error) {
	if t.Kind == schema.Array && n.RepetitionType() == parquet.Repetitions.Repeated {
		return r.bareList(name, t, dt, n, at)
	}
	switch n.RepetitionType() {
	case parquet.Repetitions.Optional:
		at.def++
	case parquet.Repetitions.Repeated:
		return nil, r.mismatch(name, t, n)
	}
	c := &column{name: name, t: t, dt: dt, def: at.def, rep: at.rep, floor: at.floor, leaf: -1}
	switch t.Kind {
	case schema.Array:
		return c, r.list(c, n, at)
	case schema.Map, schema.Multiset:
		return c, r.mapping(c, n, at)
	case schema.Row:
		return c, r.members(c, n, at)
	}
	return c, r.bindLeaf(c, n)
}

// members resolves the wanted fields of a ROW: by name, since they are named as
// the file's own schema version names them, and by id where the name is not
// there.
func (r resolver) members(c *column, n pqschema.Node, at nesting) error {
	g, ok := n.(*pqschema.GroupNode)
	if !ok {
		return r.mismatch(c.name, c.t, n)
	}
	if len(c.t.Fields) == 0 {
		return errs.Invalid("column %s: no member is wanted", c.name)
	}
	for pos, f := range c.t.Fields {
		i := g.FieldIndexByName(f.Name)
		for k := 0; i < 0 && k < g.NumFields(); k++ {
			if g.Field(k).FieldID() == int32(f.ID) {
				i = k
			}
		}
		if i < 0 {
			return errs.Invalid("data file %s has no column %s.%s", r.file, c.name, f.Name)
		}
		child, err := r.node(c.name+"."+f.Name, f.Type, c.dt.(*arrow.StructType).Field(pos).Type, g.Field(i), at)
		if err != nil {
			return err
		}
		c.children = append(c.children, child)
	}
	return nil
}

// list resolves LIST groups of three levels, and the older layouts of two.
func (r resolver) list(c *column, n pqschema.Node, at nesting) error {
	g, ok := n.(*pqschema.GroupNode)
	if !ok || g.NumFields() != 1 || g.Field(0).RepetitionType() != parquet.Repetitions.Repeated {
		return r.mismatch(c.name, c.t, n)
	}
	rep := g.Field(0)
	elem, err := r.element(c, rep, n.Name(), nesting{def: at.def + 1, rep: at.rep + 1, floor: at.def + 1})
	c.children = []*column{elem}
	return err
}

// element finds the element below a repeated node: the node's only child, or
// the node itself by the compatibility rules of the Parquet format.
func (r resolver) element(c *column, rep pqschema.Node, list string, at nesting) (*column, error) {
	name, t, dt := c.name+".element", *c.t.Elem, c.dt.(*arrow.ListType).Elem()
	g, ok := rep.(*pqschema.GroupNode)
	itself := !ok || g.NumFields() != 1 || g.Field(0).RepetitionType() == parquet.Repetitions.Repeated
	if !itself && t.Kind == schema.Row && (rep.Name() == "array" || rep.Name() == list+"_tuple") {
		inner, isGroup := g.Field(0).(*pqschema.GroupNode)
		itself = !isGroup || inner.LogicalType().IsNested()
	}
	if !itself {
		return r.node(name, t, dt, g.Field(0), at)
	}
	return r.asElement(name, t, dt, rep, at)
}

// asElement resolves a repeated node that is the element itself, required.
func (r resolver) asElement(name string, t schema.Type, dt arrow.DataType, rep pqschema.Node, at nesting) (*column, error) {
	c := &column{name: name, t: t, dt: dt, def: at.def, rep: at.rep, floor: at.floor, leaf: -1}
	switch t.Kind {
	case schema.Row:
		return c, r.members(c, rep, at)
	case schema.Array:
		return c, r.list(c, rep, at)
	case schema.Map, schema.Multiset:
		return c, r.mapping(c, rep, at)
	}
	return c, r.bindLeaf(c, rep)
}

// bareList resolves a repeated field without a LIST group around it.
func (r resolver) bareList(name string, t schema.Type, dt arrow.DataType, n pqschema.Node, at nesting) (*column, error) {
	c := &column{name: name, t: t, dt: dt, def: at.def, rep: at.rep, floor: at.floor, leaf: -1}
	elem, err := r.asElement(name+".element", *t.Elem, dt.(*arrow.ListType).Elem(), n, nesting{def: at.def + 1, rep: at.rep + 1, floor: at.def + 1})
	c.children = []*column{elem}
	return c, err
}

func (r resolver) mapping(c *column, n pqschema.Node, at nesting) error {
	g, ok := n.(*pqschema.GroupNode)
	if !ok || g.NumFields() != 1 || g.Field(0).RepetitionType() != parquet.Repetitions.Repeated {
		return r.mismatch(c.name, c.t, n)
	}
	entries, ok := g.Field(0).(*pqschema.GroupNode)
	if !ok || entries.NumFields() != 2 {
		return r.mismatch(c.name, c.t, n)
	}
	in := nesting{def: at.def + 1, rep: at.rep + 1, floor: at.def + 1}
	keyType, valueType := mapParts(c.t)
	mt := c.dt.(*arrow.MapType)
	key, err := r.node(c.name+".key", keyType, mt.KeyType(), entries.Field(0), in)
	if err != nil {
		return err
	}
	value, err := r.node(c.name+".value", valueType, mt.ItemType(), entries.Field(1), in)
	c.children = []*column{key, value}
	return err
}

func (r resolver) bindLeaf(c *column, n pqschema.Node) error {
	p, ok := n.(*pqschema.PrimitiveNode)
	if !ok {
		return r.mismatch(c.name, c.t, n)
	}
	c.leaf = r.sc.ColumnIndexByNode(n)
	if c.leaf < 0 {
		return errs.Corrupt(r.file, -1, "column %s is not a leaf of the file's schema", c.name)
	}
	c.width = physicalWidth(r.sc.Column(c.leaf))
	if c.put = converterFor(c.t, p); !c.put.ok {
		return r.mismatch(c.name, c.t, n)
	}
	return nil
}

func (r resolver) mismatch(name string, t schema.Type, n pqschema.Node) error {
	var b strings.Builder
	pqschema.PrintSchema(n, &b, 0)
	return errs.Unsupported("data file %s stores column %s in a layout that does not hold %s: %s",
		r.file, name, t, strings.Join(strings.Fields(b.String()), " "))
}

// nested reports whether the column has group levels.
func (c *column) nested() bool { return c.leaf < 0 }

// firstLeaf is the leaf whose levels describe the node.
func (c *column) firstLeaf() *column {
	for c.leaf < 0 {
		c = c.children[0]
	}
	return c
}

// leafColumns lists the leaves below, in file order.
func (c *column) leafColumns(dst []*column) []*column {
	if c.leaf >= 0 {
		return append(dst, c)
	}
	for _, child := range c.children {
		dst = child.leafColumns(dst)
	}
	return dst
}
