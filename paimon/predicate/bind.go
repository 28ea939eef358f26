package predicate

import (
	"strings"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Bind resolves the columns of p in fields, converts the literals to their types
// and moves NOT down to the leaves. The result means the same as p, compares
// with row.Values only, and is what Eval and MayMatch work on. nil (every row)
// stays nil. ErrInvalid names an unknown column or a literal that is no value of
// its column's type; ErrUnsupported a type that cannot be compared.
func Bind(p *Predicate, fields []schema.Field) (*Predicate, error) {
	if p == nil {
		return nil, nil
	}
	return bind(p, fields, false)
}

func bind(p *Predicate, fields []schema.Field, negated bool) (*Predicate, error) {
	switch p.Op {
	case Not:
		if len(p.Children) != 1 {
			return nil, errs.Invalid("NOT has %d operands", len(p.Children))
		}
		return bind(p.Children[0], fields, !negated)
	case And, Or:
		if len(p.Children) == 0 {
			return nil, errs.Invalid("a conjunction or disjunction has no operands")
		}
		children := make([]*Predicate, len(p.Children))
		for i, c := range p.Children {
			var err error
			if children[i], err = bind(c, fields, negated); err != nil {
				return nil, err
			}
		}
		op := p.Op
		if negated {
			op = And + Or - op // De Morgan
		}
		return join(op, children), nil
	}
	return bindLeaf(p, fields, negated)
}

var negation = map[Op]Op{Eq: Ne, Ne: Eq, Lt: Ge, Ge: Lt, Gt: Le, Le: Gt, In: NotIn, NotIn: In, IsNull: IsNotNull, IsNotNull: IsNull}

func bindLeaf(p *Predicate, fields []schema.Field, negated bool) (*Predicate, error) {
	t, ok := lookup(p.Column, fields)
	if !ok {
		return nil, errs.Invalid("the predicate names the column %s, which the table does not have", p.Column)
	}
	b := &Predicate{Op: p.Op, Column: p.Column, bound: t}
	if negated && p.Op != StartsWith {
		b.Op = negation[p.Op]
	}
	var err error
	switch p.Op {
	case IsNull, IsNotNull:
		return b, nil
	case In, NotIn:
		err = b.bindList(p.Literals)
	case StartsWith:
		err = b.bindPrefix(p.Literals)
	case Eq, Ne, Lt, Le, Gt, Ge:
		err = b.bindComparison(p.Literals)
	default:
		err = errs.Invalid("a predicate has the unknown operation %d", p.Op)
	}
	if err != nil {
		return nil, err
	}
	if negated && p.Op == StartsWith {
		return Negate(b), nil
	}
	return b, nil
}

// lookup finds a column by its whole name, then as a path a.b through ROW types.
func lookup(name string, fields []schema.Field) (schema.Type, bool) {
	for _, f := range fields {
		if f.Name == name {
			return f.Type, true
		}
	}
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(name, f.Name+"."); ok && f.Type.Kind == schema.Row {
			if t, ok := lookup(rest, f.Type.Fields); ok {
				return t, true
			}
		}
	}
	return schema.Type{}, false
}

func (p *Predicate) bindComparison(literals []row.Value) error {
	if len(literals) != 1 {
		return errs.Invalid("a comparison of column %s has %d literals", p.Column, len(literals))
	}
	v, f, err := cast(literals[0], p.bound)
	if err != nil {
		return p.wrap(err)
	}
	if f == fitExact {
		p.Literals = []row.Value{v}
		return nil
	}
	always, keepsValue := p.offGrid(f)
	switch {
	case keepsValue:
		p.Literals = []row.Value{v}
	case always:
		p.Op = NotIn
	default:
		p.Op = In
	}
	return nil
}

// offGrid rewrites a comparison with a literal that no value of the column
// equals: to one with the next lower value (keepsValue), or to a constant.
func (p *Predicate) offGrid(f fit) (always, keepsValue bool) {
	switch p.Op {
	case Eq:
		return false, false
	case Ne:
		return true, false
	case Lt, Le:
		if f == fitFloor {
			p.Op = Le
			return false, true
		}
		return f == fitAbove, false
	default:
		if f == fitFloor {
			p.Op = Gt
			return false, true
		}
		return f == fitBelow, false
	}
}

func (p *Predicate) bindList(literals []row.Value) error {
	for _, l := range literals {
		v, f, err := cast(l, p.bound)
		if err != nil {
			return p.wrap(err)
		}
		if f == fitExact {
			p.Literals = append(p.Literals, v)
		}
	}
	if !isScalar(p.bound.Kind) {
		return errs.Unsupported("column %s: a column of type %s cannot be compared with a literal", p.Column, p.bound)
	}
	return nil
}

func (p *Predicate) bindPrefix(literals []row.Value) error {
	switch p.bound.Kind {
	case schema.Char, schema.VarChar, schema.Binary, schema.VarBinary:
	default:
		return errs.Invalid("LIKE on column %s, which is a %s and no string", p.Column, p.bound)
	}
	if len(literals) != 1 || literals[0] == nil {
		return errs.Invalid("LIKE on column %s needs one prefix", p.Column)
	}
	v, _, err := cast(literals[0], p.bound)
	p.Literals = []row.Value{v}
	return p.wrap(err)
}

func (p *Predicate) wrap(err error) error {
	if err == nil {
		return nil
	}
	return &columnError{p.Column, err}
}

// columnError puts the column's name in front of a literal's error.
type columnError struct {
	column string
	err    error
}

func (e *columnError) Error() string { return "column " + e.column + ": " + e.err.Error() }
func (e *columnError) Unwrap() error { return e.err }

func isScalar(k schema.Kind) bool { return k >= schema.Boolean && k <= schema.TimestampLTZ }
