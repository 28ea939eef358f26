package predicate

import (
	"bytes"
	"strings"

	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// MayMatch tells whether a set of rows can hold one that matches, going by its
// statistics. It never says no wrongly: what is unknown may match. nil and
// unbound predicates may always match.
//
// stats describes a column: min is at most and max at least every non-null value
// (both may be truncated, nil is unknown), nulls and rows are counts (negative:
// unknown); known false means that nothing is known. Statistics of floating-point
// columns are expected to leave out NaN and to mix up the zeros, as Parquet's do.
//
// Value predicates must not be used on files whose rows may be shadowed or may
// shadow others; see SplitKey.
func (p *Predicate) MayMatch(stats func(column string) (min, max row.Value, nulls, rows int64, known bool)) bool {
	if p == nil {
		return true
	}
	switch p.Op {
	case And:
		for _, c := range p.Children {
			if !c.MayMatch(stats) {
				return false
			}
		}
		return true
	case Or:
		for _, c := range p.Children {
			if c.MayMatch(stats) {
				return true
			}
		}
		return false
	case Not:
		return true // Bind leaves it before LIKE only, where bounds say little
	}
	smallest, greatest, nulls, rows, known := stats(p.Column)
	if !known || p.bound.Kind == 0 {
		return true
	}
	if p.Op == IsNull {
		return nulls != 0
	}
	if nulls >= 0 && nulls == rows {
		return false // nothing but NULL compares, or is not null
	}
	if p.Op == IsNotNull {
		return true
	}
	return p.mayMatchRange(bounds{p.bound, smallest, greatest})
}

// bounds are the statistics of the non-null values of one column.
type bounds struct {
	typ      schema.Type
	min, max row.Value
}

func (p *Predicate) mayMatchRange(b bounds) bool {
	switch p.Op {
	case In:
		for _, l := range p.Literals {
			if l != nil && !b.below(l) && !b.above(l) {
				return true
			}
		}
		return false
	case NotIn:
		for _, l := range p.Literals {
			if l == nil || b.only(l) {
				return false
			}
		}
		return true
	case StartsWith:
		return b.mayStartWith(p.Literals[0])
	}
	l := p.Literals[0]
	if l == nil {
		return false
	}
	switch p.Op {
	case Eq:
		return !b.below(l) && !b.above(l)
	case Ne:
		return !b.only(l)
	case Lt:
		return b.min == nil || b.isFloat() && isZero(l) && isZero(b.min) || row.CompareValue(b.typ, b.min, l) < 0
	case Le:
		return !b.above(l)
	case Gt:
		return b.max == nil || b.isFloat() || row.CompareValue(b.typ, b.max, l) > 0
	default:
		return b.isFloat() || !b.below(l)
	}
}

func (b bounds) isFloat() bool { return b.typ.Kind == schema.Float || b.typ.Kind == schema.Double }

// below tells that every value is below l.
func (b bounds) below(l row.Value) bool {
	if b.max == nil || b.isFloat() && (isNaN(l) || isZero(l) && isZero(b.max)) {
		return false
	}
	return row.CompareValue(b.typ, b.max, l) < 0
}

// above tells that every value is above l. A minimum of NaN says nothing.
func (b bounds) above(l row.Value) bool {
	if b.min == nil || b.isFloat() && (isNaN(l) || isNaN(b.min) || isZero(l) && isZero(b.min)) {
		return false
	}
	return row.CompareValue(b.typ, b.min, l) > 0
}

// only tells that every value is l.
func (b bounds) only(l row.Value) bool {
	return b.min != nil && b.max != nil && !b.isFloat() &&
		row.CompareValue(b.typ, b.min, l) == 0 && row.CompareValue(b.typ, b.max, l) == 0
}

func (b bounds) mayStartWith(l row.Value) bool {
	if b.below(l) {
		return false // the prefix is the smallest value that starts with it
	}
	if b.min == nil || row.CompareValue(b.typ, b.min, l) <= 0 {
		return true
	}
	switch prefix := l.(type) {
	case string:
		return strings.HasPrefix(b.min.(string), prefix)
	case []byte:
		return bytes.HasPrefix(b.min.([]byte), prefix)
	}
	return true
}

func isNaN(v row.Value) bool {
	switch f := v.(type) {
	case float32:
		return f != f
	case float64:
		return f != f
	}
	return false
}

func isZero(v row.Value) bool {
	switch f := v.(type) {
	case float32:
		return f == 0
	case float64:
		return f == 0
	}
	return false
}
