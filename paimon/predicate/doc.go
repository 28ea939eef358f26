// Package predicate holds filters over columns: the tree, its binding to a
// schema, its exact evaluation on Arrow columns, what statistics say about it,
// and an SQL-like text form.
//
//	Parse / constructors --> Bind --> Eval      exact, per row
//	                              --> MayMatch  per file, never prunes wrongly
//	                              --> SplitKey  what may be pushed below a merge
//
// # Semantics
//
// SQL's three-valued logic: a comparison with NULL is neither true nor false, AND,
// OR and NOT are Kleene's, and only rows for which the whole is true match. IS
// [NOT] NULL is two-valued. Values compare as keys do in the format: strings and
// binaries by unsigned bytes, FLOAT and DOUBLE in Java's order, so -0.0 is below
// 0.0, NaN equals NaN and is above everything.
//
// # Binding
//
// A tree is built with plain Go values or literals of the text form. Bind looks
// up the columns, converts each literal to the row.Value of its column, and moves
// NOT down to the leaves. A literal that lies between two values of the column's
// type changes the comparison rather than the literal: n > 3.5 on an INT becomes
// n > 3, n = 3.5 is true for no row. Literals for a FLOAT are rounded to it.
//
// # Caveats
//
// LIKE is limited to prefixes. Columns compare with literals only, not with one
// another. A column that Eval is not given counts as NULL in every row, which is
// what a file lacks whose schema is older than the column.
package predicate
