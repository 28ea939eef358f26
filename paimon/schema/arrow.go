package schema

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/internal/errs"
)

// FieldIDKey is the Arrow metadata key that carries field ids; the Parquet
// writer and reader of arrow-go know it.
const FieldIDKey = "PARQUET:field_id"

// ArrowType maps a type to Arrow:
//
//	BOOLEAN bool               DECIMAL(p,s) decimal128(p,s)   TIME(p) time32[ms]
//	TINYINT..BIGINT int8..64   CHAR, VARCHAR utf8             DATE date32
//	FLOAT, DOUBLE float32, 64  BINARY, VARBINARY binary       ROW struct
//	TIMESTAMP(p) timestamp: ms for p <= 3, us for p <= 6, ns above; LTZ the same in zone UTC
//	ARRAY list<element>        MAP map<key, value>            MULTISET map<element, int32>
//
// The elements of the outermost collection carry no ids, because these depend on
// the column; use ArrowField for a column. ErrUnsupported for VARIANT, BLOB,
// VECTOR, GEOMETRY and GEOGRAPHY.
func ArrowType(t Type) (arrow.DataType, error) { return arrowType(t, noField, 0) }

// noField stands for the id of the enclosing field where there is none.
const noField = -1

// ArrowField maps a column to Arrow. Its metadata carries the field id, and so do
// ROW members and, by the formula of FORMAT §2.3, elements, keys and values. A
// type that ArrowType refuses becomes the null type, which no data matches.
func ArrowField(f Field) arrow.Field {
	dt, err := arrowType(f.Type, f.ID, 0)
	if err != nil {
		dt = arrow.Null
	}
	return arrow.Field{Name: f.Name, Type: dt, Nullable: f.Type.Nullable, Metadata: idMetadata(f.ID)}
}

// ArrowSchema maps columns to an Arrow schema.
func ArrowSchema(fields []Field) *arrow.Schema {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = ArrowField(f)
	}
	return arrow.NewSchema(out, nil)
}

func idMetadata(id int) arrow.Metadata {
	return arrow.NewMetadata([]string{FieldIDKey}, []string{strconv.Itoa(id)})
}

// arrowType maps t; field is the id of the nearest enclosing named field or
// noField, depth the nesting below it.
func arrowType(t Type, field, depth int) (arrow.DataType, error) {
	switch t.Kind {
	case Boolean:
		return arrow.FixedWidthTypes.Boolean, nil
	case TinyInt:
		return arrow.PrimitiveTypes.Int8, nil
	case SmallInt:
		return arrow.PrimitiveTypes.Int16, nil
	case Int:
		return arrow.PrimitiveTypes.Int32, nil
	case BigInt:
		return arrow.PrimitiveTypes.Int64, nil
	case Float:
		return arrow.PrimitiveTypes.Float32, nil
	case Double:
		return arrow.PrimitiveTypes.Float64, nil
	case Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Prec), Scale: int32(t.Scale)}, nil
	case Char, VarChar:
		return arrow.BinaryTypes.String, nil
	case Binary, VarBinary:
		return arrow.BinaryTypes.Binary, nil
	case Date:
		return arrow.FixedWidthTypes.Date32, nil
	case Time:
		return arrow.FixedWidthTypes.Time32ms, nil
	case Timestamp:
		return &arrow.TimestampType{Unit: timeUnit(t.Prec)}, nil
	case TimestampLTZ:
		return &arrow.TimestampType{Unit: timeUnit(t.Prec), TimeZone: "UTC"}, nil
	case Array, Map, Multiset:
		return arrowCollection(t, field, depth+1)
	case Row:
		members := make([]arrow.Field, len(t.Fields))
		for i, f := range t.Fields {
			dt, err := arrowType(f.Type, f.ID, 0)
			if err != nil {
				return nil, err
			}
			members[i] = arrow.Field{Name: f.Name, Type: dt, Nullable: f.Type.Nullable, Metadata: idMetadata(f.ID)}
		}
		return arrow.StructOf(members...), nil
	}
	return nil, errs.Unsupported("type %s", t.Kind)
}

func timeUnit(prec int) arrow.TimeUnit {
	switch {
	case prec <= 3:
		return arrow.Millisecond
	case prec <= 6:
		return arrow.Microsecond
	}
	return arrow.Nanosecond
}

// arrowCollection maps a collection whose elements are at the given depth.
func arrowCollection(t Type, field, depth int) (arrow.DataType, error) {
	part := func(t Type, name string, nullable bool, id int) (arrow.Field, error) {
		dt, err := arrowType(t, field, depth)
		f := arrow.Field{Name: name, Type: dt, Nullable: nullable}
		if field != noField {
			f.Metadata = idMetadata(id)
		}
		return f, err
	}
	switch t.Kind {
	case Array:
		elem, err := part(*t.Elem, "element", t.Elem.Nullable, ElementID(field, depth))
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(elem), nil
	case Multiset:
		t = Type{Kind: Map, Key: t.Elem, Elem: &Type{Kind: Int}}
	}
	// Arrow and Parquet know no null keys, whatever the Paimon type says.
	key, err := part(*t.Key, "key", false, MapKeyID(field, depth))
	if err != nil {
		return nil, err
	}
	val, err := part(*t.Elem, "value", t.Elem.Nullable, ElementID(field, depth))
	if err != nil {
		return nil, err
	}
	return arrow.MapOfFields(key, val), nil
}

