package predicate

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseReadsWhatPeopleWrite(t *testing.T) {
	for text, want := range map[string]string{
		"city = 'Oslo' and n > 3 or x in (1,2) and y is not null and name like 'ab%'": "(city = 'Oslo' AND n > 3) OR (x IN (1, 2) AND y IS NOT NULL AND name LIKE 'ab%')",
		"not (a = 1)":                     "NOT a = 1",
		"NOT a = 1 AND b = 2":             "(NOT a = 1) AND b = 2",
		"a between 1 and 2.5e3":           "a >= 1 AND a <= 2.5e3",
		"a not between 1 and 2":           "NOT (a >= 1 AND a <= 2)",
		"a != -1":                         "a <> -1",
		"a == .5":                         "a = .5",
		"'it''s' = a":                     "a = 'it''s'",
		"3 < a":                           "a > 3",
		"`odd name`.`a``b` is null":       "`odd name.a``b` IS NULL",
		"r.x.y = true":                    "r.x.y = TRUE",
		"`null` = null":                   "`null` = NULL",
		"a not in ('x', NULL)":            "a NOT IN ('x', NULL)",
		"a not like 'x%'":                 "NOT a LIKE 'x%'",
		"a like 'xyz'":                    "a = 'xyz'",
		"a in ()":                         "a IN ()",
		"größe >= 1\tAND\n b<2":           "größe >= 1 AND b < 2",
		"((a = 1))":                       "a = 1",
		"a = 1 and (b = 2 and c = 3)":     "a = 1 AND b = 2 AND c = 3",
		"a like '%'":                      "a LIKE '%'",
		"a = 'x' or not b = 1 or c = 2.0": "a = 'x' OR (NOT b = 1) OR c = 2.0",
	} {
		p, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, p.String(), text)
		again, err := Parse(p.String())
		require.NoError(t, err, p.String())
		require.Equal(t, want, again.String())
	}
}

func TestParseNamesThePosition(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "position 1: expected a column name, found the end",
		"a":                         "position 2: expected a comparison after a, found the end",
		"a = ":                      "position 5: expected a literal, found the end",
		"a = b":                     "position 5: expected a literal, found the name b",
		"a = 'x":                    "position 5: a string is not closed",
		"a like '%x'":               "position 8: LIKE knows prefix patterns",
		"a like 'x_%'":              "position 8: LIKE knows prefix patterns",
		"a like 5":                  "position 8: expected a pattern in quotes",
		"(a = 1":                    "position 7: expected ), found the end",
		"a = 1 b = 2":               "position 7: expected AND, OR or the end, found b",
		`a = "b"`:                   "position 5: text stands in single quotes, a column's name in none or in backquotes",
		"a ; b":                     "position 3: the character ';' is not understood",
		"a is 5":                    "position 6: expected NULL, found 5",
		"a in (1":                   "position 8: expected ), found the end",
		"a. = 1":                    "position 3: a name ends in a dot",
		"1 = 1":                     "position 5: expected a column name, found 1",
		strings.Repeat("not ", 300): "nested deeper than 200",
	} {
		_, err := Parse(text)
		require.ErrorIs(t, err, errs.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a = 1", "not (a in ('x', null) or b like 'a%')", "`a``b`.c <> -1.5e-3", "a between 1 and 2", "1<=a", "a='"} {
		f.Add(s)
	}
	fields := []schema.Field{field("a", schema.BigInt), field("b", schema.VarChar), field("c", schema.Double)}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			require.ErrorIs(t, err, errs.ErrInvalid)
			return
		}
		again, err := Parse(p.String())
		require.NoError(t, err, p.String())
		require.Equal(t, p.String(), again.String())
		if b, err := Bind(p, fields); err == nil {
			b.Eval(func(string) arrow.Array { return nil }, 3)
		}
	})
}

func field(name string, k schema.Kind) schema.Field {
	return schema.Field{Name: name, Type: schema.Type{Kind: k, Nullable: true, Prec: 3, Scale: 1, Length: 10}}
}

