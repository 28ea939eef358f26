package schema

import (
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
)

func TestArrowTypes(t *testing.T) {
	for text, want := range map[string]arrow.DataType{
		"BOOLEAN": arrow.FixedWidthTypes.Boolean, "TINYINT": arrow.PrimitiveTypes.Int8,
		"SMALLINT": arrow.PrimitiveTypes.Int16, "INT": arrow.PrimitiveTypes.Int32, "BIGINT": arrow.PrimitiveTypes.Int64,
		"FLOAT": arrow.PrimitiveTypes.Float32, "DOUBLE": arrow.PrimitiveTypes.Float64,
		"DECIMAL(20, 3)": &arrow.Decimal128Type{Precision: 20, Scale: 3}, "CHAR(3)": arrow.BinaryTypes.String,
		"STRING": arrow.BinaryTypes.String, "BINARY(2)": arrow.BinaryTypes.Binary, "BYTES": arrow.BinaryTypes.Binary,
		"DATE": arrow.FixedWidthTypes.Date32, "TIME(0)": arrow.FixedWidthTypes.Time32ms,
		"TIMESTAMP(0)":     &arrow.TimestampType{Unit: arrow.Millisecond},
		"TIMESTAMP(4)":     &arrow.TimestampType{Unit: arrow.Microsecond},
		"TIMESTAMP(9)":     &arrow.TimestampType{Unit: arrow.Nanosecond},
		"TIMESTAMP_LTZ(3)": arrow.FixedWidthTypes.Timestamp_ms, "TIMESTAMP_LTZ(6)": arrow.FixedWidthTypes.Timestamp_us,
		"ARRAY<INT NOT NULL>": arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Int32}),
		"MAP<STRING, INT>":    arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32),
		"MULTISET<STRING>": arrow.MapOfFields(arrow.Field{Name: "key", Type: arrow.BinaryTypes.String},
			arrow.Field{Name: "value", Type: arrow.PrimitiveTypes.Int32}),
		"ROW<a INT NOT NULL, b DATE>": arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32},
			arrow.Field{Name: "b", Type: arrow.FixedWidthTypes.Date32, Nullable: true}),
	} {
		typ, err := ParseType(text)
		require.NoError(t, err)
		got, err := ArrowType(typ)
		require.NoError(t, err)
		require.True(t, arrow.TypeEqual(want, got), "%s: %s, not %s", text, got, want)
	}
	for _, text := range []string{"VARIANT", "BLOB", "ARRAY<VECTOR<FLOAT, 2>>", "GEOMETRY", "ROW<g GEOGRAPHY>", "MAP<BLOB, INT>", "MAP<INT, BLOB>"} {
		typ, err := ParseType(text)
		require.NoError(t, err)
		_, err = ArrowType(typ)
		require.ErrorIs(t, err, errs.ErrUnsupported)
		require.Equal(t, arrow.Null, ArrowField(Field{Name: "x", Type: typ}).Type)
	}
}

func TestArrowFieldIDs(t *testing.T) {
	id := func(f arrow.Field) int {
		text, ok := f.Metadata.GetValue("PARQUET:field_id")
		require.True(t, ok)
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	// ARRAY<MAP<INT, ARRAY<INT>>> has the depths 1, 2, 2, 3 below one column.
	f := fields(t, "a", "ARRAY<MAP<INT, ARRAY<INT>>>")[0]
	f.ID = 7
	a := ArrowField(f)
	require.Equal(t, 7, id(a))
	elem := a.Type.(*arrow.ListType).ElemField()
	require.Equal(t, 536870911+1024*7+1, id(elem))
	entry := elem.Type.(*arrow.MapType)
	require.Equal(t, 536870911-1024*7-2, id(entry.KeyField()))
	require.Equal(t, 536870911+1024*7+2, id(entry.ItemField()))
	require.Equal(t, 536870911+1024*7+3, id(entry.ItemField().Type.(*arrow.ListType).ElemField()))

	// Members of a ROW have their own ids and restart the depth.
	f = fields(t, "r", "ARRAY<ROW<x ARRAY<INT>>>")[0]
	f.Type.Elem.Fields[0].ID = 1
	row := ArrowField(f).Type.(*arrow.ListType).Elem().(*arrow.StructType)
	require.Equal(t, 1, id(row.Field(0)))
	require.Equal(t, 536870911+1024*1+1, id(row.Field(0).Type.(*arrow.ListType).ElemField()))
}

func TestFromArrowReversesArrowSchema(t *testing.T) {
	s, err := New(fields(t, "a", "BOOLEAN NOT NULL", "b", "TINYINT", "c", "SMALLINT", "d", "INT", "e", "BIGINT", "f", "FLOAT",
		"g", "DOUBLE", "h", "DECIMAL(5, 2)", "i", "STRING", "j", "BYTES", "k", "DATE", "l", "TIME(3)", "m", "TIMESTAMP(3)",
		"n", "TIMESTAMP(6)", "o", "TIMESTAMP(9)", "p", "TIMESTAMP_LTZ(3)", "q", "ARRAY<INT NOT NULL>",
		"r", "MAP<STRING NOT NULL, ROW<x INT, y ARRAY<DATE>>>"), nil, nil, nil, 0)
	require.NoError(t, err)
	s.Fields[0].ID = 99
	back, err := FromArrow(ArrowSchema(s.Fields))
	require.NoError(t, err)
	require.Equal(t, s.Fields, back)

	bare := arrow.NewSchema([]arrow.Field{
		{Name: "x", Type: arrow.StructOf(arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int8})},
		{Name: "z", Type: arrow.PrimitiveTypes.Int8, Metadata: idMetadata(5)},
	}, nil)
	back, err = FromArrow(bare)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2}, []int{back[0].ID, back[0].Type.Fields[0].ID, back[1].ID})
	require.Equal(t, "ROW<`y` TINYINT NOT NULL> NOT NULL", back[0].Type.String())
}

func TestFromArrowRefusesWhatWouldNotFit(t *testing.T) {
	_, err := FromArrow(nil)
	require.ErrorIs(t, err, errs.ErrInvalid)
	for _, dt := range []arrow.DataType{
		arrow.Null, arrow.PrimitiveTypes.Uint8, arrow.BinaryTypes.LargeString, arrow.FixedWidthTypes.Date64,
		arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Timestamp_s,
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Oslo"}, &arrow.Decimal256Type{Precision: 5},
		&arrow.Decimal128Type{Precision: 5, Scale: -1}, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8),
		&arrow.FixedSizeBinaryType{ByteWidth: 3}, arrow.ListOf(arrow.PrimitiveTypes.Uint16),
		arrow.MapOf(arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int8),
		arrow.MapOf(arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint16),
		arrow.StructOf(arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Uint64}),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	} {
		_, err := FromArrow(arrow.NewSchema([]arrow.Field{{Name: "col", Type: dt}}, nil))
		require.ErrorIs(t, err, errs.ErrInvalid, "%s", dt)
		require.ErrorContains(t, err, `"col"`)
	}
}
