// Package workload generates the tables that every peer of the comparison
// writes, and the hash by which their answers are compared. Each implementation
// generates the same rows from the same arithmetic, so no data files travel.
//
//	T1  k int64, a int64, b float64, c 16 hex characters
//	T4  k int32, f1..f20 10 hex characters each
//
// Keys are random, a fifth of the rows overwrite an earlier key.
package workload

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Mix is the finaliser of splitmix64, the source of all randomness here.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func stream(s, i uint64) uint64 { return Mix(s<<40 | i) }

// Table is one of the two tables.
type Table struct {
	Name   string
	Schema *arrow.Schema
	texts  int // text columns
	digits int // characters of one text
}

// Named returns table T1 or T4.
func Named(name string) (Table, error) {
	key := arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64}
	switch name {
	case "T1":
		return Table{name, arrow.NewSchema([]arrow.Field{key,
			{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			{Name: "b", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
			{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true},
		}, nil), 1, 16}, nil
	case "T4":
		key.Type = arrow.PrimitiveTypes.Int32
		fields := []arrow.Field{key}
		for f := range 20 {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("f%d", f+1), Type: arrow.BinaryTypes.String, Nullable: true})
		}
		return Table{name, arrow.NewSchema(fields, nil), 20, 10}, nil
	}
	return Table{}, fmt.Errorf("table %q: want T1 or T4", name)
}

// Generator draws the rows of a table in their order.
type Generator struct {
	table         Table
	seed          uint64
	row, distinct uint64
}

// NewGenerator starts at row 0.
func NewGenerator(t Table, seed uint64) *Generator { return &Generator{table: t, seed: seed} }

// key is the number of the next row's key.
func (g *Generator) key() uint64 {
	i := g.row
	g.row++
	if g.distinct > 0 && Mix(g.seed+2*i)%1000 < 200 {
		return Mix(g.seed+2*i+1) % g.distinct
	}
	g.distinct++
	return g.distinct - 1
}

// Batch draws the next n rows into buffers of their own.
func (g *Generator) Batch(n int) arrow.RecordBatch {
	first := g.row
	var columns []arrow.Array
	if g.table.Name == "T4" {
		k := make([]int32, n)
		for i := range k {
			k[i] = int32(g.key() * 2654435769 & 0x7fffffff) // a bijection on 31 bits
		}
		columns = append(columns, fixed(arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(k), n))
	} else {
		k, a, b := make([]int64, n), make([]int64, n), make([]float64, n)
		for i := range k {
			at := first + uint64(i)
			k[i], a[i] = int64(Mix(g.key())>>1), int64(stream(1, at))
			b[i] = float64(stream(2, at)>>11) * 0x1p-53
		}
		columns = append(columns, fixed(arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(k), n),
			fixed(arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(a), n),
			fixed(arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(b), n))
	}
	for f := range g.table.texts {
		s := uint64(f + 1)
		if g.table.Name == "T1" {
			s = 3
		}
		columns = append(columns, g.text(s, first, n))
	}
	return array.NewRecordBatch(g.table.Schema, columns, int64(n))
}

// text is a column of the leading hex digits of a stream.
func (g *Generator) text(s, first uint64, n int) arrow.Array {
	const alphabet = "0123456789abcdef"
	digits := g.table.digits
	chars, offsets := make([]byte, digits*n), make([]int32, n+1)
	for i := range n {
		v := stream(s, first+uint64(i))
		for j := range digits {
			chars[i*digits+j] = alphabet[v>>(60-4*j)&15]
		}
		offsets[i+1] = int32((i + 1) * digits)
	}
	return array.NewStringData(array.NewData(arrow.BinaryTypes.String, n,
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(chars)}, nil, 0, 0))
}

func fixed(dt arrow.DataType, values []byte, n int) arrow.Array {
	return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0))
}

// Result sums up an answer.
type Result struct {
	Hash    string
	Ordered bool // keys strictly ascending over all batches
	Rows    int64
}

// Hash is the sum over rows of mix(key) xor mix(hash of the row), which does not
// depend on the order of the rows.
func (t Table) Hash(batches []arrow.RecordBatch) Result {
	out := Result{Ordered: true}
	var sum uint64
	last := int64(math.MinInt64)
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			k, h := t.row(b, i)
			sum += Mix(uint64(k)) ^ Mix(h)
			out.Ordered = out.Ordered && k > last
			last = k
		}
		out.Rows += b.NumRows()
	}
	out.Hash = fmt.Sprintf("%016x", sum)
	return out
}

func (t Table) row(b arrow.RecordBatch, i int) (key int64, h uint64) {
	if t.Name == "T4" {
		key = int64(b.Column(0).(*array.Int32).Value(i))
		for f := 1; f <= t.texts; f++ {
			h = text(h, b.Column(f).(*array.String).Value(i))
		}
		return key, h
	}
	key = b.Column(0).(*array.Int64).Value(i)
	h = Mix(uint64(b.Column(1).(*array.Int64).Value(i)))
	h = Mix(h ^ math.Float64bits(b.Column(2).(*array.Float64).Value(i)))
	return key, text(h, b.Column(3).(*array.String).Value(i))
}

// text mixes the 8-byte little-endian words of a string, padded with zeros.
func text(h uint64, s string) uint64 {
	for p := 0; p < len(s); p += 8 {
		var w uint64
		for j := min(8, len(s)-p) - 1; j >= 0; j-- {
			w = w<<8 | uint64(s[p+j])
		}
		h = Mix(h ^ w)
	}
	return h
}