var scalarFields = []schema.Field{
	field("bool", schema.Boolean), field("i8", schema.TinyInt), field("i16", schema.SmallInt), field("i32", schema.Int), field("i64", schema.BigInt),
	field("f32", schema.Float), field("f64", schema.Double), field("dec", schema.Decimal), field("str", schema.VarChar), field("bin", schema.VarBinary),
	field("date", schema.Date), field("time", schema.Time), field("ts", schema.Timestamp),
	{Name: "nano", Type: schema.Type{Kind: schema.TimestampLTZ, Prec: 9, Nullable: true}},
	{Name: "r", Type: schema.Type{Kind: schema.Row, Nullable: true, Fields: []schema.Field{field("x", schema.Int)}}},
}

func TestBindCastsLiteralsAndKeepsTheMeaning(t *testing.T) {
	for text, want := range map[string]string{
		"i32 = 3":           "i32 = 3",
		"i32 = 3.0":         "i32 = 3",
		"i32 = 3.5":         "i32 IN ()",
		"i32 <> 3.5":        "i32 NOT IN ()",
		"i32 < 3.5":         "i32 <= 3",
		"i32 <= -3.5":       "i32 <= -4",
		"i32 > 3.5":         "i32 > 3",
		"i32 >= -0.5":       "i32 > -1",
		"i32 > 3000000000":  "i32 IN ()",
		"i32 < 3e9":         "i32 NOT IN ()",
		"i32 >= -3e9":       "i32 NOT IN ()",
		"i8 in (1, 300, 2)": "i8 IN (1, 2)",
		"i64 = '12'":        "i64 = 12",
		"not i32 < 3.5":     "i32 > 3",
		"not (i8 = 1 and (i16 = 2 or not str like 'a%'))": "i8 <> 1 OR (i16 <> 2 AND str LIKE 'a%')",
		"not str like 'a%'":                      "NOT str LIKE 'a%'",
		"dec = 1.5":                              "dec = 1.5",
		"dec > 1.55":                             "dec > 1.5",
		"dec < 100":                              "dec NOT IN ()",
		"dec = '-0.1'":                           "dec = -0.1",
		"date = '2024-02-29'":                    "date = '2024-02-29'",
		"date > '2024-02-29 10:00'":              "date > '2024-02-29'",
		"date >= '1969-12-31'":                   "date >= '1969-12-31'",
		"time < '10:00:00.5'":                    "time < '10:00:00.5'",
		"ts >= '2024-01-02 03:04:05.1239'":       "ts > '2024-01-02 03:04:05.123'",
		"ts = '1969-12-31T23:59:59.999'":         "ts = '1969-12-31 23:59:59.999'",
		"nano = '2024-01-02 03:04:05.123456789'": "nano = '2024-01-02 03:04:05.123456789'",
		"nano = '2024-01-02 03:04:05+02:00'":     "nano = '2024-01-02 01:04:05'",
		"bool = 'TRUE'":                          "bool = TRUE",
		"f64 = 'NaN'":                            "f64 = 'NaN'",
		"f32 = 0.1":                              "f32 = 0.1",
		"r.x = 4":                                "r.x = 4",
		"r is null":                              "r IS NULL",
		"str = null":                             "str = NULL",
	} {
		p, err := Parse(text)
		require.NoError(t, err, text)
		b, err := Bind(p, scalarFields)
		require.NoError(t, err, text)
		require.Equal(t, want, b.String(), text)
	}
	for _, text := range []string{"i32 = 'x'", "missing = 1", "bool = 1", "str = 1", "date = 5", "r = 1", "r in (null)", "i32 like 'a%'", "ts = 'yesterday'", "r.y = 1", "dec = 'NaN'", "i64 = 1e999999999"} {
		p, err := Parse(text)
		require.NoError(t, err, text)
		_, err = Bind(p, scalarFields)
		require.Error(t, err, text)
	}
	b, err := Bind(Compare(Eq, "ts", time.UnixMilli(5)), scalarFields)
	require.NoError(t, err)
	require.Equal(t, row.Timestamp{Millis: 5}, b.Literals[0])
}

