package conformance

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// kindNumbers are the row kinds as the format stores them.
var kindNumbers = map[string]int8{"+I": 0, "-U": 1, "+U": 2, "-D": 3}

// Batch turns rows into one Arrow batch in the order of the schema's columns, and
// their kinds. The caller releases the batch.
func Batch(mem memory.Allocator, s Schema, rows []Row) (arrow.RecordBatch, []int8, error) {
	types, err := s.types()
	if err != nil {
		return nil, nil, err
	}
	fields := make([]arrow.Field, len(types))
	for i, t := range types {
		dt, err := arrowType(t)
		if err != nil {
			return nil, nil, err
		}
		fields[i] = arrow.Field{Name: s.Fields[i].Name, Type: dt, Nullable: !t.notNull}
	}
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, nil))
	defer b.Release()
	kinds := make([]int8, len(rows))
	for r, row := range rows {
		values, err := decodeRow(row.JSON)
		if err != nil {
			return nil, nil, err
		}
		for i, t := range types {
			if err := appendValue(b.Field(i), values[s.Fields[i].Name], t); err != nil {
				return nil, nil, fmt.Errorf("row %d, column %s: %w", r, s.Fields[i].Name, err)
			}
		}
		kinds[r] = kindNumbers[row.Kind]
	}
	return b.NewRecordBatch(), kinds, nil
}

// arrowType is the Arrow type in which the engine takes and gives a column.
func arrowType(t *dataType) (arrow.DataType, error) {
	field := func(name string, c *dataType, required bool) (arrow.Field, error) {
		dt, err := arrowType(c)
		return arrow.Field{Name: name, Type: dt, Nullable: !required && !c.notNull}, err
	}
	switch t.root {
	case "BOOLEAN":
		return arrow.FixedWidthTypes.Boolean, nil
	case "TINYINT":
		return arrow.PrimitiveTypes.Int8, nil
	case "SMALLINT":
		return arrow.PrimitiveTypes.Int16, nil
	case "INT", "INTEGER":
		return arrow.PrimitiveTypes.Int32, nil
	case "BIGINT":
		return arrow.PrimitiveTypes.Int64, nil
	case "FLOAT":
		return arrow.PrimitiveTypes.Float32, nil
	case "DOUBLE":
		return arrow.PrimitiveTypes.Float64, nil
	case "DECIMAL", "NUMERIC", "DEC":
		return &arrow.Decimal128Type{Precision: int32(t.arg(0, 10)), Scale: int32(t.arg(1, 0))}, nil
	case "CHAR", "VARCHAR", "STRING":
		return arrow.BinaryTypes.String, nil
	case "BINARY", "VARBINARY", "BYTES":
		return arrow.BinaryTypes.Binary, nil
	case "DATE":
		return arrow.FixedWidthTypes.Date32, nil
	case "TIME":
		return arrow.FixedWidthTypes.Time32ms, nil
	case "TIMESTAMP":
		return &arrow.TimestampType{Unit: unitOf(t)}, nil
	case "TIMESTAMP_LTZ":
		return &arrow.TimestampType{Unit: unitOf(t), TimeZone: "UTC"}, nil
	case "ARRAY":
		f, err := field("element", t.elem, false)
		return arrow.ListOfField(f), err
	case "MAP", "MULTISET":
		k, err := field("key", t.key, true)
		if err != nil {
			return nil, err
		}
		v, err := field("value", t.elem, false)
		if err != nil {
			return nil, err
		}
		return arrow.MapOfFields(k, v), nil
	case "ROW":
		fields := make([]arrow.Field, len(t.children))
		for i, c := range t.children {
			f, err := field(t.names[i], c, false)
			if err != nil {
				return nil, err
			}
			fields[i] = f
		}
		return arrow.StructOf(fields...), nil
	}
	return nil, fmt.Errorf("no Arrow type for %s", t.root)
}

func unitOf(t *dataType) arrow.TimeUnit {
	switch p := t.arg(0, 6); {
	case p <= 3:
		return arrow.Millisecond
	case p <= 6:
		return arrow.Microsecond
	}
	return arrow.Nanosecond
}

func appendValue(b array.Builder, v any, t *dataType) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int8Builder:
		n, err := integer(v, 8)
		b.Append(int8(n))
		return err
	case *array.Int16Builder:
		n, err := integer(v, 16)
		b.Append(int16(n))
		return err
	case *array.Int32Builder:
		n, err := integer(v, 32)
		b.Append(int32(n))
		return err
	case *array.Int64Builder:
		n, err := integer(v, 64)
		b.Append(n)
		return err
	case *array.Float32Builder:
		f, err := number(v, t)
		b.Append(float32(f))
		return err
	case *array.Float64Builder:
		f, err := number(v, t)
		b.Append(f)
		return err
	case *array.Decimal128Builder:
		n, ok := new(big.Int).SetString(strings.Replace(v.(string), ".", "", 1), 10)
		if !ok {
			return fmt.Errorf("%v is no decimal", v)
		}
		b.Append(decimal128.FromBigInt(n))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		x, err := hex.DecodeString(v.(string))
		b.Append(x)
		return err
	case *array.Date32Builder:
		at, err := time.Parse(time.DateOnly, v.(string))
		b.Append(arrow.Date32(floorDiv(at.Unix(), 86400)))
		return err
	case *array.Time32Builder:
		at, err := time.Parse(time.TimeOnly, v.(string))
		b.Append(arrow.Time32(at.Sub(at.Truncate(24 * time.Hour)).Milliseconds()))
		return err
	case *array.TimestampBuilder:
		at, err := time.Parse(time.DateTime, strings.TrimSuffix(v.(string), "Z"))
		b.Append(ticks(at, unitOf(t)))
		return err
	default:
		return appendNested(b, v, t)
	}
	return nil
}

