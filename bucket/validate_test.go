package bucket

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

func refused(t *testing.T, table *Table, rec arrow.RecordBatch, kinds []int8, offsets []int64, words ...string) {
	t.Helper()
	p, err := NewPreparer(table).Prepare(rec, kinds, offsets)
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.Nil(t, p)
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
}

const threeRows = `[{"k":1,"a":1,"s":"x"},{"k":2,"a":null,"s":"y"},{"k":3,"a":3,"s":null}]`

func TestRowKindsAndOffsetsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name    string
		append  bool
		kinds   []int8
		offsets []int64
		words   []string
	}{
		{"too few kinds", false, []int8{0, 1}, nil, []string{"2 row kinds for 3 rows"}},
		{"too many kinds", false, []int8{0, 1, 2, 3}, nil, []string{"4 row kinds for 3 rows"}},
		{"empty kinds", false, []int8{}, nil, []string{"0 row kinds"}},
		{"unknown kind", false, []int8{0, 4, 0}, nil, []string{"row 1", "row kind 4"}},
		{"negative kind", false, []int8{0, 0, -1}, nil, []string{"row 2", "row kind -1"}},
		{"delete in an append table", true, []int8{0, 0, 3}, nil, []string{"row 2", "without primary key"}},
		{"update in an append table", true, []int8{2, 0, 0}, nil, []string{"row 0", "without primary key"}},
		{"too few offsets", false, nil, []int64{1}, []string{"1 offsets for 3 rows"}},
		{"repeated offset", false, nil, []int64{1, 2, 2}, []string{"row 2", "offset 2"}},
		{"descending offset", true, nil, []int64{5, 4, 6}, []string{"row 1", "offset 4"}},
		{"negative offset", false, nil, []int64{-1, 0, 1}, []string{"row 0", "negative"}},
		{"last possible offset", false, nil, []int64{0, 1, math.MaxInt64}, []string{"row 2", "no successor"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := keyed(t)
			if c.append {
				table = plain(t)
			}
			refused(t, table, record(t, table.ArrowSchema(), threeRows), c.kinds, c.offsets, c.words...)
		})
	}
}

func TestAcceptedKinds(t *testing.T) {
	p := prepare(t, keyed(t), threeRows, []int8{0, 0, 0}, nil)
	require.False(t, p.Parts[0].packed.kinds, "kinds that are all +I take no memory")
	p = prepare(t, keyed(t), threeRows, []int8{1, 2, 3}, nil)
	require.True(t, p.Parts[0].packed.kinds)
	prepare(t, plain(t), threeRows, []int8{0, 0, 0}, nil)
}

func TestRecordLayoutIsChecked(t *testing.T) {
	table := keyed(t)
	k := arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64}
	a := arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}
	s := arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}
	as := func(f arrow.Field, dt arrow.DataType) arrow.Field { f.Type = dt; return f }
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for _, c := range []struct {
		name   string
		fields []arrow.Field
		words  []string
	}{
		{"missing column", []arrow.Field{k, a}, []string{"no column s"}},
		{"unknown column", []arrow.Field{k, a, s, {Name: "z", Type: arrow.PrimitiveTypes.Int8}}, []string{"column z"}},
		{"column named twice", []arrow.Field{k, a, s, k}, []string{"2 columns named k"}},
		{"name in other case", []arrow.Field{{Name: "K", Type: k.Type}, a, s}, []string{"no column k"}},
		{"int32 for int64", []arrow.Field{as(k, arrow.PrimitiveTypes.Int32), a, s}, []string{"column k", "int32", "int64"}},
		{"large strings", []arrow.Field{k, a, as(s, arrow.BinaryTypes.LargeString)}, []string{"column s", "large_utf8", "utf8"}},
		{"string views", []arrow.Field{k, a, as(s, arrow.BinaryTypes.StringView)}, []string{"column s", "string_view", "utf8"}},
		{"binary for strings", []arrow.Field{k, a, as(s, arrow.BinaryTypes.Binary)}, []string{"column s", "binary", "utf8"}},
		{"dictionary", []arrow.Field{k, a, as(s, dictionary)}, []string{"column s", "dictionary", "utf8"}},
		{"null type", []arrow.Field{k, as(a, arrow.Null), s}, []string{"column a", "null", "int32"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, table, array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(c.fields, nil)).NewRecordBatch(), nil, nil, c.words...)
		})
	}
	refused(t, table, nil, nil, nil, "nil")
}