// FromArrow maps an Arrow schema to columns. Exactly the types that ArrowType
// produces are accepted, so that data of the schema fits the table as it is; the
// precisions are DECIMAL's own, TIME(3), and 3, 6 or 9 for timestamps. Ids come
// from PARQUET:field_id metadata when every named field has one and they differ,
// otherwise they are assigned depth-first from 0. ErrInvalid names the column.
func FromArrow(s *arrow.Schema) ([]Field, error) {
	if s == nil {
		return nil, errs.Invalid("the Arrow schema is nil")
	}
	fields, err := fromArrowFields(s.Fields(), 0)
	if err != nil {
		return nil, err
	}
	known := true
	walkFields(fields, func(f *Field) { known = known && f.ID >= 0 && f.ID <= maxFieldID })
	if !known {
		walkFields(fields, func(f *Field) { f.ID = 0 })
	}
	numberFields(fields)
	return fields, nil
}

func fromArrowFields(in []arrow.Field, depth int) ([]Field, error) {
	out := make([]Field, len(in))
	for i, f := range in {
		t, err := fromArrowType(f.Type, depth)
		if err != nil {
			return nil, errs.Invalid("column %q: %v", f.Name, err)
		}
		t.Nullable = f.Nullable
		out[i] = Field{ID: arrowID(f.Metadata), Name: f.Name, Type: t}
	}
	return out, nil
}

// arrowID is the field id of the metadata, -1 when there is none.
func arrowID(m arrow.Metadata) int {
	text, ok := m.GetValue(FieldIDKey)
	if !ok {
		return -1
	}
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return -1
	}
	return int(id)
}

func fromArrowType(dt arrow.DataType, depth int) (Type, error) {
	if depth > MaxTypeDepth {
		return Type{}, errs.Invalid("type nests deeper than %d levels", MaxTypeDepth)
	}
	t := Type{Nullable: true}
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		t.Kind = Boolean
	case *arrow.Int8Type:
		t.Kind = TinyInt
	case *arrow.Int16Type:
		t.Kind = SmallInt
	case *arrow.Int32Type:
		t.Kind = Int
	case *arrow.Int64Type:
		t.Kind = BigInt
	case *arrow.Float32Type:
		t.Kind = Float
	case *arrow.Float64Type:
		t.Kind = Double
	case *arrow.StringType:
		t.Kind, t.Length = VarChar, MaxLength
	case *arrow.BinaryType:
		t.Kind, t.Length = VarBinary, MaxLength
	case *arrow.Date32Type:
		t.Kind = Date
	case *arrow.Decimal128Type:
		t.Kind, t.Prec, t.Scale = Decimal, int(dt.Precision), int(dt.Scale)
		return t, t.validate(depth)
	case *arrow.Time32Type:
		if dt.Unit != arrow.Millisecond {
			return Type{}, errs.Invalid("Arrow type %s; use time32[ms]", dt)
		}
		t.Kind, t.Prec = Time, 3
	case *arrow.TimestampType:
		return fromArrowTimestamp(dt)
	case *arrow.MapType:
		return fromArrowMap(dt, depth)
	case *arrow.ListType:
		elem, err := fromArrowType(dt.Elem(), depth+1)
		elem.Nullable = dt.ElemField().Nullable
		t.Kind, t.Elem = Array, &elem
		return t, err
	case *arrow.StructType:
		fields, err := fromArrowFields(dt.Fields(), depth+1)
		t.Kind, t.Fields = Row, fields
		return t, err
	default:
		return Type{}, errs.Invalid("Arrow type %s has no place in a table", dt)
	}
	return t, nil
}

func fromArrowTimestamp(dt *arrow.TimestampType) (Type, error) {
	t := Type{Kind: Timestamp, Nullable: true}
	switch dt.TimeZone {
	case "":
	case "UTC":
		t.Kind = TimestampLTZ
	default:
		return Type{}, errs.Invalid("Arrow type %s; use the time zone UTC or none", dt)
	}
	switch dt.Unit {
	case arrow.Millisecond:
		t.Prec = 3
	case arrow.Microsecond:
		t.Prec = 6
	case arrow.Nanosecond:
		t.Prec = 9
	default:
		return Type{}, errs.Invalid("Arrow type %s; use milliseconds, microseconds or nanoseconds", dt)
	}
	return t, nil
}

func fromArrowMap(dt *arrow.MapType, depth int) (Type, error) {
	key, err := fromArrowType(dt.KeyType(), depth+1)
	if err != nil {
		return Type{}, err
	}
	val, err := fromArrowType(dt.ItemType(), depth+1)
	key.Nullable = false
	val.Nullable = dt.ItemField().Nullable
	return Type{Kind: Map, Nullable: true, Key: &key, Elem: &val}, err
}
