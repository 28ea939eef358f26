package row

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/paimon/schema"
)

// Constant returns an array of n times v, a value of type t, in the layout of
// schema.ArrowType. The caller releases it. It serves partition columns, whose
// values come from the manifest.
func Constant(t schema.Type, v Value, n int, alloc memory.Allocator) (arrow.Array, error) {
	dt, err := schema.ArrowType(t)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return array.MakeArrayOfNull(alloc, dt, n), nil
	}
	b := array.NewBuilder(alloc, dt)
	defer b.Release()
	b.Reserve(n)
	for range n {
		if err := appendValue(b, t, v); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

func appendValue(b array.Builder, t schema.Type, v Value) error {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int8Builder:
		b.Append(v.(int8))
	case *array.Int16Builder:
		b.Append(v.(int16))
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Float32Builder:
		b.Append(v.(float32))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.Decimal128Builder:
		b.Append(v.(decimal128.Num))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int32)))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v.(int32)))
	case *array.TimestampBuilder:
		b.Append(timestampIn(b.Type().(*arrow.TimestampType).Unit, v.(Timestamp)))
	default:
		return fmt.Errorf("a constant of type %s", t)
	}
	return nil
}

// timestampIn gives a timestamp in a unit, what is finer cut off.
func timestampIn(unit arrow.TimeUnit, ts Timestamp) arrow.Timestamp {
	switch unit {
	case arrow.Second:
		return arrow.Timestamp(ts.Millis / 1000)
	case arrow.Millisecond:
		return arrow.Timestamp(ts.Millis)
	case arrow.Microsecond:
		return arrow.Timestamp(ts.Millis*1000 + int64(ts.Nanos)/1000)
	default:
		return arrow.Timestamp(ts.Millis*1_000_000 + int64(ts.Nanos))
	}
}
