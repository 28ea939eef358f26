package predicate

import "github.com/tideline-db/tideline/paimon/row"

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
	In
	NotIn
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
}
