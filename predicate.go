package tideline

import "github.com/tideline-db/tideline/paimon/predicate"

// Predicate is a condition over columns; members of a ROW are written a.b. It is
// exact: rows for which it is false or unknown (NULL) are left out. Literals are
// Go values of the column's type or text in SQL notation ("2024-01-31").
type Predicate = predicate.Predicate

// Eq is column = value.
func Eq(column string, value any) *Predicate { return compare(predicate.Eq, column, value) }

// Ne is column <> value.
func Ne(column string, value any) *Predicate { return compare(predicate.Ne, column, value) }

// Lt is column < value.
func Lt(column string, value any) *Predicate { return compare(predicate.Lt, column, value) }

// Le is column <= value.
func Le(column string, value any) *Predicate { return compare(predicate.Le, column, value) }

// Gt is column > value.
func Gt(column string, value any) *Predicate { return compare(predicate.Gt, column, value) }

// Ge is column >= value.
func Ge(column string, value any) *Predicate { return compare(predicate.Ge, column, value) }

// In is column IN (values).
func In(column string, values ...any) *Predicate { return compare(predicate.In, column, values...) }

// NotIn is column NOT IN (values).
func NotIn(column string, values ...any) *Predicate {
	return compare(predicate.NotIn, column, values...)
}

// IsNull is column IS NULL.
func IsNull(column string) *Predicate { return compare(predicate.IsNull, column) }

// IsNotNull is column IS NOT NULL.
func IsNotNull(column string) *Predicate { return compare(predicate.IsNotNull, column) }

// StartsWith is column LIKE 'prefix%'.
func StartsWith(column, prefix string) *Predicate {
	return compare(predicate.StartsWith, column, prefix)
}

// And is true when all of the predicates are.
func And(p ...*Predicate) *Predicate { return &Predicate{Op: predicate.And, Children: p} }

// Or is true when one of the predicates is.
func Or(p ...*Predicate) *Predicate { return &Predicate{Op: predicate.Or, Children: p} }

// Not is true when the predicate is false.
func Not(p *Predicate) *Predicate { return &Predicate{Op: predicate.Not, Children: []*Predicate{p}} }

// ParsePredicate reads SQL: city = 'Oslo' and n > 3.
func ParsePredicate(text string) (*Predicate, error) { return predicate.Parse(text) }

func compare(op predicate.Op, column string, values ...any) *Predicate {
	return &Predicate{Op: op, Column: column, Literals: values}
}
