package jsonl

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/paimon/schema"
)

var null = []byte("null")

// bind resolves the type of an array once, so that a value costs one call.
func bind(t schema.Type, arr arrow.Array, sortMaps bool) (cell, error) {
	c, err := bindValue(t, arr, sortMaps)
	if err != nil || arr.NullN() == 0 {
		return c, err
	}
	return func(dst []byte, i int) []byte {
		if arr.IsNull(i) {
			return append(dst, null...)
		}
		return c(dst, i)
	}, nil
}

func bindValue(t schema.Type, arr arrow.Array, sortMaps bool) (cell, error) {
	switch t.Kind {
	case schema.Boolean:
		if a, ok := arr.(*array.Boolean); ok {
			return func(dst []byte, i int) []byte { return strconv.AppendBool(dst, a.Value(i)) }, nil
		}
	case schema.TinyInt, schema.SmallInt, schema.Int, schema.BigInt:
		return bindInteger(t, arr)
	case schema.Float:
		switch a := arr.(type) {
		case *array.Float32:
			return func(dst []byte, i int) []byte { return appendFloat(dst, float64(a.Value(i)), 32) }, nil
		case *array.Float16:
			return func(dst []byte, i int) []byte { return appendFloat(dst, float64(a.Value(i).Float32()), 32) }, nil
		}
	case schema.Double:
		if a, ok := arr.(*array.Float64); ok {
			return func(dst []byte, i int) []byte { return appendFloat(dst, a.Value(i), 64) }, nil
		}
	case schema.Decimal:
		switch a := arr.(type) {
		case *array.Decimal128:
			return func(dst []byte, i int) []byte {
				return append(appendDecimal(append(dst, '"'), a.Value(i), t.Scale), '"')
			}, nil
		case *array.Uint64: // no integer type of the format holds all of them
			return func(dst []byte, i int) []byte {
				return append(appendDecimal(append(dst, '"'), decimal128.FromU64(a.Value(i)), 0), '"')
			}, nil
		}
	case schema.Char, schema.VarChar:
		switch a := arr.(type) {
		case *array.String:
			return func(dst []byte, i int) []byte { return AppendString(dst, a.Value(i)) }, nil
		case *array.LargeString:
			return func(dst []byte, i int) []byte { return AppendString(dst, a.Value(i)) }, nil
		}
	case schema.Binary, schema.VarBinary:
		return bindBinary(t, arr)
	case schema.Date, schema.Time, schema.Timestamp, schema.TimestampLTZ:
		return bindTemporal(t, arr)
	case schema.Array:
		return bindList(t, arr, sortMaps)
	case schema.Map, schema.Multiset:
		return bindMap(t, arr, sortMaps)
	case schema.Row:
		return bindRow(t, arr, sortMaps)
	}
	return nil, mismatch(t, arr)
}

func mismatch(t schema.Type, arr arrow.Array) error {
	return fmt.Errorf("type %s cannot be written from Arrow %s", t.Kind, arr.DataType())
}

func bindInteger(t schema.Type, arr arrow.Array) (cell, error) {
	switch a := arr.(type) {
	case *array.Int8:
		return integers(a.Int8Values()), nil
	case *array.Int16:
		return integers(a.Int16Values()), nil
	case *array.Int32:
		return integers(a.Int32Values()), nil
	case *array.Int64:
		return integers(a.Int64Values()), nil
	case *array.Uint8:
		return integers(a.Uint8Values()), nil
	case *array.Uint16:
		return integers(a.Uint16Values()), nil
	case *array.Uint32:
		return integers(a.Uint32Values()), nil
	}
	return nil, mismatch(t, arr)
}

func integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](values []T) cell {
	return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(values[i]), 10) }
}

func bindBinary(t schema.Type, arr arrow.Array) (cell, error) {
	var value func(int) []byte
	switch a := arr.(type) {
	case *array.Binary:
		value = a.Value
	case *array.LargeBinary:
		value = a.Value
	case *array.FixedSizeBinary:
		value = a.Value
	default:
		return nil, mismatch(t, arr)
	}
	return func(dst []byte, i int) []byte { return append(appendHex(append(dst, '"'), value(i)), '"') }, nil
}

func bindTemporal(t schema.Type, arr arrow.Array) (cell, error) {
	switch a := arr.(type) {
	case *array.Date32:
		if t.Kind == schema.Date {
			return dates(a.Date32Values(), 1), nil
		}
	case *array.Date64:
		if t.Kind == schema.Date {
			return dates(a.Date64Values(), secondsPerDay*1000), nil
		}
	case *array.Time32:
		if t.Kind == schema.Time {
			return times(a.Time32Values(), perSecond(a.DataType().(*arrow.Time32Type).Unit), min(t.Prec, 3)), nil
		}
	case *array.Time64:
		if t.Kind == schema.Time {
			return times(a.Time64Values(), perSecond(a.DataType().(*arrow.Time64Type).Unit), t.Prec), nil
		}
	case *array.Timestamp:
		if t.Kind == schema.Timestamp || t.Kind == schema.TimestampLTZ {
			return timestamps(t, a.TimestampValues(), perSecond(a.DataType().(*arrow.TimestampType).Unit)), nil
		}
	}
	return nil, mismatch(t, arr)
}