func TestUnitsZonesAndScalesAreChecked(t *testing.T) {
	table := newTable(t, tableSpec{fields: []schema.Field{
		field("t3", schema.Type{Kind: schema.Timestamp, Prec: 3, Nullable: true}),
		field("z6", schema.Type{Kind: schema.TimestampLTZ, Prec: 6, Nullable: true}),
		field("d", schema.Type{Kind: schema.Decimal, Prec: 5, Scale: 2, Nullable: true}),
	}})
	for _, c := range []struct {
		column string
		dt     arrow.DataType
	}{
		{"t3", &arrow.TimestampType{Unit: arrow.Microsecond}},
		{"t3", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
		{"z6", &arrow.TimestampType{Unit: arrow.Microsecond}},
		{"z6", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Oslo"}},
		{"d", &arrow.Decimal128Type{Precision: 5, Scale: 3}},
		{"d", &arrow.Decimal128Type{Precision: 6, Scale: 2}},
	} {
		var fields []arrow.Field
		for _, f := range table.ArrowSchema().Fields() {
			if f.Name == c.column {
				f.Type = c.dt
			}
			fields = append(fields, f)
		}
		rec := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil)).NewRecordBatch()
		refused(t, table, rec, nil, nil, "column "+c.column, c.dt.String())
	}
}

func TestColumnsMayComeInAnyOrder(t *testing.T) {
	table := keyed(t)
	f := table.ArrowSchema().Fields()
	rec := record(t, arrow.NewSchema([]arrow.Field{f[2], f[0], f[1]}, nil), threeRows)
	p, err := NewPreparer(table).Prepare(rec, nil, nil)
	require.NoError(t, err)
	s := newState(table)
	require.NoError(t, s.Append(p.Parts[0], 1))
	require.Equal(t, []string{"0 0 1|1|x", "1 0 2|(null)|y", "2 0 3|3|(null)"}, visible(t, s.View(), 0, 1))
}

func TestValuesAreChecked(t *testing.T) {
	day := func(d int32) func(array.Builder) {
		return func(b array.Builder) { b.(*array.Date32Builder).Append(arrow.Date32(d)) }
	}
	stamp := func(v int64) func(array.Builder) {
		return func(b array.Builder) { b.(*array.TimestampBuilder).Append(arrow.Timestamp(v)) }
	}
	clock := func(v int32) func(array.Builder) {
		return func(b array.Builder) { b.(*array.Time32Builder).Append(arrow.Time32(v)) }
	}
	amount := func(v int64) func(array.Builder) {
		return func(b array.Builder) { b.(*array.Decimal128Builder).Append(decimal128.FromI64(v)) }
	}
	millis := schema.Type{Kind: schema.Timestamp, Prec: 3, Nullable: true}
	micros := schema.Type{Kind: schema.Timestamp, Prec: 6, Nullable: true}
	nanos := schema.Type{Kind: schema.Timestamp, Prec: 9, Nullable: true}
	decimal := schema.Type{Kind: schema.Decimal, Prec: 5, Scale: 2, Nullable: true}
	wide := schema.Type{Kind: schema.Decimal, Prec: 38, Nullable: true}
	for _, c := range []struct {
		name string
		typ  schema.Type
		put  func(array.Builder)
		bad  string
	}{
		{"first day", nullable(schema.Date), day(-719162), ""},
		{"before the first day", nullable(schema.Date), day(-719163), "a date of the years 0001 to 9999"},
		{"last day", nullable(schema.Date), day(2932896), ""},
		{"year 10000", nullable(schema.Date), day(2932897), "a date of the years 0001 to 9999"},
		{"midnight", nullable(schema.Time), clock(0), ""},
		{"last millisecond", nullable(schema.Time), clock(86399999), ""},
		{"24:00", nullable(schema.Time), clock(86400000), "a time of day"},
		{"negative time", nullable(schema.Time), clock(-1), "a time of day"},
		{"first milli", millis, stamp(-62135596800000), ""},
		{"before the first milli", millis, stamp(-62135596800001), "a timestamp"},
		{"last milli", millis, stamp(253402300799999), ""},
		{"behind the last milli", millis, stamp(253402300800000), "a timestamp"},
		{"behind the last micro", micros, stamp(253402300800000000), "a timestamp"},
		{"last micro", micros, stamp(253402300799999999), ""},
		{"any nano", nanos, stamp(math.MinInt64), ""},
		{"99999 as DECIMAL(5,2)", decimal, amount(99999), ""},
		{"100000 as DECIMAL(5,2)", decimal, amount(100000), "a decimal of 5 digits"},
		{"-100000 as DECIMAL(5,2)", decimal, amount(-100000), "a decimal of 5 digits"},
		{"beyond 38 digits", wide, func(b array.Builder) {
			b.(*array.Decimal128Builder).Append(decimal128.New(math.MaxInt64, math.MaxUint64))
		}, "a decimal of 38 digits"},
		{"null in a NOT NULL column", notNull(schema.Int), func(b array.Builder) { b.AppendNull() }, "NOT NULL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := newTable(t, tableSpec{fields: []schema.Field{field("v", c.typ)}})
			b := array.NewRecordBuilder(memory.DefaultAllocator, table.ArrowSchema())
			if c.typ.Nullable {
				b.Field(0).AppendNull() // what lies under a null is not looked at
			} else {
				b.Field(0).AppendEmptyValue()
			}
			c.put(b.Field(0))
			rec := b.NewRecordBatch()
			if c.bad != "" {
				refused(t, table, rec, nil, nil, "column v, row 1", c.bad)
				return
			}
			_, err := NewPreparer(table).Prepare(rec, nil, nil)
			require.NoError(t, err)
		})
	}
}

