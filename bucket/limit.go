package bucket

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// limit is the range that values of a type must lie in, beyond what their Arrow
// type already says. Dates and times are those of the SQL standard, years 0001 to
// 9999; the format computes in milliseconds and microseconds, which wrap beyond.
type limit struct {
	kind     limitKind
	low, hi  int64 // limitInt32, limitInt64: both inclusive
	prec     int32 // limitDecimal: digits
	describe string
}

type limitKind uint8

const (
	limitNone limitKind = iota
	limitInt32
	limitInt64
	limitDecimal
)

const (
	firstDay    = -719162 // 0001-01-01
	lastDay     = 2932896 // 9999-12-31
	dayMillis   = 86_400_000
	lastMillis  = (lastDay + 1) * dayMillis
	firstMillis = firstDay * dayMillis
)

func limitOf(t schema.Type, dt arrow.DataType) limit {
	switch t.Kind {
	case schema.Date:
		return limit{kind: limitInt32, low: firstDay, hi: lastDay, describe: "a date of the years 0001 to 9999"}
	case schema.Time:
		return limit{kind: limitInt32, low: 0, hi: dayMillis - 1, describe: "a time of day below 24:00"}
	case schema.Decimal:
		return limit{kind: limitDecimal, prec: int32(t.Prec), describe: fmt.Sprintf("a decimal of %d digits", t.Prec)}
	case schema.Timestamp, schema.TimestampLTZ:
		l := limit{kind: limitInt64, low: firstMillis, hi: lastMillis - 1, describe: "a timestamp of the years 0001 to 9999"}
		switch dt.(*arrow.TimestampType).Unit {
		case arrow.Microsecond:
			l.low, l.hi = l.low*1000, lastMillis*1000-1
		case arrow.Nanosecond: // 64 bits of nanoseconds reach from 1677 to 2262 only
			l.kind = limitNone
		}
		return l
	}
	return limit{}
}

// broken returns the first of the rows, all rows when idx is nil, whose value
// is outside of the limit, -1 when there is none. Nulls have no value.
func (l *limit) broken(r *raw, idx []int32) int {
	switch l.kind {
	case limitInt32:
		low, hi := int32(l.low), int32(l.hi)
		return firstBroken(r, arrow.Int32Traits.CastFromBytes(r.fixed), idx, func(v int32) bool { return v < low || v > hi })
	case limitInt64:
		low, hi := l.low, l.hi
		return firstBroken(r, arrow.Int64Traits.CastFromBytes(r.fixed), idx, func(v int64) bool { return v < low || v > hi })
	case limitDecimal:
		prec := l.prec
		return firstBroken(r, castDecimals(r.fixed), idx, func(v decimal128.Num) bool { return !v.FitsInPrecision(prec) })
	}
	return -1
}

func firstBroken[T any](r *raw, values []T, idx []int32, outside func(T) bool) int {
	if idx == nil {
		for i, v := range values {
			if outside(v) && !r.isNull(i) {
				return i
			}
		}
		return -1
	}
	for _, i := range idx {
		if outside(values[i]) && !r.isNull(int(i)) {
			return int(i)
		}
	}
	return -1
}

// checkValues refuses nulls where the type allows none and values outside of
// their limits.
func checkValues(n *node, r *raw) error {
	if !n.typ.Nullable && r.nulls > 0 {
		return errs.Invalid("column %s, row %d: null in a column that is NOT NULL; nothing was written", n.name, firstNull(r, nil))
	}
	if i := n.limit.broken(r, nil); i >= 0 {
		return errs.Invalid("column %s, row %d: the value is not %s; nothing was written", n.name, i, n.limit.describe)
	}
	if len(n.children) == 0 || !n.restricted() {
		return nil
	}
	rows := make([]int32, r.rows)
	for i := range rows {
		rows[i] = int32(i)
	}
	return checkChildren(n, r, rows, rows)
}

// restricted tells whether some child can hold a value that must be refused.
func (n *node) restricted() bool {
	for _, c := range n.children {
		if !c.typ.Nullable || c.limit.kind != limitNone || c.restricted() {
			return true
		}
	}
	return false
}

// checkChildren checks the children of the values at rows, which belong to the
// rows top of the batch. What lies under a null of a parent is not looked at.
func checkChildren(n *node, r *raw, rows, top []int32) error {
	inner := make([]int32, 0, len(rows))
	innerTop := make([]int32, 0, len(rows))
	for i, j := range rows {
		if r.isNull(int(j)) {
			continue
		}
		from, to := j, j+1
		if n.shape == shapeList {
			from, to = r.offsets[j], r.offsets[j+1]
		}
		for ; from < to; from++ {
			inner, innerTop = append(inner, from), append(innerTop, top[i])
		}
	}
	for c, child := range n.children {
		if err := checkNested(child, &r.children[c], inner, innerTop); err != nil {
			return err
		}
	}
	return nil
}

func checkNested(n *node, r *raw, rows, top []int32) error {
	if !n.typ.Nullable && r.nulls > 0 {
		if i := firstNull(r, rows); i >= 0 {
			return errs.Invalid("column %s, row %d: null in a part that is NOT NULL; nothing was written", n.name, rowOf(i, rows, top))
		}
	}
	if i := n.limit.broken(r, rows); i >= 0 {
		return errs.Invalid("column %s, row %d: the value is not %s; nothing was written", n.name, rowOf(i, rows, top), n.limit.describe)
	}
	if len(n.children) == 0 || !n.restricted() {
		return nil
	}
	return checkChildren(n, r, rows, top)
}

func rowOf(i int, rows, top []int32) int32 {
	for k, j := range rows {
		if int(j) == i {
			return top[k]
		}
	}
	return -1
}

func firstNull(r *raw, idx []int32) int {
	if idx == nil {
		for i := range r.rows {
			if r.isNull(i) {
				return i
			}
		}
		return -1
	}
	for _, i := range idx {
		if r.isNull(int(i)) {
			return int(i)
		}
	}
	return -1
}
