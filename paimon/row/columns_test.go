package row_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// drawType gives any scalar type.
func drawType(t *rapid.T) schema.Type {
	k := rapid.SampledFrom([]schema.Kind{schema.Boolean, schema.TinyInt, schema.SmallInt, schema.Int, schema.BigInt,
		schema.Float, schema.Double, schema.Decimal, schema.VarChar, schema.VarBinary, schema.Date, schema.Time,
		schema.Timestamp, schema.TimestampLTZ}).Draw(t, "kind")
	typ := schema.Type{Kind: k, Nullable: true, Length: schema.MaxLength}
	switch k {
	case schema.Decimal:
		typ.Prec = rapid.IntRange(1, 38).Draw(t, "precision")
	case schema.Timestamp, schema.TimestampLTZ:
		typ.Prec = rapid.IntRange(0, 9).Draw(t, "precision")
	}
	return typ
}

// drawValue gives a value that a column of type typ can hold, or null.
func drawValue(t *rapid.T, typ schema.Type) row.Value {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return nil
	}
	switch typ.Kind {
	case schema.Boolean:
		return rapid.Bool().Draw(t, "v")
	case schema.TinyInt:
		return rapid.Int8().Draw(t, "v")
	case schema.SmallInt:
		return rapid.Int16().Draw(t, "v")
	case schema.Int, schema.Date, schema.Time:
		return rapid.Int32().Draw(t, "v")
	case schema.BigInt:
		return rapid.Int64().Draw(t, "v")
	case schema.Float:
		return rapid.Float32().Draw(t, "v")
	case schema.Double:
		return rapid.Float64().Draw(t, "v")
	case schema.VarChar:
		return rapid.String().Draw(t, "v")
	case schema.VarBinary:
		return append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "v")...)
	case schema.Decimal:
		if typ.Prec <= 18 {
			return decimal128.FromI64(rapid.Int64().Draw(t, "v"))
		}
		return decimal128.New(rapid.Int64().Draw(t, "high"), rapid.Uint64().Draw(t, "low"))
	}
	ts := row.Timestamp{Millis: rapid.Int64Range(-9e9, 9e9).Draw(t, "ms")}
	switch {
	case typ.Prec > 6:
		ts.Nanos = rapid.Int32Range(0, 999999).Draw(t, "ns")
	case typ.Prec > 3:
		ts.Nanos = 1000 * rapid.Int32Range(0, 999).Draw(t, "us")
	}
	return ts
}

// column builds the Arrow column of some values.
func column(t require.TestingT, mem memory.Allocator, typ schema.Type, vals []row.Value) arrow.Array {
	dt, err := schema.ArrowType(typ)
	require.NoError(t, err)
	b := array.NewBuilder(mem, dt)
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
		case *array.Date32Builder:
			b.Append(arrow.Date32(v.(int32)))
		case *array.Time32Builder:
			b.Append(arrow.Time32(v.(int32)))
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
		case *array.TimestampBuilder:
			ts := v.(row.Timestamp)
			switch {
			case typ.Prec <= 3:
				b.Append(arrow.Timestamp(ts.Millis))
			case typ.Prec <= 6:
				b.Append(arrow.Timestamp(ts.Millis*1000 + int64(ts.Nanos)/1000))
			default:
				b.Append(arrow.Timestamp(ts.Millis*1_000_000 + int64(ts.Nanos)))
			}
		default:
			require.Failf(t, "no builder", "%T", b)
		}
	}
	return b.NewArray()
}

func TestEncodeDecodeRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "fields")
		types, vals := make([]schema.Type, n), make([]row.Value, n)
		for i := range types {
			types[i] = drawType(t)
			vals[i] = drawValue(t, types[i])
		}
		b, err := row.Encode(types, vals)
		require.NoError(t, err)
		require.Zero(t, len(b)%8)
		back, err := row.Decode(types, b)
		require.NoError(t, err)
		require.Zero(t, row.Compare(types, vals, back))
		again, err := row.Encode(types, back)
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

