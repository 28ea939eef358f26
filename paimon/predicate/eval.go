package predicate

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/paimon/row"
)

// Eval answers a bound predicate for the first n rows. cols gives the columns by
// the predicate's names, of the Arrow types that the schema maps to; a column a.b
// that it does not know is looked for as field b of a column a. What is not found
// at all is NULL in every row. nil matches every row.
func (p *Predicate) Eval(cols func(name string) arrow.Array, n int) *Mask {
	if p == nil {
		return newMask(n, isTrue)
	}
	switch p.Op {
	case And, Or:
		m := p.Children[0].Eval(cols, n)
		for _, c := range p.Children[1:] {
			if p.Op == And {
				m.and(c.Eval(cols, n))
			} else {
				m.or(c.Eval(cols, n))
			}
		}
		return m
	case Not:
		m := p.Children[0].Eval(cols, n)
		m.not()
		return m
	}
	m := newMask(n, isFalse)
	arr, parents := resolve(cols, p.Column)
	p.evalLeaf(m, arr)
	for _, s := range parents {
		p.setNulls(m, s) // a field of a null ROW is null
	}
	return m
}

// resolve finds a column and, for a nested field, the structs around it.
func resolve(cols func(name string) arrow.Array, name string) (arrow.Array, []arrow.Array) {
	if a := cols(name); a != nil {
		return a, nil
	}
	for at := strings.LastIndexByte(name, '.'); at > 0; at = strings.LastIndexByte(name[:at], '.') {
		a, parents := resolve(cols, name[:at])
		s, ok := a.(*array.Struct)
		if !ok {
			continue
		}
		if i, ok := s.DataType().(*arrow.StructType).FieldIdx(name[at+1:]); ok {
			return s.Field(i), append(parents, s)
		}
	}
	return nil, nil
}

// setNulls gives the rows in which a is null their answer.
func (p *Predicate) setNulls(m *Mask, a arrow.Array) {
	if a.NullN() == 0 {
		return
	}
	truth := isNull
	switch p.Op {
	case IsNull:
		truth = isTrue
	case IsNotNull:
		truth = isFalse
	}
	for i := range m.truth {
		if a.IsNull(i) {
			m.truth[i] = truth
		}
	}
}

func (p *Predicate) evalLeaf(m *Mask, arr arrow.Array) {
	if arr == nil {
		truth := isNull
		switch p.Op {
		case IsNull:
			truth = isTrue
		case IsNotNull:
			truth = isFalse
		}
		copy(m.truth, newMask(len(m.truth), truth).truth)
		return
	}
	switch p.Op {
	case IsNull:
	case IsNotNull:
		copy(m.truth, newMask(len(m.truth), isTrue).truth)
	case In, NotIn:
		p.evalIn(m, arr)
	case StartsWith:
		evalPrefix(m.truth, arr, p.Literals[0])
	default:
		evalCompare(m.truth, arr, p.Op, p.Literals[0])
	}
	p.setNulls(m, arr)
}

// evalIn is a chain of equalities; long lists of integers and strings are looked
// up in a set.
func (p *Predicate) evalIn(m *Mask, arr arrow.Array) {
	hasNull := false
	literals := make([]row.Value, 0, len(p.Literals))
	for _, l := range p.Literals {
		if l == nil {
			hasNull = true
			continue
		}
		literals = append(literals, l)
	}
	const setFrom = 8
	if len(literals) < setFrom || !evalSet(m.truth, arr, literals) {
		one := newMask(len(m.truth), isFalse)
		for _, l := range literals {
			evalCompare(one.truth, arr, Eq, l)
			m.or(one)
		}
	}
	if hasNull {
		m.or(newMask(len(m.truth), isNull)) // x IN (.., NULL) is never false
	}
	if p.Op == NotIn {
		m.not()
	}
}

func evalSet(out []byte, arr arrow.Array, literals []row.Value) bool {
	switch a := arr.(type) {
	case *array.Int32:
		lookUp(out, a.Int32Values(), literals)
	case *array.Int64:
		lookUp(out, a.Int64Values(), literals)
	case *array.String:
		set := make(map[string]struct{}, len(literals))
		for _, l := range literals {
			set[l.(string)] = struct{}{}
		}
		for i := range out {
			_, found := set[a.Value(i)]
			out[i] = truth(found)
		}
	default:
		return false
	}
	return true
}

func lookUp[T int32 | int64](out []byte, vals []T, literals []row.Value) {
	set := make(map[T]struct{}, len(literals))
	for _, l := range literals {
		set[l.(T)] = struct{}{}
	}
	for i := range out {
		_, found := set[vals[i]]
		out[i] = truth(found)
	}
}

func truth(b bool) byte {
	var t byte
	if b {
		t = isTrue
	}
	return t
}

func evalPrefix(out []byte, arr arrow.Array, literal row.Value) {
	switch a := arr.(type) {
	case *array.String:
		prefix := literal.(string)
		for i := range out {
			out[i] = truth(strings.HasPrefix(a.Value(i), prefix))
		}
	case *array.Binary:
		prefix := literal.([]byte)
		for i := range out {
			out[i] = truth(bytes.HasPrefix(a.Value(i), prefix))
		}
	}
}