func appendNested(b array.Builder, v any, t *dataType) error {
	switch b := b.(type) {
	case *array.MapBuilder: // before the list, which it is built on
		b.Append(true)
		for _, x := range v.([]any) {
			pair := x.([]any)
			if err := appendValue(b.KeyBuilder(), pair[0], t.key); err != nil {
				return err
			}
			if err := appendValue(b.ItemBuilder(), pair[1], t.elem); err != nil {
				return err
			}
		}
	case *array.ListBuilder:
		b.Append(true)
		for _, x := range v.([]any) {
			if err := appendValue(b.ValueBuilder(), x, t.elem); err != nil {
				return err
			}
		}
	case *array.StructBuilder:
		b.Append(true)
		members := v.(map[string]any)
		for i, c := range t.children {
			if err := appendValue(b.FieldBuilder(i), members[t.names[i]], c); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("no way to append %v to a %T", v, b)
	}
	return nil
}

func integer(v any, bits int) (int64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%v is no integer", v)
	}
	return strconv.ParseInt(n.String(), 10, bits)
}

func ticks(at time.Time, unit arrow.TimeUnit) arrow.Timestamp {
	switch unit {
	case arrow.Millisecond:
		return arrow.Timestamp(at.UnixMilli())
	case arrow.Microsecond:
		return arrow.Timestamp(at.UnixMicro())
	}
	return arrow.Timestamp(at.UnixNano())
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Lines turns an Arrow batch of the schema's columns, found by name, into rows.
func Lines(s Schema, batch arrow.RecordBatch) ([]string, error) {
	types, err := s.types()
	if err != nil {
		return nil, err
	}
	columns := make([]arrow.Array, len(types))
	for i, f := range s.Fields {
		at := batch.Schema().FieldIndices(f.Name)
		if len(at) != 1 {
			return nil, fmt.Errorf("column %s is %d times in the batch", f.Name, len(at))
		}
		columns[i] = batch.Column(at[0])
	}
	lines := make([]string, batch.NumRows())
	for r := range lines {
		var b strings.Builder
		b.WriteByte('{')
		for i, f := range s.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			v, err := notation(columns[i], r, types[i])
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", f.Name, err)
			}
			fmt.Fprintf(&b, "%s:%s", text(f.Name), text(v))
		}
		b.WriteByte('}')
		lines[r] = b.String()
	}
	return lines, nil
}

func notation(a arrow.Array, i int, t *dataType) (any, error) {
	if a.IsNull(i) {
		return nil, nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i), nil
	case *array.Int8:
		return a.Value(i), nil
	case *array.Int16:
		return a.Value(i), nil
	case *array.Int32:
		return a.Value(i), nil
	case *array.Int64:
		return a.Value(i), nil
	case *array.Float32:
		return floatNotation(float64(a.Value(i)), 32), nil
	case *array.Float64:
		return floatNotation(a.Value(i), 64), nil
	case *array.Decimal128:
		return a.Value(i).ToString(int32(t.arg(1, 0))), nil
	case *array.String:
		return a.Value(i), nil
	case *array.Binary:
		return hex.EncodeToString(a.Value(i)), nil
	case *array.Date32:
		return time.Unix(int64(a.Value(i))*86400, 0).UTC().Format(time.DateOnly), nil
	case *array.Time32:
		at := time.UnixMilli(int64(a.Value(i))).UTC()
		return at.Format("15:04:05") + fraction(at, t.arg(0, 0)), nil
	case *array.Timestamp:
		at := a.Value(i).ToTime(a.DataType().(*arrow.TimestampType).Unit).UTC()
		s := at.Format(time.DateTime) + fraction(at, t.arg(0, 6))
		if t.root == "TIMESTAMP_LTZ" {
			s += "Z"
		}
		return s, nil
	}
	return nestedNotation(a, i, t)
}

func nestedNotation(a arrow.Array, i int, t *dataType) (any, error) {
	switch a := a.(type) {
	case *array.Map:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for j := from; j < to; j++ {
			k, err := notation(a.Keys(), int(j), t.key)
			if err != nil {
				return nil, err
			}
			v, err := notation(a.Items(), int(j), t.elem)
			if err != nil {
				return nil, err
			}
			out = append(out, []any{k, v})
		}
		return out, nil
	case *array.List:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for j := from; j < to; j++ {
			v, err := notation(a.ListValues(), int(j), t.elem)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case *array.Struct:
		out := map[string]any{}
		for c, name := range t.names {
			v, err := notation(a.Field(c), i, t.children[c])
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
		return out, nil
	}
	return nil, fmt.Errorf("no notation for %s", a.DataType())
}

func floatNotation(f float64, bits int) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, bits))
}

func fraction(at time.Time, precision int) string {
	if precision == 0 {
		return ""
	}
	return "." + fmt.Sprintf("%09d", at.Nanosecond())[:precision]
}
