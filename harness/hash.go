package harness

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

const (
	hashStart = 0x243f6a8885a308d3
	hashNull  = 0x13198a2e03707344
	hashStep  = 0x9fb21c651e98df25
)

// hashRows writes a 64-bit hash of the values of columns for every row to dst. It
// looks at values only: the same row hashes the same in every batch. Of a single
// integer column it is a bijection.
func hashRows(record arrow.RecordBatch, columns []int, dst []uint64) ([]uint64, error) {
	n := int(record.NumRows())
	dst = dst[:0]
	for range n {
		dst = append(dst, hashStart)
	}
	for _, c := range columns {
		if err := hashColumn(record.Column(c), dst); err != nil {
			return nil, fmt.Errorf("column %s: %w", record.ColumnName(c), err)
		}
	}
	return dst, nil
}

func hashColumn(column arrow.Array, dst []uint64) error {
	switch a := column.(type) {
	case *array.Int64:
		hashEach(a, dst, func(i int) uint64 { return uint64(a.Value(i)) })
	case *array.Int32:
		hashEach(a, dst, func(i int) uint64 { return uint64(a.Value(i)) })
	case *array.Float64:
		hashEach(a, dst, func(i int) uint64 { return math.Float64bits(a.Value(i)) })
	case *array.Timestamp:
		hashEach(a, dst, func(i int) uint64 { return uint64(a.Value(i)) })
	case *array.String:
		hashEach(a, dst, func(i int) uint64 { return hashText(a.Value(i)) })
	case *array.Boolean:
		hashEach(a, dst, func(i int) uint64 {
			if a.Value(i) {
				return 1
			}
			return 0
		})
	default:
		return fmt.Errorf("rows with Arrow type %s cannot be compared", column.DataType())
	}
	return nil
}

func hashEach(a arrow.Array, dst []uint64, value func(i int) uint64) {
	if a.NullN() == 0 {
		for i := range dst {
			dst[i] = combine(dst[i], value(i))
		}
		return
	}
	for i := range dst {
		if a.IsNull(i) {
			dst[i] = combine(dst[i], hashNull) ^ hashNull
		} else {
			dst[i] = combine(dst[i], value(i))
		}
	}
}

// combine adds a value to a hash; the order of the values counts.
func combine(h, v uint64) uint64 { return Mix(bits.RotateLeft64(h*hashStep, 31) ^ v) }

// hashText hashes 8 bytes at a time.
func hashText(s string) uint64 {
	h := uint64(len(s)) + hashStart
	for len(s) >= 8 {
		v := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = combine(h, v)
		s = s[8:]
	}
	var tail [8]byte
	copy(tail[:], s)
	return combine(h, binary.LittleEndian.Uint64(tail[:]))
}

// Digest stands for a multiset of rows: their number and two sums of functions of
// the row hash. Rows can be added and taken away in any order. Two different
// multisets have the same digest with a probability of about 2^-64.
type Digest struct {
	Rows int64
	A, B uint64
}

func (d *Digest) add(hash uint64) {
	d.Rows++
	d.A += hash
	d.B += Mix(hash ^ hashStep)
}

func (d *Digest) remove(hash uint64) {
	d.Rows--
	d.A -= hash
	d.B -= Mix(hash ^ hashStep)
}

// String prints a digest for reports.
func (d Digest) String() string { return fmt.Sprintf("%d rows %016x%016x", d.Rows, d.A, d.B) }