func TestColumnsAgreeWithEncodeAndHashProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(fatal{t}, 0)
		rows, n := rapid.IntRange(1, 20).Draw(t, "rows"), rapid.IntRange(1, 3).Draw(t, "columns")
		buckets := rapid.IntRange(1, 50).Draw(t, "buckets")
		types, cols := make([]schema.Type, n), make([]arrow.Array, n)
		vals := make([][]row.Value, n)
		for k := range types {
			types[k] = drawType(t)
			for range rows {
				vals[k] = append(vals[k], drawValue(t, types[k]))
			}
			whole := column(t, mem, types[k], append([]row.Value{nil}, vals[k]...))
			cols[k] = array.NewSlice(whole, 1, int64(rows)+1) // an offset, as in slices of batches
			whole.Release()
			defer cols[k].Release()
		}
		got := make([]int32, rows)
		row.Buckets(cols, types, buckets, got)
		for i := range rows {
			want := make([]row.Value, n)
			for k := range types {
				want[k] = vals[k][i]
				require.Zero(t, row.CompareValue(types[k], want[k], row.ValueAt(cols[k], types[k], i)))
			}
			b, err := row.Encode(types, want)
			require.NoError(t, err)
			prefix := []byte{1, 2, 3}
			require.Equal(t, append(prefix, b...), row.EncodeColumns(cols, types, i, prefix))
			require.EqualValues(t, row.BucketOf(row.Hash(b), buckets), got[i])
		}
	})
}

// fatal lets the checked allocator report to rapid.
type fatal struct{ *rapid.T }

func (fatal) Helper() {}

func TestColumnsWriteComplexTypesAsNull(t *testing.T) {
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int32)
	defer b.Release()
	b.Append(true)
	arr := b.NewArray()
	defer arr.Release()
	typ := schema.Type{Kind: schema.Array}
	require.Nil(t, row.ValueAt(arr, typ, 0))
	require.Equal(t, unhex(t, "0001000000000000 0000000000000000"),
		row.EncodeColumns([]arrow.Array{arr}, []schema.Type{typ}, 0, nil))
}

func TestBucketsAllocateNothingPerRow(t *testing.T) {
	vals := make([]row.Value, 1000)
	for i := range vals {
		vals[i] = "a text that is not inline " + strconv.Itoa(i)
	}
	col := column(t, memory.DefaultAllocator, stringType, vals)
	defer col.Release()
	dst := make([]int32, len(vals))
	for _, cols := range [][]arrow.Array{{col}, {col, col}} {
		types := []schema.Type{stringType, stringType}[:len(cols)]
		require.Less(t, testing.AllocsPerRun(10, func() { row.Buckets(cols, types, 16, dst) }), 10.0)
	}
}

func TestBucketsModTakesTheFloor(t *testing.T) {
	dst := make([]int32, 4)
	for _, typ := range []schema.Type{intType, bigType} {
		vals := []row.Value{int32(-1), int32(6), nil, int32(5)}
		if typ.Kind == schema.BigInt {
			vals = []row.Value{int64(-1), int64(6), nil, int64(5)}
		}
		col := column(t, memory.DefaultAllocator, typ, vals)
		row.BucketsMod(col, 5, dst)
		col.Release()
		require.Equal(t, []int32{4, 1, 0, 0}, dst)
	}
}

// The golden tables say where Java placed rows: bucket-key values and bucket.
func TestBucketsOfGoldenRows(t *testing.T) {
	rows := 0
	tables, _ := filepath.Glob(filepath.Join(golden.Dir(t), "*", "expected", "buckets.jsonl"))
	for _, f := range tables {
		root := filepath.Join(filepath.Dir(f), "..", "table")
		data, err := os.ReadFile(filepath.Join(root, "schema", "schema-0"))
		require.NoError(t, err)
		s, err := schema.Parse(data, "schema-0")
		require.NoError(t, err)
		rows += checkBuckets(t, s, f)
	}
	t.Logf("%d rows", rows)
}

func checkBuckets(t *testing.T, s *schema.Schema, name string) (rows int) {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	var types []schema.Type
	for _, i := range s.BucketKeyIndexes() {
		types = append(types, s.Fields[i].Type)
	}
	for in := bufio.NewScanner(f); in.Scan(); rows++ {
		var e struct {
			Key          map[string]any `json:"key"`
			TotalBuckets int            `json:"totalBuckets"`
			Bucket       int            `json:"bucket"`
		}
		d := json.NewDecoder(bytes.NewReader(in.Bytes()))
		d.UseNumber()
		require.NoError(t, d.Decode(&e))
		vals := make([]row.Value, len(types))
		for k, i := range s.BucketKeyIndexes() {
			vals[k] = goldenValue(t, types[k], e.Key[s.Fields[i].Name])
		}
		got := 0
		if s.Options["bucket-function.type"] == "mod" {
			col := column(t, memory.DefaultAllocator, types[0], vals)
			dst := []int32{-1}
			row.BucketsMod(col, e.TotalBuckets, dst)
			col.Release()
			got = int(dst[0])
		} else {
			b, err := row.Encode(types, vals)
			require.NoError(t, err)
			got = row.BucketOf(row.Hash(b), e.TotalBuckets)
		}
		require.Equal(t, e.Bucket, got, "%s: %s", name, in.Text())
	}
	return rows
}