func TestNestedValuesAreChecked(t *testing.T) {
	list := func(elem schema.Type) schema.Type {
		return schema.Type{Kind: schema.Array, Nullable: true, Elem: &elem}
	}
	date := nullable(schema.Date)
	member := schema.Type{Kind: schema.Row, Nullable: true, Fields: []schema.Field{{ID: 7, Name: "d", Type: notNull(schema.Int)}}}
	str, num := text(false), nullable(schema.Date)
	dict := schema.Type{Kind: schema.Map, Nullable: true, Key: &str, Elem: &num}
	for _, c := range []struct {
		name string
		typ  schema.Type
		json string
		bad  []string
	}{
		{"date in a list", list(date), `[{"v":["2024-01-01"]},{"v":null},{"v":["2024-01-01","9999-12-31"]}]`, nil},
		{"null element", list(notNull(schema.Int)), `[{"v":[1]},{"v":[2,null]}]`, []string{"row 1", "v.element", "NOT NULL"}},
		{"null member", member, `[{"v":null},{"v":{"d":1}},{"v":{"d":null}}]`, []string{"row 2", "v.d", "NOT NULL"}},
		{"null row with a NOT NULL member", member, `[{"v":null},{"v":{"d":1}}]`, nil},
		{"map", dict, `[{"v":[{"key":"x","value":"2024-01-01"}]},{"v":null}]`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := newTable(t, tableSpec{fields: []schema.Field{field("v", c.typ)}})
			// Readers of JSON do not enforce what a field says of nulls.
			rec := record(t, table.ArrowSchema(), c.json)
			if c.bad != nil {
				refused(t, table, rec, nil, nil, c.bad...)
				return
			}
			_, err := NewPreparer(table).Prepare(rec, nil, nil)
			require.NoError(t, err)
		})
	}
	t.Run("date beyond its range in a list", func(t *testing.T) {
		table := newTable(t, tableSpec{fields: []schema.Field{field("v", list(date))}})
		b := array.NewRecordBuilder(memory.DefaultAllocator, table.ArrowSchema())
		l := b.Field(0).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Date32Builder).Append(1)
		l.AppendNull()
		l.Append(true)
		l.ValueBuilder().(*array.Date32Builder).AppendValues([]arrow.Date32{2, 2932897}, nil)
		refused(t, table, b.NewRecordBatch(), nil, nil, "v.element, row 2", "years 0001 to 9999")
	})
}