func dates[T ~int32 | ~int64](values []T, perDay int64) cell {
	return func(dst []byte, i int) []byte {
		day, _ := floorDiv(int64(values[i]), perDay)
		return append(appendDate(append(dst, '"'), day), '"')
	}
}

func times[T ~int32 | ~int64](values []T, perSecond int64, prec int) cell {
	return func(dst []byte, i int) []byte {
		second, rest := floorDiv(int64(values[i]), perSecond)
		return append(appendClock(append(dst, '"'), second, rest*(1e9/perSecond), prec), '"')
	}
}

func timestamps(t schema.Type, values []arrow.Timestamp, perSecond int64) cell {
	return func(dst []byte, i int) []byte {
		second, rest := floorDiv(int64(values[i]), perSecond)
		dst = appendTimestamp(append(dst, '"'), second, rest*(1e9/perSecond), t.Prec)
		if t.Kind == schema.TimestampLTZ {
			dst = append(dst, 'Z')
		}
		return append(dst, '"')
	}
}

func perSecond(unit arrow.TimeUnit) int64 { return int64(1e9 / unit.Multiplier()) }

// listLike is what lists and maps of all offset widths share.
type listLike interface {
	ListValues() arrow.Array
	ValueOffsets(i int) (start, end int64)
}

func bindList(t schema.Type, arr arrow.Array, sortMaps bool) (cell, error) {
	a, ok := arr.(listLike)
	if !ok || t.Elem == nil {
		return nil, mismatch(t, arr)
	}
	element, err := bind(*t.Elem, a.ListValues(), sortMaps)
	if err != nil {
		return nil, err
	}
	return func(dst []byte, i int) []byte {
		start, end := a.ValueOffsets(i)
		dst = append(dst, '[')
		for j := start; j < end; j++ {
			if j > start {
				dst = append(dst, ',')
			}
			dst = element(dst, int(j))
		}
		return append(dst, ']')
	}, nil
}

func bindMap(t schema.Type, arr arrow.Array, sortMaps bool) (cell, error) {
	a, ok := arr.(*array.Map)
	if !ok {
		return nil, mismatch(t, arr)
	}
	keyType, valueType := t.Key, t.Elem
	if t.Kind == schema.Multiset {
		keyType, valueType = t.Elem, &schema.Type{Kind: schema.Int}
	}
	key, err := bind(*keyType, a.Keys(), sortMaps)
	if err != nil {
		return nil, err
	}
	value, err := bind(*valueType, a.Items(), sortMaps)
	if err != nil {
		return nil, err
	}
	pair := func(dst []byte, j int) []byte {
		dst = append(key(append(dst, '['), j), ',')
		return append(value(dst, j), ']')
	}
	if sortMaps {
		return sortedMap(a, pair), nil
	}
	return func(dst []byte, i int) []byte {
		start, end := a.ValueOffsets(i)
		dst = append(dst, '[')
		for j := start; j < end; j++ {
			if j > start {
				dst = append(dst, ',')
			}
			dst = pair(dst, int(j))
		}
		return append(dst, ']')
	}, nil
}

func sortedMap(a *array.Map, pair cell) cell {
	return func(dst []byte, i int) []byte {
		start, end := a.ValueOffsets(i)
		pairs := make([][]byte, 0, end-start)
		for j := start; j < end; j++ {
			pairs = append(pairs, pair(nil, int(j)))
		}
		slices.SortFunc(pairs, bytes.Compare)
		dst = append(dst, '[')
		dst = append(dst, bytes.Join(pairs, []byte{','})...)
		return append(dst, ']')
	}
}

func bindRow(t schema.Type, arr arrow.Array, sortMaps bool) (cell, error) {
	a, ok := arr.(*array.Struct)
	if !ok || a.NumField() != len(t.Fields) {
		return nil, mismatch(t, arr)
	}
	if len(t.Fields) == 0 {
		return func(dst []byte, _ int) []byte { return append(dst, "{}"...) }, nil
	}
	keys := make([][]byte, len(t.Fields))
	members := make([]cell, len(t.Fields))
	for c, f := range t.Fields {
		keys[c] = memberKey(c, f.Name)
		var err error
		if members[c], err = bind(f.Type, a.Field(c), sortMaps); err != nil {
			return nil, fmt.Errorf("member %s: %w", f.Name, err)
		}
	}
	return func(dst []byte, i int) []byte {
		for c, member := range members {
			dst = member(append(dst, keys[c]...), i)
		}
		return append(dst, '}')
	}, nil
}