func TestSplitKeyTakesOnlyWholeConjuncts(t *testing.T) {
	p, err := Parse("k = 1 and (k = 2 or v = 3) and j < 5 and (k = 1 or j = 2)")
	require.NoError(t, err)
	key, rest := SplitKey(p, []string{"k", "j"})
	require.Equal(t, "k = 1 AND j < 5 AND (k = 1 OR j = 2)", key.String())
	require.Equal(t, "k = 2 OR v = 3", rest.String())
	require.Equal(t, []string{"k", "v", "j"}, p.Columns())
	key, rest = SplitKey(rest, []string{"k"})
	require.Nil(t, key)
	require.NotNil(t, rest)
}

// columnCase draws values and literals of one type.
type columnCase struct {
	field schema.Field
	arrow arrow.DataType
	vals  []any // as row.Value
}

var inf = math.Inf(1)

var columnCases = []columnCase{
	{scalarFields[0], arrow.FixedWidthTypes.Boolean, []any{true, false}},
	{scalarFields[1], arrow.PrimitiveTypes.Int8, []any{int8(-128), int8(0), int8(1), int8(127)}},
	{scalarFields[2], arrow.PrimitiveTypes.Int16, []any{int16(-5), int16(0), int16(7)}},
	{scalarFields[3], arrow.PrimitiveTypes.Int32, []any{int32(-5), int32(0), int32(7), int32(8), int32(9)}},
	{scalarFields[4], arrow.PrimitiveTypes.Int64, []any{int64(-5), int64(0), int64(7), int64(math.MaxInt64), int64(math.MinInt64)}},
	{scalarFields[5], arrow.PrimitiveTypes.Float32, []any{float32(-1.5), float32(0), float32(math.Copysign(0, -1)), float32(math.NaN()), float32(inf)}},
	{scalarFields[6], arrow.PrimitiveTypes.Float64, []any{-1.5, 0.0, math.Copysign(0, -1), math.NaN(), inf, -inf}},
	{scalarFields[7], &arrow.Decimal128Type{Precision: 3, Scale: 1}, []any{decimal128.FromI64(-999), decimal128.FromI64(0), decimal128.FromI64(15)}},
	{scalarFields[8], arrow.BinaryTypes.String, []any{"", "a", "ab", "abc", "b", "\xff"}},
	{scalarFields[9], arrow.BinaryTypes.Binary, []any{[]byte(""), []byte("a"), []byte("ab"), []byte{0xff, 0xff}}},
	{scalarFields[10], arrow.FixedWidthTypes.Date32, []any{int32(-1), int32(0), int32(19000)}},
	{scalarFields[11], arrow.FixedWidthTypes.Time32ms, []any{int32(0), int32(5000)}},
	{scalarFields[12], &arrow.TimestampType{Unit: arrow.Millisecond}, []any{row.Timestamp{Millis: -1}, row.Timestamp{}, row.Timestamp{Millis: 77}}},
	{scalarFields[13], &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, []any{row.Timestamp{Millis: -1, Nanos: 5}, row.Timestamp{}, row.Timestamp{Millis: 77, Nanos: 999999}}},
}

func buildColumn(dt arrow.DataType, vals []any) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	for _, v := range vals {
		if v == nil {
			b.AppendNull()
			continue
		}
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
		case *array.Decimal128Builder:
			b.Append(v.(decimal128.Num))
		case *array.StringBuilder:
			b.Append(v.(string))
		case *array.BinaryBuilder:
			b.Append(v.([]byte))
		case *array.Date32Builder:
			b.Append(arrow.Date32(v.(int32)))
		case *array.Time32Builder:
			b.Append(arrow.Time32(v.(int32)))
		case *array.TimestampBuilder:
			ts := v.(row.Timestamp)
			if dt.(*arrow.TimestampType).Unit == arrow.Millisecond {
				b.Append(arrow.Timestamp(ts.Millis))
			} else {
				b.Append(arrow.Timestamp(ts.Millis*1e6 + int64(ts.Nanos)))
			}
		}
	}
	return b.NewArray()
}

