package row_test

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

func kind(k schema.Kind) schema.Type { return schema.Type{Kind: k, Nullable: true} }

func prec(k schema.Kind, p, s int) schema.Type {
	return schema.Type{Kind: k, Nullable: true, Prec: p, Scale: s}
}

var (
	intType    = kind(schema.Int)
	bigType    = kind(schema.BigInt)
	stringType = schema.Type{Kind: schema.VarChar, Length: schema.MaxLength, Nullable: true}
	doubleType = kind(schema.Double)
	wideType   = prec(schema.Decimal, 30, 2)
	microType  = prec(schema.Timestamp, 6, 0)
)

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// FORMAT §5.4, rows without the field count.
func TestEncodeGivesTheBytesOfJava(t *testing.T) {
	long := "Two roads diverged in a yellow wood, And sorry I could not travel both And be one traveler, long I stood"
	require.Len(t, long, 104)
	for _, c := range []struct {
		name  string
		types []schema.Type
		vals  []row.Value
		want  string
	}{
		{"no fields", nil, nil, "0000000000000000"},
		{"partition of INT 10", []schema.Type{intType}, []row.Value{int32(10)}, "0000000000000000 0a00000000000000"},
		{"key with inline text", []schema.Type{stringType, intType}, []row.Value{"Alex", int32(0)},
			"0000000000000000 416c657800000084 0000000000000000"},
		{"key with text of 104 bytes", []schema.Type{stringType, intType}, []row.Value{long, int32(1)},
			"0000000000000000 6800000018000000 0100000000000000" + hex.EncodeToString([]byte(long))},
		{"upper bounds of four columns", []schema.Type{stringType, intType, intType, doubleType},
			[]row.Value{"Two roads diverh", int32(10), int32(1), 11.1},
			"0000000000000000 1000000028000000 0a00000000000000 0100000000000000 3333333333332640 54776f20726f61647320646976657268"},
		{"lower bounds of four columns", []schema.Type{stringType, intType, intType, doubleType},
			[]row.Value{"Alex", int32(10), int32(0), 12.1},
			"0000000000000000 416c657800000084 0a00000000000000 0000000000000000 3333333333332840"},
		{"INT -1 has no sign extension", []schema.Type{intType}, []row.Value{int32(-1)}, "0000000000000000 ffffffff00000000"},
		{"INT null", []schema.Type{intType}, []row.Value{nil}, "0001000000000000 0000000000000000"},
		{"empty text", []schema.Type{stringType}, []row.Value{""}, "0000000000000000 0000000000000080"},
		{"text of 8 bytes", []schema.Type{stringType}, []row.Value{"12345678"}, "0000000000000000 0800000010000000 3132333435363738"},
		{"wide decimal 1.00", []schema.Type{wideType}, []row.Value{decimal128.FromI64(100)},
			"0000000000000000 0100000010000000 64000000000000000000000000000000"},
		{"wide decimal -1.00", []schema.Type{wideType}, []row.Value{decimal128.FromI64(-100)},
			"0000000000000000 0100000010000000 9c000000000000000000000000000000"},
		{"wide decimal null keeps its space", []schema.Type{wideType}, []row.Value{nil},
			"0001000000000000 0000000010000000 00000000000000000000000000000000"},
		{"TIMESTAMP(6)", []schema.Type{microType}, []row.Value{row.Timestamp{Millis: 1, Nanos: 2000}},
			"0000000000000000 d007000010000000 0100000000000000"},
		{"TIMESTAMP(6) null keeps its space", []schema.Type{microType}, []row.Value{nil},
			"0001000000000000 0000000010000000 0000000000000000"},
		{"null of a complex type", []schema.Type{kind(schema.Array)}, []row.Value{nil}, "0001000000000000 0000000000000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := row.Encode(c.types, c.vals)
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString(unhex(t, c.want)), hex.EncodeToString(got))
			back, err := row.Decode(c.types, got)
			require.NoError(t, err)
			require.Equal(t, len(c.vals), len(back))
			for i := range back {
				require.Equal(t, c.vals[i], back[i])
			}
		})
	}
}

