package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/harness"
)

// stream is number i of random stream s: every language generates the same rows
// from it.
func stream(s, i uint64) uint64 { return harness.Mix(s<<40 | i) }

// generator draws the keys of a table.
type generator struct{ harness.Generator }

// newGenerator draws random keys; a fifth of the rows overwrite an earlier one.
func newGenerator() *generator {
	return &generator{harness.NewGenerator(harness.Profile{Seed: 7, Keys: harness.KeysRandom, Updates: 0.2})}
}

// next is the number of the key of the next row.
func (g *generator) next() (key, row uint64) {
	row = g.Row()
	key, _ = g.Next()
	return key, row
}

// t1 draws n rows of table T1: k int64, a int64, b float64, c 16 hex characters.
func (g *generator) t1(n int) t1Rows {
	t := newT1Rows(n)
	for i := range n {
		d, row := g.next()
		t.k[i] = t1Key(d)
		t.draw(i, row)
	}
	return t
}

func t1Key(d uint64) int64 { return int64(harness.Mix(d) >> 1) }

func newT1Rows(n int) t1Rows {
	return t1Rows{make([]int64, n), make([]int64, n), make([]float64, n), make([]byte, 16*n)}
}

// draw fills the payload of the i-th row with that of row number row.
func (t *t1Rows) draw(i int, row uint64) {
	t.a[i] = int64(stream(1, row))
	t.b[i] = float64(stream(2, row)>>11) * math.Pow(2, -53)
	hexDigits(t.c[i*16:i*16+16], stream(3, row))
}

func hexDigits(dst []byte, v uint64) {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], v)
	hex.Encode(dst, raw[:])
}

// payload are the columns that every table shares.
var payload = []arrow.Field{
	{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "b", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true},
}

func withKey(key ...arrow.Field) *arrow.Schema { return arrow.NewSchema(append(key, payload...), nil) }

var (
	schemaT1 = withKey(arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64})
	schemaT2 = withKey(arrow.Field{Name: "k", Type: arrow.BinaryTypes.String})
	schemaT3 = withKey(
		arrow.Field{Name: "tenant", Type: arrow.PrimitiveTypes.Int32},
		arrow.Field{Name: "id", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_us})
)

// record views plain rows as a record of T1.
func (t *t1Rows) record() arrow.RecordBatch {
	n := t.rows()
	return array.NewRecordBatch(schemaT1, append([]arrow.Array{
		fixed(arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(t.k), n)}, t.payload()...), int64(n))
}

func (t *t1Rows) payload() []arrow.Array {
	n := t.rows()
	offsets := make([]int32, n+1)
	for i := range offsets {
		offsets[i] = int32(16 * i)
	}
	text := array.NewStringData(array.NewData(arrow.BinaryTypes.String, n,
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(t.c)}, nil, 0, 0))
	return []arrow.Array{
		fixed(arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(t.a), n),
		fixed(arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(t.b), n), text,
	}
}

func fixed(dt arrow.DataType, values []byte, n int) arrow.Array {
	return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0))
}

// t2 draws a batch of T2: a string key of 24 to 48 bytes that share 16.
func (g *generator) t2(n int) arrow.RecordBatch {
	keys := array.NewStringBuilder(memory.DefaultAllocator)
	rest := g.keyed(n, func(d uint64) {
		var digits [16]byte
		hexDigits(digits[:], harness.Mix(d))
		tail := "................................"[:harness.Mix(d+1)%25]
		keys.Append("tenant-0000/acct" + string(digits[:8]) + tail)
	})
	return array.NewRecordBatch(schemaT2, append([]arrow.Array{keys.NewArray()}, rest...), int64(n))
}

// t3 draws a batch of T3: the composite key (tenant, id, ts).
func (g *generator) t3(n int) arrow.RecordBatch {
	tenants := array.NewInt32Builder(memory.DefaultAllocator)
	ids := array.NewStringBuilder(memory.DefaultAllocator)
	times := array.NewTimestampBuilder(memory.DefaultAllocator, arrow.FixedWidthTypes.Timestamp_us.(*arrow.TimestampType))
	rest := g.keyed(n, func(d uint64) {
		u := float64(harness.Mix(d+2)>>11) * math.Pow(2, -53)
		tenants.Append(int32(math.Pow(1000, u))) // few large tenants, many small ones
		ids.Append(fmt.Sprintf("%012x", harness.Mix(d)>>16))
		times.Append(arrow.Timestamp(1_700_000_000_000_000 + int64(harness.Mix(d+3)%1_000_000_000)))
	})
	return array.NewRecordBatch(schemaT3, append([]arrow.Array{tenants.NewArray(), ids.NewArray(), times.NewArray()}, rest...), int64(n))
}

// keyed draws the payload of n rows and hands the key numbers to key.
func (g *generator) keyed(n int, key func(d uint64)) []arrow.Array {
	t := newT1Rows(n)
	for i := range n {
		d, row := g.next()
		key(d)
		t.draw(i, row)
	}
	return t.payload()
}