// sql is the slow model: one row, boxed values; nil is NULL.
func sql(p *Predicate, value func(column string) any, typ func(column string) schema.Type) any {
	switch p.Op {
	case And, Or:
		short := p.Op == Or // the value that decides
		var result any = !short
		for _, c := range p.Children {
			switch v := sql(c, value, typ); v {
			case short:
				return short
			case nil:
				result = nil
			}
		}
		return result
	case Not:
		v := sql(p.Children[0], value, typ)
		if v == nil {
			return nil
		}
		return !v.(bool)
	case IsNull:
		return value(p.Column) == nil
	case IsNotNull:
		return value(p.Column) != nil
	}
	v := value(p.Column)
	if v == nil {
		return nil
	}
	switch p.Op {
	case In, NotIn:
		var result any = p.Op == NotIn
		for _, l := range p.Literals {
			if l == nil {
				result = nil
			} else if row.CompareValue(typ(p.Column), v, l) == 0 {
				return p.Op == In
			}
		}
		return result
	case StartsWith:
		return strings.HasPrefix(fmt.Sprintf("%s", v), fmt.Sprintf("%s", p.Literals[0]))
	}
	if p.Literals[0] == nil {
		return nil
	}
	c := row.CompareValue(typ(p.Column), v, p.Literals[0])
	return map[Op]bool{Eq: c == 0, Ne: c != 0, Lt: c < 0, Le: c <= 0, Gt: c > 0, Ge: c >= 0}[p.Op]
}

func drawPredicate(t *rapid.T, depth int) *Predicate {
	if depth > 0 && rapid.IntRange(0, 2).Draw(t, "inner") > 0 {
		op := rapid.SampledFrom([]Op{And, Or, Not}).Draw(t, "op")
		n := 1
		if op != Not {
			n = rapid.IntRange(1, 3).Draw(t, "children")
		}
		p := &Predicate{Op: op}
		for range n {
			p.Children = append(p.Children, drawPredicate(t, depth-1))
		}
		return p
	}
	c := rapid.SampledFrom(columnCases).Draw(t, "column")
	ops := []Op{Eq, Ne, Lt, Le, Gt, Ge, In, NotIn, IsNull, IsNotNull}
	if k := c.field.Type.Kind; k == schema.VarChar || k == schema.VarBinary {
		ops = append(ops, StartsWith, StartsWith)
	}
	p := &Predicate{Op: rapid.SampledFrom(ops).Draw(t, "op"), Column: c.field.Name}
	literals := c.vals
	n := 1
	switch p.Op {
	case IsNull, IsNotNull:
		n = 0
	case In, NotIn:
		n = rapid.IntRange(0, 10).Draw(t, "n")
	}
	if p.Op != StartsWith {
		literals = append(literals[:len(literals):len(literals)], nil)
	}
	for range n {
		p.Literals = append(p.Literals, rapid.SampledFrom(literals).Draw(t, "literal"))
	}
	return p
}

func TestEvalAndMayMatchAgreeWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPredicate(t, 3)
		b, err := Bind(p, scalarFields)
		require.NoError(t, err)
		n := rapid.IntRange(0, 8).Draw(t, "rows")
		vals := map[string][]any{}
		cols := map[string]arrow.Array{}
		types := map[string]schema.Type{}
		for _, c := range columnCases {
			choice := append(c.vals[:len(c.vals):len(c.vals)], nil)
			for range n {
				vals[c.field.Name] = append(vals[c.field.Name], rapid.SampledFrom(choice).Draw(t, c.field.Name))
			}
			cols[c.field.Name] = buildColumn(c.arrow, vals[c.field.Name])
			types[c.field.Name] = c.field.Type
		}
		m := b.Eval(func(name string) arrow.Array { return cols[name] }, n)
		sel := m.Selection([]int32{-1})
		require.Equal(t, int32(-1), sel[0])
		require.Len(t, sel, m.Count()+1)
		for i := range n {
			want := sql(p, func(c string) any { return vals[c][i] }, func(c string) schema.Type { return types[c] })
			got := map[byte]any{isTrue: true, isFalse: false, isNull: nil}[m.truth[i]]
			require.Equal(t, want, got, "row %d of %s", i, p)
			if m.Matches(i) {
				require.Equal(t, int32(i), sel[1])
				sel = append(sel[:1], sel[2:]...)
			}
		}
		may := b.MayMatch(func(c string) (row.Value, row.Value, int64, int64, bool) {
			return parquetStats(t, types[c], vals[c])
		})
		if m.Count() > 0 {
			require.True(t, may, "%s pruned rows that match", b)
		}
	})
}