func TestEncodePacksTheNullBitOfField56IntoTheSecondWord(t *testing.T) {
	types := make([]schema.Type, 57)
	for i := range types {
		types[i] = intType
	}
	b, err := row.Encode(types, make([]row.Value, 57))
	require.NoError(t, err)
	require.Len(t, b, 16+57*8)
	require.Equal(t, byte(1), b[8])
}

func TestEncodeRefusesValuesThatAreNotOfTheType(t *testing.T) {
	for _, c := range []struct {
		typ schema.Type
		v   row.Value
	}{
		{intType, int64(1)}, {bigType, int32(1)}, {stringType, []byte("x")}, {kind(schema.VarBinary), "x"},
		{kind(schema.Array), "x"}, {microType, int64(1)}, {microType, row.Timestamp{Nanos: 1_000_000}},
		{prec(schema.Decimal, 10, 0), decimal128.New(1, 0)}, {kind(schema.Boolean), 1},
	} {
		_, err := row.Encode([]schema.Type{c.typ}, []row.Value{c.v})
		require.ErrorIs(t, err, errs.ErrInvalid, "%T", c.v)
	}
	_, err := row.Encode([]schema.Type{intType}, nil)
	require.ErrorIs(t, err, errs.ErrInvalid)
}

func TestDecodeRefusesWhatPointsOutsideTheRow(t *testing.T) {
	for name, c := range map[string]struct {
		typ schema.Type
		hex string
	}{
		"no bytes":                  {intType, ""},
		"slot missing":              {intType, "0000000000000000"},
		"offset behind the end":     {stringType, "0000000000000000 0800000018000000 3132333435363738"},
		"length over the end":       {stringType, "0000000000000000 0900000010000000 3132333435363738"},
		"length of 2 GB":            {stringType, "0000000000000000 ffffffffffffff7f"},
		"inline text of 8 bytes":    {stringType, "0000000000000000 0000000000000088"},
		"decimal of 17 bytes":       {wideType, "0000000000000000 1100000000000000 00000000000000000000000000000000"},
		"decimal of no bytes":       {wideType, "0000000000000000 0000000010000000 00000000000000000000000000000000"},
		"timestamp behind the end":  {microType, "0000000000000000 d007000011000000 0100000000000000"},
		"nanoseconds of two millis": {microType, "0000000000000000 40420f0010000000 0100000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := row.Decode([]schema.Type{c.typ}, unhex(t, c.hex))
			require.ErrorIs(t, err, errs.ErrCorrupt)
		})
	}
}

func TestSerializePutsABigEndianCountInFront(t *testing.T) {
	b := row.Serialize(unhex(t, "0000000000000000 0a00000000000000"), 1)
	require.Equal(t, unhex(t, "00000001 0000000000000000 0a00000000000000"), b)
	r, n, err := row.Deserialize(b)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, b[4:], r)
	require.Equal(t, make([]byte, 12), row.Serialize(row.EmptyRow, 0))

	for _, s := range []string{"", "000000", "00000000", "00000001 0000000000000000", "ffffffff 0000000000000000 0000000000000000"} {
		_, _, err := row.Deserialize(unhex(t, s))
		require.ErrorIs(t, err, errs.ErrCorrupt, s)
	}
}

