package datafile

import (
	"bytes"
	"cmp"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// ColumnStats are the statistics of one top-level column of a file, as the
// manifest wants them (FORMAT §7.5). Min and Max are nil when HasMinMax is
// false: complex types, timestamps of more than microseconds, columns that hold
// NaN, and columns without a value.
type ColumnStats struct {
	Min, Max  row.Value
	Nulls     int64
	HasMinMax bool
}

// statsCollector gathers the statistics of one column over the batches.
type statsCollector struct {
	nulls int64
	acc   accumulator // nil: null counts only
}

// accumulator keeps the extremes of one physical representation.
type accumulator interface {
	add(arr arrow.Array)
	result() (lo, hi row.Value, ok bool)
}

func newStatsCollector(t schema.Type) statsCollector {
	return statsCollector{acc: newAccumulator(t)}
}

func newAccumulator(t schema.Type) accumulator {
	switch t.Kind {
	case schema.Boolean:
		return &boolRange{}
	case schema.TinyInt:
		return numbers(func(a arrow.Array) []int8 { return a.(*array.Int8).Int8Values() }, asIs[int8])
	case schema.SmallInt:
		return numbers(func(a arrow.Array) []int16 { return a.(*array.Int16).Int16Values() }, asIs[int16])
	case schema.Int, schema.Date, schema.Time:
		return numbers(fixedValues[int32], asIs[int32])
	case schema.BigInt:
		return numbers(fixedValues[int64], asIs[int64])
	case schema.Timestamp, schema.TimestampLTZ:
		// Paimon keeps no range for INT96 columns (FORMAT §7.5).
		switch {
		case t.Prec <= 3:
			return numbers(fixedValues[int64], func(v int64) row.Value { return row.Timestamp{Millis: v} })
		case t.Prec <= 6:
			return numbers(fixedValues[int64], microsValue)
		}
	case schema.Float:
		return &floatRange[float32]{values: func(a arrow.Array) []float32 { return a.(*array.Float32).Float32Values() }}
	case schema.Double:
		return &floatRange[float64]{values: func(a arrow.Array) []float64 { return a.(*array.Float64).Float64Values() }}
	case schema.Decimal:
		return &decimalRange{}
	case schema.Char, schema.VarChar:
		return &textRange{}
	}
	// BINARY and VARBINARY have no range either: Java Paimon 1.3.1 prunes by their
	// bounds in signed byte order, and so loses rows of a file that has unsigned
	// ones. It writes none itself.
	return nil
}

func (s *statsCollector) add(arr arrow.Array) {
	s.nulls += int64(arr.NullN())
	if s.acc != nil && arr.NullN() < arr.Len() {
		s.acc.add(arr)
	}
}

func (s *statsCollector) result() ColumnStats {
	st := ColumnStats{Nulls: s.nulls}
	if s.acc != nil {
		st.Min, st.Max, st.HasMinMax = s.acc.result()
	}
	return st
}

func asIs[T any](v T) row.Value { return v }

func microsValue(v int64) row.Value {
	millis, micros := v/1000, v%1000
	if micros < 0 {
		millis, micros = millis-1, micros+1000
	}
	return row.Timestamp{Millis: millis, Nanos: int32(micros) * 1000}
}

// numberRange keeps the range of an integer column.
type numberRange[T cmp.Ordered] struct {
	values func(arrow.Array) []T
	value  func(T) row.Value
	lo, hi T
	has    bool
}

func numbers[T cmp.Ordered](values func(arrow.Array) []T, value func(T) row.Value) *numberRange[T] {
	return &numberRange[T]{values: values, value: value}
}

func (r *numberRange[T]) add(arr arrow.Array) {
	v := r.values(arr)
	lo, hi, first := r.lo, r.hi, 0
	if !r.has {
		for arr.IsNull(first) {
			first++
		}
		lo, hi, r.has = v[first], v[first], true
	}
	if arr.NullN() == 0 {
		for _, x := range v {
			lo, hi = min(lo, x), max(hi, x)
		}
	} else {
		for i := first; i < len(v); i++ {
			if arr.IsValid(i) {
				lo, hi = min(lo, v[i]), max(hi, v[i])
			}
		}
	}
	r.lo, r.hi = lo, hi
}

func (r *numberRange[T]) result() (row.Value, row.Value, bool) {
	if !r.has {
		return nil, nil, false
	}
	return r.value(r.lo), r.value(r.hi), true
}

// floatRange keeps the range of a floating point column. A NaN anywhere makes
// the range unknown, and a zero bound takes the sign that covers both zeros, as
// parquet-mr does: engines disagree on the order of NaN and of signed zeros.
type floatRange[T float32 | float64] struct {
	values   func(arrow.Array) []T
	lo, hi   T
	has, nan bool
}

func (r *floatRange[T]) add(arr arrow.Array) {
	if r.nan {
		return
	}
	v := r.values(arr)
	if !r.has {
		r.lo, r.hi, r.has = T(math.Inf(1)), T(math.Inf(-1)), true
	}
	lo, hi, nulls := r.lo, r.hi, arr.NullN() > 0
	for i, x := range v {
		if nulls && arr.IsNull(i) {
			continue
		}
		if x != x {
			r.nan = true
			return
		}
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
	}
	r.lo, r.hi = lo, hi
}

func (r *floatRange[T]) result() (row.Value, row.Value, bool) {
	if !r.has || r.nan {
		return nil, nil, false
	}
	lo, hi := r.lo, r.hi
	if lo == 0 {
		lo = T(math.Copysign(0, -1))
	}
	if hi == 0 {
		hi = 0
	}
	return lo, hi, true
}

type boolRange struct{ sawFalse, sawTrue bool }

func (r *boolRange) add(arr arrow.Array) {
	b := arr.(*array.Boolean)
	for i := 0; i < b.Len() && !(r.sawFalse && r.sawTrue); i++ {
		if b.IsNull(i) {
			continue
		}
		if b.Value(i) {
			r.sawTrue = true
		} else {
			r.sawFalse = true
		}
	}
}

func (r *boolRange) result() (row.Value, row.Value, bool) {
	if !r.sawFalse && !r.sawTrue {
		return nil, nil, false
	}
	return !r.sawFalse, r.sawTrue, true
}

type decimalRange struct {
	lo, hi decimal128.Num
	has    bool
}

func (r *decimalRange) add(arr arrow.Array) {
	for i, x := range arr.(*array.Decimal128).Values() {
		if arr.IsNull(i) {
			continue
		}
		switch {
		case !r.has:
			r.lo, r.hi, r.has = x, x, true
		case x.Less(r.lo):
			r.lo = x
		case r.hi.Less(x):
			r.hi = x
		}
	}
}

func (r *decimalRange) result() (row.Value, row.Value, bool) {
	if !r.has {
		return nil, nil, false
	}
	return r.lo, r.hi, true
}

// textRange keeps the range of a text column in unsigned byte order. The bounds
// are copied once a batch, not once a value.
type textRange struct {
	lo, hi []byte
	has    bool
}

func (r *textRange) add(arr arrow.Array) {
	offsets, data := binaryParts(arr)
	lo, hi, has, nulls := r.lo, r.hi, r.has, arr.NullN() > 0
	for i := range arr.Len() {
		if nulls && arr.IsNull(i) {
			continue
		}
		x := data[offsets[i]:offsets[i+1]]
		switch {
		case !has:
			lo, hi, has = x, x, true
		case bytes.Compare(x, lo) < 0:
			lo = x
		case bytes.Compare(x, hi) > 0:
			hi = x
		}
	}
	r.lo, r.hi, r.has = append(r.lo[:0:0], lo...), append(r.hi[:0:0], hi...), has
}

func (r *textRange) result() (row.Value, row.Value, bool) {
	if !r.has {
		return nil, nil, false
	}
	return string(r.lo), string(r.hi), true
}