// evalCompare answers arr op literal for every row, nulls left undefined.
func evalCompare(out []byte, arr arrow.Array, op Op, literal row.Value) {
	if literal == nil {
		for i := range out {
			out[i] = isNull
		}
		return
	}
	switch a := arr.(type) {
	case *array.Boolean:
		want := boolRank(literal.(bool))
		compareEach(out, op, func(i int) int { return boolRank(a.Value(i)) - want })
	case *array.Int8:
		compareOrdered(out, a.Int8Values(), op, literal.(int8))
	case *array.Int16:
		compareOrdered(out, a.Int16Values(), op, literal.(int16))
	case *array.Int32:
		compareOrdered(out, a.Int32Values(), op, literal.(int32))
	case *array.Date32:
		compareOrdered(out, a.Date32Values(), op, arrow.Date32(literal.(int32)))
	case *array.Time32:
		compareOrdered(out, a.Time32Values(), op, arrow.Time32(literal.(int32)))
	case *array.Int64:
		compareOrdered(out, a.Int64Values(), op, literal.(int64))
	case *array.Float32:
		compareFloats(out, a.Float32Values(), op, literal.(float32))
	case *array.Float64:
		compareFloats(out, a.Float64Values(), op, literal.(float64))
	case *array.Decimal128:
		want := literal.(decimal128.Num)
		compareEach(out, op, func(i int) int { return a.Value(i).Cmp(want) })
	case *array.Timestamp:
		compareTimestamps(out, a, op, literal.(row.Timestamp))
	case *array.String:
		compareStrings(out, a, op, literal.(string))
	case *array.Binary:
		want := literal.([]byte)
		compareEach(out, op, func(i int) int { return bytes.Compare(a.Value(i), want) })
	}
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareOrdered[T cmp.Ordered](out []byte, vals []T, op Op, want T) {
	vals = vals[:len(out)]
	switch op {
	case Eq:
		for i, v := range vals {
			out[i] = truth(v == want)
		}
	case Ne:
		for i, v := range vals {
			out[i] = truth(v != want)
		}
	case Lt:
		for i, v := range vals {
			out[i] = truth(v < want)
		}
	case Le:
		for i, v := range vals {
			out[i] = truth(v <= want)
		}
	case Gt:
		for i, v := range vals {
			out[i] = truth(v > want)
		}
	default:
		for i, v := range vals {
			out[i] = truth(v >= want)
		}
	}
}

// compareFloats keeps to Java's order, which differs from the processor's only for
// zeros and NaN.
func compareFloats[T float32 | float64](out []byte, vals []T, op Op, want T) {
	if want != 0 && want == want && op != Gt && op != Ge && op != Ne {
		compareOrdered(out, vals, op, want) // NaN is neither equal to nor below it
		return
	}
	compareEach(out, op, func(i int) int { return row.CompareFloat(float64(vals[i]), float64(want)) })
}

func compareEach(out []byte, op Op, compare func(i int) int) {
	for i := range out {
		c := compare(i)
		var t bool
		switch op {
		case Eq:
			t = c == 0
		case Ne:
			t = c != 0
		case Lt:
			t = c < 0
		case Le:
			t = c <= 0
		case Gt:
			t = c > 0
		default:
			t = c >= 0
		}
		out[i] = truth(t)
	}
}

func compareStrings(out []byte, a *array.String, op Op, want string) {
	if op == Eq || op == Ne {
		for i := range out {
			out[i] = truth((a.Value(i) == want) == (op == Eq))
		}
		return
	}
	compareEach(out, op, func(i int) int { return cmp.Compare(a.Value(i), want) })
}

// compareTimestamps brings the literal to the column's unit. Bind rounded it to
// the precision of the type; a column of a coarser unit compares with the part
// that it can hold, and the rest of the literal decides between equal parts.
func compareTimestamps(out []byte, a *array.Timestamp, op Op, want row.Timestamp) {
	perMilli := int64(1)
	switch a.DataType().(*arrow.TimestampType).Unit {
	case arrow.Microsecond:
		perMilli = 1_000
	case arrow.Nanosecond:
		perMilli = 1_000_000
	}
	nanosPerUnit := 1_000_000 / perMilli
	rest := int64(want.Nanos) % nanosPerUnit
	v := want.Millis*perMilli + int64(want.Nanos)/nanosPerUnit
	switch {
	case want.Millis > math.MaxInt64/perMilli-1:
		compareEach(out, op, func(int) int { return -1 })
	case want.Millis < math.MinInt64/perMilli:
		compareEach(out, op, func(int) int { return 1 })
	case rest != 0:
		vals := a.TimestampValues()
		compareEach(out, op, func(i int) int {
			if int64(vals[i]) <= v {
				return -1
			}
			return 1
		})
	default:
		compareOrdered(out, a.TimestampValues(), op, arrow.Timestamp(v))
	}
}
