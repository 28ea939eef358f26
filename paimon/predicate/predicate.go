package predicate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Op is the kind of a predicate node.
type Op uint8

// The operations. And, Or and Not have Children; all others compare one column
// with literals. A comparison with NULL is neither true nor false (SQL).
const (
	And Op = iota + 1
	Or
	Not
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	In    // no literals: false, for a NULL NULL
	NotIn // no literals: true, for a NULL NULL
	IsNull
	IsNotNull
	StartsWith
)

// Predicate is an immutable expression tree over columns by name. Literals are
// row.Value of the column's type after Bind; nested fields are written a.b.
type Predicate struct {
	Op       Op
	Column   string
	Literals []row.Value
	Children []*Predicate

	bound schema.Type // the column's type; Kind 0: not bound
}

// Number is a numeric literal as it was written, before Bind gives it the type of
// its column.
type Number string

// Compare builds a leaf: op is one of Eq to StartsWith. Values may be row.Value,
// any Go number, string, []byte, bool, time.Time, Number or nil for NULL.
func Compare(op Op, column string, values ...any) *Predicate {
	return &Predicate{Op: op, Column: column, Literals: slices.Clone(values)}
}

// AllOf is the conjunction of the predicates that are not nil; nil (every row)
// when there is none.
func AllOf(ps ...*Predicate) *Predicate { return join(And, ps) }

// Negate is NOT p.
func Negate(p *Predicate) *Predicate { return &Predicate{Op: Not, Children: []*Predicate{p}} }

func join(op Op, ps []*Predicate) *Predicate {
	var children []*Predicate
	for _, p := range ps {
		switch {
		case p == nil:
		case p.Op == op:
			children = append(children, p.Children...)
		default:
			children = append(children, p)
		}
	}
	switch len(children) {
	case 0:
		return nil
	case 1:
		return children[0]
	}
	return &Predicate{Op: op, Children: children}
}

// Columns returns the names of all columns of p, each once, in the order of their
// first use. nil has none.
func (p *Predicate) Columns() []string {
	var names []string
	p.walk(func(leaf *Predicate) {
		if !slices.Contains(names, leaf.Column) {
			names = append(names, leaf.Column)
		}
	})
	return names
}

func (p *Predicate) walk(leaf func(*Predicate)) {
	switch {
	case p == nil:
	case p.Op == And || p.Op == Or || p.Op == Not:
		for _, c := range p.Children {
			c.walk(leaf)
		}
	default:
		leaf(p)
	}
}

// SplitKey splits p into key AND rest: key has the conjuncts that use key columns
// only. Those hold or fail for all versions of a key alike, so they may drop rows
// before a merge; the rest must wait until after it. Either may be nil.
func SplitKey(p *Predicate, keyNames []string) (key, rest *Predicate) {
	if p == nil {
		return nil, nil
	}
	conjuncts := []*Predicate{p}
	if p.Op == And {
		conjuncts = p.Children
	}
	var k, r []*Predicate
	for _, c := range conjuncts {
		onlyKey := true
		c.walk(func(leaf *Predicate) { onlyKey = onlyKey && slices.Contains(keyNames, leaf.Column) })
		if onlyKey {
			k = append(k, c)
		} else {
			r = append(r, c)
		}
	}
	return AllOf(k...), AllOf(r...)
}

var opText = map[Op]string{Eq: "=", Ne: "<>", Lt: "<", Le: "<=", Gt: ">", Ge: ">="}

// String writes p in the form that Parse reads. nil is TRUE, which Parse does not
// read: it stands for no predicate.
func (p *Predicate) String() string {
	if p == nil {
		return "TRUE"
	}
	var b strings.Builder
	p.write(&b)
	return b.String()
}

func (p *Predicate) write(b *strings.Builder) {
	switch p.Op {
	case And, Or:
		word := " AND "
		if p.Op == Or {
			word = " OR "
		}
		for i, c := range p.Children {
			if i > 0 {
				b.WriteString(word)
			}
			c.writeChild(b)
		}
	case Not:
		b.WriteString("NOT ")
		for _, c := range p.Children {
			c.writeChild(b)
		}
	case In, NotIn:
		writeName(b, p.Column)
		if p.Op == NotIn {
			b.WriteString(" NOT")
		}
		b.WriteString(" IN (")
		for i, v := range p.Literals {
			if i > 0 {
				b.WriteString(", ")
			}
			writeLiteral(b, v, p.bound)
		}
		b.WriteString(")")
	case IsNull:
		writeName(b, p.Column)
		b.WriteString(" IS NULL")
	case IsNotNull:
		writeName(b, p.Column)
		b.WriteString(" IS NOT NULL")
	case StartsWith:
		writeName(b, p.Column)
		b.WriteString(" LIKE ")
		writeQuoted(b, fmt.Sprintf("%s%%", p.Literals[0]))
	default:
		writeName(b, p.Column)
		b.WriteString(" " + opText[p.Op] + " ")
		writeLiteral(b, p.Literals[0], p.bound)
	}
}

func (p *Predicate) writeChild(b *strings.Builder) {
	if p.Op == And || p.Op == Or || p.Op == Not {
		b.WriteString("(")
		p.write(b)
		b.WriteString(")")
		return
	}
	p.write(b)
}

func writeName(b *strings.Builder, name string) {
	if isPlainName(name) {
		b.WriteString(name)
		return
	}
	b.WriteString("`" + strings.ReplaceAll(name, "`", "``") + "`")
}

func writeQuoted(b *strings.Builder, s string) {
	b.WriteString("'" + strings.ReplaceAll(s, "'", "''") + "'")
}

func writeLiteral(b *strings.Builder, v any, t schema.Type) {
	switch v := v.(type) {
	case nil:
		b.WriteString("NULL")
	case string:
		writeQuoted(b, v)
	case []byte:
		writeQuoted(b, string(v))
	case bool:
		b.WriteString(strings.ToUpper(fmt.Sprint(v)))
	case decimal128.Num:
		b.WriteString(v.ToString(int32(t.Scale)))
	case row.Timestamp:
		writeQuoted(b, formatTimestamp(v))
	case float32, float64:
		writeFloat(b, v)
	case int32:
		switch t.Kind {
		case schema.Date:
			writeQuoted(b, formatDate(v))
		case schema.Time:
			writeQuoted(b, formatTime(v))
		default:
			fmt.Fprint(b, v)
		}
	default:
		fmt.Fprint(b, v)
	}
}

func writeFloat(b *strings.Builder, v any) {
	s := fmt.Sprint(v)
	if strings.ContainsAny(s, "NI") { // NaN and infinities are written as strings
		writeQuoted(b, s)
		return
	}
	b.WriteString(s)
}