// goldenValue parses a value as the golden tables write it.
func goldenValue(t *testing.T, typ schema.Type, v any) row.Value {
	if v == nil {
		return nil
	}
	text := fmt.Sprint(v)
	integer := func(bits int) int64 {
		n, err := strconv.ParseInt(text, 10, bits)
		require.NoError(t, err)
		return n
	}
	switch typ.Kind {
	case schema.Boolean:
		return v.(bool)
	case schema.TinyInt:
		return int8(integer(8))
	case schema.SmallInt:
		return int16(integer(16))
	case schema.Int:
		return int32(integer(32))
	case schema.BigInt:
		return integer(64)
	case schema.Float:
		x, err := strconv.ParseFloat(text, 32)
		require.NoError(t, err)
		return float32(x)
	case schema.Double:
		x, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return x
	case schema.Char, schema.VarChar:
		return text
	case schema.Binary, schema.VarBinary:
		return unhex(t, text)
	case schema.Decimal:
		x, err := decimal128.FromString(text, int32(typ.Prec), int32(typ.Scale))
		require.NoError(t, err)
		return x
	case schema.Date:
		at, err := time.Parse(time.DateOnly, text)
		require.NoError(t, err)
		return int32(at.Unix() / 86400)
	case schema.Time:
		at, err := time.Parse("15:04:05.999999999", text)
		require.NoError(t, err)
		return int32(at.Sub(at.Truncate(24 * time.Hour)).Milliseconds())
	case schema.Timestamp, schema.TimestampLTZ:
		at, err := time.Parse("2006-01-02 15:04:05.999999999", strings.TrimSuffix(text, "Z"))
		require.NoError(t, err)
		return row.Timestamp{Millis: at.UnixMilli(), Nanos: int32(at.Nanosecond() % 1_000_000)}
	}
	require.Failf(t, "no value", "kind %d", typ.Kind)
	return nil
}

func FuzzDecode(f *testing.F) {
	f.Add(uint64(1), unhex(f, "0000000000000000 1000000010000000 54776f20726f61647320646976657268"))
	f.Add(uint64(0x77), unhex(f, "0001000000000000 0000000010000000 00000000000000000000000000000000"))
	kinds := []schema.Type{stringType, kind(schema.VarBinary), wideType, microType, intType, bigType, kind(schema.Boolean), kind(schema.Array)}
	f.Fuzz(func(t *testing.T, pick uint64, data []byte) {
		var types []schema.Type
		for p := pick; p > 0 && len(types) < 12; p /= 8 {
			types = append(types, kinds[p%8])
		}
		if r, n, err := row.Deserialize(data); err == nil {
			require.GreaterOrEqual(t, len(r), row.FixedSize(n))
		}
		vals, err := row.Decode(types, data)
		if err != nil {
			return
		}
		b, err := row.Encode(types, vals)
		require.NoError(t, err)
		back, err := row.Decode(types, b)
		require.NoError(t, err)
		require.Zero(t, row.Compare(types, vals, back))
	})
}

func benchColumn(b *testing.B, typ schema.Type, value func(i int) row.Value) {
	vals := make([]row.Value, 8192)
	for i := range vals {
		vals[i] = value(i)
	}
	col := column(b, memory.DefaultAllocator, typ, vals)
	defer col.Release()
	dst := make([]int32, len(vals))
	b.SetBytes(int64(len(vals)))
	for b.Loop() {
		row.Buckets([]arrow.Array{col}, []schema.Type{typ}, 16, dst)
	}
}

func BenchmarkBuckets(b *testing.B) {
	b.Run("BIGINT", func(b *testing.B) { benchColumn(b, bigType, func(i int) row.Value { return int64(i) }) })
	b.Run("STRING", func(b *testing.B) {
		benchColumn(b, stringType, func(i int) row.Value { return fmt.Sprintf("user-%08d", i) })
	})
	b.Run("generic", func(b *testing.B) {
		benchColumn(b, microType, func(i int) row.Value { return row.Timestamp{Millis: int64(i)} })
	})
}

func TestBucketsOfTextOfEveryLength(t *testing.T) {
	var vals []row.Value
	for n := range 40 {
		vals = append(vals, strings.Repeat("\u00e9x", n)[:n])
	}
	col := column(t, memory.DefaultAllocator, stringType, vals)
	defer col.Release()
	got := make([]int32, len(vals))
	row.Buckets([]arrow.Array{col}, []schema.Type{stringType}, 1<<30, got)
	for i, v := range vals {
		b, err := row.Encode([]schema.Type{stringType}, []row.Value{v})
		require.NoError(t, err)
		require.EqualValues(t, row.BucketOf(row.Hash(b), 1<<30), got[i], "length %d", i)
	}
}