// TestMalformedArraysAreRefused hands in arrays whose buffers do not hold what
// they claim.
func TestMalformedArraysAreRefused(t *testing.T) {
	table := plain(t)
	longs := memory.NewBufferBytes(arrow.Int64Traits.CastToBytes([]int64{1, 2, 3}))
	ints := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{1, 2, 3}))
	good := func() (k, a arrow.Array) {
		return array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Int64, 3, []*memory.Buffer{nil, longs}, nil, 0, 0)),
			array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Int32, 3, []*memory.Buffer{nil, ints}, nil, 0, 0))
	}
	strs := func(positions []int32, data string) arrow.Array {
		d := array.NewData(arrow.BinaryTypes.String, 3, []*memory.Buffer{
			nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 0, 0, 0})), memory.NewBufferBytes([]byte(data)),
		}, nil, 0, 0)
		a := array.MakeFromData(d)
		// The constructor checks some of this; the memory may change behind it.
		copy(arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes()), positions)
		return a
	}
	for _, c := range []struct {
		name      string
		positions []int32
		word      string
	}{
		{"descending positions", []int32{0, 2, 1, 3}, "goes back"},
		{"negative position", []int32{-1, 0, 1, 3}, "goes back"},
		{"behind the data", []int32{0, 1, 2, 4}, "behind the end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, a := good()
			rec := array.NewRecordBatch(table.ArrowSchema(), []arrow.Array{k, a, strs(c.positions, "abc")}, 3)
			refused(t, table, rec, nil, nil, "column s", "malformed", c.word)
		})
	}
	t.Run("short validity bitmap", func(t *testing.T) {
		values := make([]int32, 20)
		a := array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Int32, 20, []*memory.Buffer{
			memory.NewBufferBytes([]byte{0xff}), memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(values)),
		}, nil, 1, 0))
		one := newTable(t, tableSpec{fields: []schema.Field{field("a", nullable(schema.Int))}})
		refused(t, one, array.NewRecordBatch(one.ArrowSchema(), []arrow.Array{a}, 20), nil, nil, "column a", "validity bitmap")
	})
	t.Run("list positions behind the child", func(t *testing.T) {
		elem := nullable(schema.Int)
		one := newTable(t, tableSpec{fields: []schema.Field{field("l", schema.Type{Kind: schema.Array, Nullable: true, Elem: &elem})}})
		dt := one.ArrowSchema().Field(0).Type
		child := array.NewData(arrow.PrimitiveTypes.Int32, 3, []*memory.Buffer{nil, ints}, nil, 0, 0)
		a := array.MakeFromData(array.NewData(dt, 2, []*memory.Buffer{
			nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 2, 9})),
		}, []arrow.ArrayData{child}, 0, 0))
		refused(t, one, array.NewRecordBatch(one.ArrowSchema(), []arrow.Array{a}, 2), nil, nil, "column l", "behind the end")
	})
}

func TestPartitionValuesAreChecked(t *testing.T) {
	byText := newTable(t, tableSpec{
		fields:    []schema.Field{field("dt", text(true)), field("v", nullable(schema.Int))},
		partition: []string{"dt"},
	})
	for _, c := range []struct{ value, word string }{
		{`""`, "share the directory"}, {`"  "`, "share the directory"}, {`"\t"`, "share the directory"},
		{`"__DEFAULT_PARTITION__"`, "share the directory"},
		{`"a\u0000b"`, "NUL"},
		{`"` + string(make300()) + `"`, "bytes"},
	} {
		rec := record(t, byText.ArrowSchema(), `[{"dt":"x","v":1},{"dt":`+c.value+`,"v":2}]`)
		refused(t, byText, rec, nil, nil, "row 1", c.word)
	}
	p := prepare(t, byText, `[{"dt":null,"v":1},{"dt":"a b/c","v":2}]`, nil, nil)
	require.Equal(t, ID{"dt=__DEFAULT_PARTITION__", 0}, p.Parts[0].ID)
	require.Equal(t, ID{"dt=a b%2Fc", 0}, p.Parts[1].ID)
	require.Equal(t, "a b/c", p.Parts[1].PartitionKVs[0].Value)

	byFloat := newTable(t, tableSpec{
		fields:    []schema.Field{field("f", nullable(schema.Double)), field("v", nullable(schema.Int))},
		partition: []string{"f"},
	})
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, byFloat.ArrowSchema())
		b.Field(0).(*array.Float64Builder).Append(f)
		b.Field(1).AppendNull()
		refused(t, byFloat, b.NewRecordBatch(), nil, nil, "column f, row 0")
	}
}

func make300() []byte {
	b := make([]byte, 300)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

func TestARecordWithoutRowsGivesNoParts(t *testing.T) {
	p := prepare(t, keyed(t), `[]`, nil, nil)
	require.Equal(t, &Prepared{}, p)
	p = prepare(t, keyed(t), `[]`, []int8{}, []int64{})
	require.Empty(t, p.Parts)
}

func TestUnknownBucketModesAreRefused(t *testing.T) {
	s, err := schema.New([]schema.Field{field("k", notNull(schema.Int))}, nil, []string{"k"}, map[string]string{"bucket": "2"}, 0)
	require.NoError(t, err)
	for _, n := range []int{-1, -2, 0} {
		_, err := NewTable(s, schema.Options{Bucket: n})
		require.ErrorIs(t, err, errs.ErrUnsupported)
	}
}
