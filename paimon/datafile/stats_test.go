package datafile

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

func oneColumn(t *testing.T, ty schema.Type, fill func(array.Builder)) arrow.Array {
	t.Helper()
	dt, err := schema.ArrowType(ty)
	require.NoError(t, err)
	b := array.NewBuilder(memory.NewGoAllocator(), dt)
	defer b.Release()
	fill(b)
	return b.NewArray()
}

func TestColumnStatistics(t *testing.T) {
	num := decimal128.FromI64
	for _, tc := range []struct {
		name   string
		t      schema.Type
		fill   func(array.Builder)
		lo, hi row.Value
		nulls  int64
		none   bool
	}{
		{"bigint", typ(schema.BigInt), func(b array.Builder) {
			b.AppendNull()
			b.(*array.Int64Builder).AppendValues([]int64{3, -7, 5}, nil)
		}, int64(-7), int64(5), 1, false},
		{"tinyint", typ(schema.TinyInt), func(b array.Builder) { b.(*array.Int8Builder).AppendValues([]int8{3, -7, 5}, nil) }, int8(-7), int8(5), 0, false},
		{"boolean", typ(schema.Boolean), func(b array.Builder) { b.(*array.BooleanBuilder).Append(true) }, true, true, 0, false},
		{"text is unsigned bytes", text(), func(b array.Builder) {
			b.(*array.StringBuilder).AppendValues([]string{"z", "é", "a", "ab"}, nil)
		}, "a", "é", 0, false},
		{"binary has none, Java compares it as signed bytes", blob(), func(b array.Builder) {
			b.(*array.BinaryBuilder).AppendValues([][]byte{{0x80}, {0x7F}, {}}, nil)
		}, nil, nil, 0, true},
		{"decimal", decimalType(20, 0), func(b array.Builder) {
			b.(*array.Decimal128Builder).AppendValues([]decimal128.Num{num(2), num(-10), num(9)}, nil)
		}, num(-10), num(9), 0, false},
		{"zero covers both signs", typ(schema.Double), func(b array.Builder) {
			b.(*array.Float64Builder).AppendValues([]float64{0, 0}, nil)
		}, math.Copysign(0, -1), 0.0, 0, false},
		{"NaN has no range", typ(schema.Double), func(b array.Builder) {
			b.(*array.Float64Builder).AppendValues([]float64{1, math.NaN()}, nil)
		}, nil, nil, 0, true},
		{"all null", typ(schema.Int), func(b array.Builder) { b.AppendNulls(3) }, nil, nil, 3, true},
		{"micros round down", stamp(schema.Timestamp, 6), func(b array.Builder) {
			b.(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{-1, 1}, nil)
		}, row.Timestamp{Millis: -1, Nanos: 999000}, row.Timestamp{Millis: 0, Nanos: 1000}, 0, false},
		{"nanos have none", stamp(schema.Timestamp, 9), func(b array.Builder) {
			b.(*array.TimestampBuilder).Append(1)
		}, nil, nil, 0, true},
		{"arrays have none", schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(typ(schema.Int))}, func(b array.Builder) {
			b.AppendNull()
			b.(*array.ListBuilder).Append(true)
		}, nil, nil, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newStatsCollector(tc.t)
			c.add(oneColumn(t, tc.t, tc.fill))
			require.Equal(t, ColumnStats{Min: tc.lo, Max: tc.hi, Nulls: tc.nulls, HasMinMax: !tc.none}, c.result())
			if v, ok := tc.lo.(float64); ok {
				require.Equal(t, math.Signbit(v), math.Signbit(c.result().Min.(float64)))
			}
		})
	}
}

func TestStatisticsSurviveTheBatches(t *testing.T) {
	c := newStatsCollector(text())
	for _, s := range []string{"m", "a", "z", "n"} {
		c.add(oneColumn(t, text(), func(b array.Builder) { b.(*array.StringBuilder).Append(s) }))
	}
	require.Equal(t, ColumnStats{Min: "a", Max: "z", HasMinMax: true}, c.result())
}

func TestTruncateStatistics(t *testing.T) {
	cut := schema.StatsMode{Kind: schema.StatsTruncate, Length: 3}
	last := string(rune(0x10FFFF))
	for _, tc := range []struct {
		name     string
		mode     schema.StatsMode
		in, want ColumnStats
	}{
		{"short stays", cut, ColumnStats{"ab", "abc", 1, true}, ColumnStats{"ab", "abc", 1, true}},
		{"prefix and increment", cut, ColumnStats{"aaaa", "bbbb", 1, true}, ColumnStats{"aaa", "bbc", 1, true}},
		{"characters, not bytes", cut, ColumnStats{"ééééé", "日本語日本", 0, true}, ColumnStats{"ééé", "日本" + string('語'+1), 0, true}},
		{"moves left over the last character", cut, ColumnStats{"a", "ab" + last + "x", 0, true}, ColumnStats{"a", "ac", 0, true}},
		{"steps over surrogates", cut, ColumnStats{"a", "ab\uD7FFx", 0, true}, ColumnStats{"a", "ab\uE000", 0, true}},
		{"no bound: both null", cut, ColumnStats{"a", last + last + last + "x", 2, true}, ColumnStats{nil, nil, 2, false}},
		{"bytes", cut, ColumnStats{[]byte{1, 2, 3, 4}, []byte{9, 0xFF, 0xFF, 0}, 0, true}, ColumnStats{[]byte{1, 2, 3}, []byte{10}, 0, true}},
		{"bytes without a bound", cut, ColumnStats{[]byte{1}, []byte{0xFF, 0xFF, 0xFF, 0}, 5, true}, ColumnStats{nil, nil, 5, false}},
		{"numbers stay", cut, ColumnStats{int32(1), int32(123456), 0, true}, ColumnStats{int32(1), int32(123456), 0, true}},
		{"counts", schema.StatsMode{Kind: schema.StatsCounts}, ColumnStats{"a", "b", 4, true}, ColumnStats{nil, nil, 4, false}},
		{"full", schema.StatsMode{Kind: schema.StatsFull}, ColumnStats{"aaaa", "bbbb", 4, true}, ColumnStats{"aaaa", "bbbb", 4, true}},
	} {
		t.Run(tc.name, func(t *testing.T) { require.Equal(t, tc.want, Truncate(tc.in, tc.mode)) })
	}
}
