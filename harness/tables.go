package harness

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline"
)

// Kind is a kind of table that a load can fill.
type Kind string

// The tables. All have the payload a BIGINT, b DOUBLE, c 16 hexadecimal digits.
const (
	T1          Kind = "t1"     // key k BIGINT
	T2          Kind = "t2"     // key k STRING of 24 to 48 bytes that share a prefix of 16
	T3          Kind = "t3"     // key (tenant INT, zipfian; id STRING of 12 bytes; ts TIMESTAMP(3))
	AppendTable Kind = "append" // no key; id BIGINT numbers the rows
)

// Tenants is the number of tenants of T3.
const Tenants = 1000

// t2Prefix is shared by all keys of T2: the worst case for sorting by prefix.
const t2Prefix = "tideline-key-02/"

// t3Epoch is 2024-01-01T00:00:00 in milliseconds.
const t3Epoch = 1704067200000

var payload = []arrow.Field{
	{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "b", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true},
}

// keyFields are the leading columns of a kind of table.
func (k Kind) keyFields() []arrow.Field {
	switch k {
	case T1:
		return []arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}
	case T2:
		return []arrow.Field{{Name: "k", Type: arrow.BinaryTypes.String}}
	case T3:
		return []arrow.Field{
			{Name: "tenant", Type: arrow.PrimitiveTypes.Int32},
			{Name: "id", Type: arrow.BinaryTypes.String},
			{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Millisecond}},
		}
	default:
		return []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
	}
}

// Schema is the Arrow schema of a kind of table.
func (k Kind) Schema() *arrow.Schema { return arrow.NewSchema(append(k.keyFields(), payload...), nil) }

// PrimaryKey names the key columns; none for an append table.
func (k Kind) PrimaryKey() []string {
	if k == AppendTable {
		return nil
	}
	var names []string
	for _, f := range k.keyFields() {
		names = append(names, f.Name)
	}
	return names
}

// Definition is what Create takes.
func (k Kind) Definition(buckets int) tideline.Definition {
	options := map[string]string{"bucket": strconv.Itoa(buckets)}
	if k == AppendTable {
		options["bucket-key"] = "id"
	}
	return tideline.Definition{Columns: k.Schema(), PrimaryKey: k.PrimaryKey(), Options: options}
}

// Check refuses an unknown kind.
func (k Kind) Check() error {
	switch k {
	case T1, T2, T3, AppendTable:
		return nil
	}
	return fmt.Errorf("unknown table %q: want t1, t2, t3 or append", k)
}

// rows builds the records of one kind of table.
type rows struct {
	kind    Kind
	keys    Keys
	seed    uint64
	builder *array.RecordBuilder
	text    []byte
}

func newRows(kind Kind, p Profile, n int) *rows {
	b := array.NewRecordBuilder(memory.DefaultAllocator, kind.Schema())
	b.Reserve(n)
	return &rows{kind: kind, keys: p.Keys, seed: p.Seed, builder: b}
}

// add appends the row with a key number; i numbers the rows of the load and
// makes the payload.
func (r *rows) add(number, i uint64) {
	switch key := r.keys.key(number); r.kind {
	case T1:
		r.builder.Field(0).(*array.Int64Builder).Append(int64(key))
	case T2:
		r.text = r.t2Key(r.text[:0], key)
		r.builder.Field(0).(*array.StringBuilder).BinaryBuilder.Append(r.text)
	case T3:
		r.t3Key(key)
	default:
		r.builder.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	r.payload(i)
}

// marker appends the m-th marker. Each lies before all other keys and before the
// markers that came earlier, so that files and runs without it are pruned by
// their statistics.
func (r *rows) marker(m, i uint64) {
	switch r.kind {
	case T2:
		r.builder.Field(0).(*array.StringBuilder).Append(t2Marker(m))
	case T3:
		r.builder.Field(0).(*array.Int32Builder).Append(-1)
		r.builder.Field(1).(*array.StringBuilder).Append(t3Marker(m))
		r.builder.Field(2).(*array.TimestampBuilder).Append(t3Epoch)
	default:
		r.builder.Field(0).(*array.Int64Builder).Append(-1 - int64(m))
	}
	r.payload(i)
}

func t2Marker(m uint64) string { return fmt.Sprintf("!%023d", uint64(1)<<62-m) }
func t3Marker(m uint64) string { return fmt.Sprintf("%012d", 999_999_999_999-m%1_000_000_000_000) }

// whereMarker finds the m-th marker.
func (k Kind) whereMarker(m uint64) *tideline.Predicate {
	switch k {
	case T2:
		return tideline.Eq("k", t2Marker(m))
	case T3:
		return tideline.And(tideline.Eq("tenant", int32(-1)), tideline.Eq("id", t3Marker(m)))
	case T1:
		return tideline.Eq("k", -1-int64(m))
	default:
		return tideline.Eq("id", -1-int64(m))
	}
}

func (r *rows) payload(i uint64) {
	x := Mix(r.seed<<40 | i)
	n := r.builder.Schema().NumFields()
	r.builder.Field(n - 3).(*array.Int64Builder).Append(int64(x))
	r.builder.Field(n - 2).(*array.Float64Builder).Append(unit(Mix(x + 1)))
	r.text = appendHex(r.text[:0], Mix(x+2))
	r.builder.Field(n - 1).(*array.StringBuilder).BinaryBuilder.Append(r.text)
}

// t2Key is the prefix and 8 to 32 digits, as many as the key says. Increasing
// keys begin with all 16 hexadecimal digits of the number, to stay increasing.
func (r *rows) t2Key(dst []byte, key uint64) []byte {
	dst = append(dst, t2Prefix...)
	x := Mix(key)
	if r.keys == KeysAppend {
		dst = appendHex(dst, key)
		return appendDigits(dst, x, int(x%17))
	}
	return appendDigits(dst, x, 8+int(x%25))
}

func (r *rows) t3Key(key uint64) {
	x := Mix(key)
	tenant, ts := int32(zipfRank(x, Tenants)), t3Epoch+int64(x%(365*24*3600*1000))
	r.text = appendDigits(r.text[:0], Mix(x), 12)
	if r.keys == KeysAppend {
		tenant, ts = int32(key>>16), t3Epoch+int64(key)
		r.text = append(r.text[:0], fmt.Sprintf("%012d", key%1_000_000_000_000)...)
	}
	r.builder.Field(0).(*array.Int32Builder).Append(tenant)
	r.builder.Field(1).(*array.StringBuilder).BinaryBuilder.Append(r.text)
	r.builder.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(ts))
}

// record hands over the rows added so far. The caller releases it.
func (r *rows) record() arrow.RecordBatch { return r.builder.NewRecordBatch() }

func (r *rows) release() { r.builder.Release() }

const hexDigits = "0123456789abcdef"

// appendHex appends 16 hexadecimal digits.
func appendHex(dst []byte, x uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[x>>shift&15])
	}
	return dst
}

const digits64 = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

// appendDigits appends n digits of 6 random bits each.
func appendDigits(dst []byte, x uint64, n int) []byte {
	for i := range n {
		if i%10 == 0 {
			x = Mix(x)
		}
		dst = append(dst, digits64[x>>(i%10*6)&63])
	}
	return dst
}