// parquetStats gives the bounds as a Parquet writer would: NaN left out, zeros
// with either sign.
func parquetStats(t *rapid.T, typ schema.Type, vals []any) (lo, hi row.Value, nulls, rows int64, known bool) {
	for _, v := range vals {
		switch {
		case v == nil:
			nulls++
		case isNaN(v):
		default:
			if lo == nil || row.CompareValue(typ, v, lo) < 0 {
				lo = v
			}
			if hi == nil || row.CompareValue(typ, v, hi) > 0 {
				hi = v
			}
		}
	}
	if isZero(lo) && rapid.Bool().Draw(t, "signless") {
		if typ.Kind == schema.Float {
			lo = float32(0)
		} else {
			lo = 0.0
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "unknown") == 0 {
		lo = nil
	}
	return lo, hi, nulls, int64(len(vals)), true
}

func TestMayMatchPrunes(t *testing.T) {
	stats := func(lo, hi row.Value, nulls, rows int64) func(string) (row.Value, row.Value, int64, int64, bool) {
		return func(string) (row.Value, row.Value, int64, int64, bool) { return lo, hi, nulls, rows, true }
	}
	for text, want := range map[string]bool{
		"i32 = 4": false, "i32 = 5": true, "i32 < 5": false, "i32 <= 5": true, "i32 > 9": false, "i32 >= 9": true, "i32 >= 10": false,
		"i32 in (1, 2, 20)": false, "i32 in (1, 7)": true, "i32 is null": false, "i32 is not null": true, "i32 = null": false,
		"i32 = 4 or i32 = 6": true, "i32 = 4 and i32 = 6": false, "not i32 > 4": false, "i32 <> 5": true, "i32 not in (7, null)": false,
	} {
		p, err := Parse(text)
		require.NoError(t, err)
		b, err := Bind(p, scalarFields)
		require.NoError(t, err)
		require.Equal(t, want, b.MayMatch(stats(int32(5), int32(9), 0, 10)), text)
		require.True(t, p.MayMatch(stats(int32(5), int32(9), 0, 10)) || p.Op == And, "not bound: %s", text)
	}
	for text, want := range map[string]bool{"str like 'b%'": false, "str like 'cd%'": true, "str like 'c%'": true, "str like 'e%'": false, "str like 'd%'": true} {
		p, _ := Parse(text)
		b, err := Bind(p, scalarFields)
		require.NoError(t, err)
		require.Equal(t, want, b.MayMatch(stats("cc", "d", 0, 10)), text)
	}
	p, _ := Parse("i32 is not null")
	b, err := Bind(p, scalarFields)
	require.NoError(t, err)
	require.False(t, b.MayMatch(stats(nil, nil, 10, 10)))
	require.True(t, b.MayMatch(stats(nil, nil, -1, 10)))
}

func TestEvalOfNestedAndMissingColumns(t *testing.T) {
	dt := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
	sb := array.NewStructBuilder(memory.DefaultAllocator, dt)
	for i := range 4 {
		sb.Append(i != 1) // a null row appends a null to its fields
		switch i {
		case 1:
		case 2:
			sb.FieldBuilder(0).AppendNull()
		default:
			sb.FieldBuilder(0).(*array.Int32Builder).Append(int32(i))
		}
	}
	r := sb.NewArray()
	cols := func(name string) arrow.Array {
		if name == "r" {
			return r
		}
		return nil
	}
	for text, want := range map[string][]int32{
		"r.x <= 1":           {0},
		"r.x is null":        {1, 2},
		"r.x is not null":    {0, 3},
		"not r.x <= 1":       {3},
		"i32 is null":        {0, 1, 2, 3},
		"i32 = 1 or r.x = 3": {3},
	} {
		p, _ := Parse(text)
		b, err := Bind(p, scalarFields)
		require.NoError(t, err)
		require.Equal(t, want, b.Eval(cols, 4).Selection(nil), text)
	}
}