// FORMAT §6, the table of examples.
func TestHashAndBucketOfTheExamples(t *testing.T) {
	milli := prec(schema.Timestamp, 3, 0)
	for _, c := range []struct {
		name  string
		types []schema.Type
		vals  []row.Value
		hash  int32
		want  [4]int // buckets out of 2, 4, 5, 16
	}{
		{"INT 0", []schema.Type{intType}, []row.Value{int32(0)}, -300363099, [4]int{1, 3, 4, 11}},
		{"INT 1", []schema.Type{intType}, []row.Value{int32(1)}, 1465514398, [4]int{0, 2, 3, 14}},
		{"BIGINT 1", []schema.Type{bigType}, []row.Value{int64(1)}, 1465514398, [4]int{0, 2, 3, 14}},
		{"TIMESTAMP(3) 1 ms", []schema.Type{milli}, []row.Value{row.Timestamp{Millis: 1}}, 1465514398, [4]int{0, 2, 3, 14}},
		{"INT 2", []schema.Type{intType}, []row.Value{int32(2)}, 1340390384, [4]int{0, 0, 4, 0}},
		{"INT 10", []schema.Type{intType}, []row.Value{int32(10)}, 124495984, [4]int{0, 0, 4, 0}},
		{"INT -1", []schema.Type{intType}, []row.Value{int32(-1)}, 1133687267, [4]int{1, 3, 2, 3}},
		{"BIGINT -1", []schema.Type{bigType}, []row.Value{int64(-1)}, -821098432, [4]int{0, 0, 2, 0}},
		{"Alice", []schema.Type{stringType}, []row.Value{"Alice"}, 1285337400, [4]int{0, 0, 0, 8}},
		{"paimon", []schema.Type{stringType}, []row.Value{"paimon"}, 1504888072, [4]int{0, 0, 2, 8}},
		{"12345678", []schema.Type{stringType}, []row.Value{"12345678"}, -391021801, [4]int{1, 1, 1, 9}},
		{"empty text", []schema.Type{stringType}, []row.Value{""}, 302122119, [4]int{1, 3, 4, 7}},
		{"Alice, 1", []schema.Type{stringType, intType}, []row.Value{"Alice", int32(1)}, 1519508418, [4]int{0, 2, 3, 2}},
		{"INT null", []schema.Type{intType}, []row.Value{nil}, -1748325344, [4]int{0, 0, 4, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := row.Encode(c.types, c.vals)
			require.NoError(t, err)
			require.Equal(t, c.hash, row.Hash(b))
			for i, n := range []int{2, 4, 5, 16} {
				require.Equal(t, c.want[i], row.BucketOf(c.hash, n))
			}
		})
	}
	require.Equal(t, 0, row.BucketOf(7, 0))
	require.Equal(t, 4, row.BucketOfMod(-1, 5))
	require.Equal(t, 1, row.BucketOfMod(6, 5))
	require.Equal(t, 0, row.BucketOfMod(6, 0))
}

func TestCompareValue(t *testing.T) {
	nan, negZero := math.NaN(), math.Copysign(0, -1)
	ascending := map[string]struct {
		typ  schema.Type
		vals []row.Value
	}{
		"boolean":   {kind(schema.Boolean), []row.Value{nil, false, true}},
		"tinyint":   {kind(schema.TinyInt), []row.Value{nil, int8(-128), int8(0), int8(127)}},
		"smallint":  {kind(schema.SmallInt), []row.Value{nil, int16(-1), int16(0), int16(1)}},
		"int":       {intType, []row.Value{nil, int32(math.MinInt32), int32(-1), int32(0), int32(math.MaxInt32)}},
		"bigint":    {bigType, []row.Value{nil, int64(math.MinInt64), int64(-1), int64(math.MaxInt64)}},
		"float":     {kind(schema.Float), []row.Value{nil, float32(math.Inf(-1)), float32(-1), float32(negZero), float32(0), float32(math.Inf(1)), float32(nan)}},
		"double":    {doubleType, []row.Value{nil, math.Inf(-1), -1.0, negZero, 0.0, 1.0, math.Inf(1), nan}},
		"string":    {stringType, []row.Value{nil, "", "a", "ab", "b", "\u00e4", "\uffff", "\U0001f600"}},
		"bytes":     {kind(schema.VarBinary), []row.Value{nil, []byte{}, []byte{0}, []byte{0x7f}, []byte{0x80}, []byte{0x80, 0}}},
		"decimal":   {wideType, []row.Value{nil, decimal128.New(-1, 0), decimal128.FromI64(-1), decimal128.FromI64(0), decimal128.New(1, 0)}},
		"timestamp": {microType, []row.Value{nil, row.Timestamp{Millis: -1, Nanos: 999999}, row.Timestamp{}, row.Timestamp{Nanos: 1}, row.Timestamp{Millis: 1}}},
	}
	for name, c := range ascending {
		t.Run(name, func(t *testing.T) {
			for i, a := range c.vals {
				for j, b := range c.vals {
					got := row.CompareValue(c.typ, a, b)
					require.Equal(t, sign(i-j), sign(got), "%v against %v", a, b)
				}
			}
		})
	}
	require.Equal(t, -1, row.Compare([]schema.Type{intType, stringType}, []row.Value{int32(1), "b"}, []row.Value{int32(1), "c"}))
	require.Equal(t, 0, row.Compare([]schema.Type{intType}, []row.Value{int32(1)}, []row.Value{int32(1)}))
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
