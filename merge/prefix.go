package merge

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// A key prefix is an unsigned 64-bit number whose order agrees with key order:
// a smaller prefix means a smaller key, equal prefixes may hide a difference
// unless the prefix is exact. It is packed from the left:
//
//	| column 0        | column 1   | column 2 ...     |
//	| [null] value    | value      | leading bits     |
//	 63 ...                                    ... 0
//
// A prefix plan narrows the columns to what differs in the rows at hand:
// integers are stored relative to their minimum in the bits that their range
// needs, strings without the bytes that all of them share, constant columns
// not at all. Prefixes of one plan compare with each other and with no others.

// prefixPlan says how the prefixes of one set of rows are packed.
type prefixPlan struct {
	steps []prefixStep
	exact bool
}

type prefixStep struct {
	col   int
	base  uint64 // subtracted from the ordered value of a fixed-width column
	skip  int    // leading bytes not looked at in a bytes column
	width int    // bits of the value (bytes: what is left of 64)
	shift int    // where the value's lowest kept bit goes; negative: bits cut off
	null  int    // shift of the null bit, -1: the column has no nulls
}

// rowRange is a stretch of rows of one block.
type rowRange struct {
	keys   *keys
	lo, hi int
}

// planPrefix builds the plan for the rows of all ranges; sorted says that every
// range is in key order, which lets the first column be measured at its ends.
func planPrefix(ranges []rowRange, sorted bool) prefixPlan {
	p := prefixPlan{exact: true}
	if len(ranges) == 0 {
		return p
	}
	left := 64
	for c := range ranges[0].keys.cols {
		if left == 0 {
			p.exact = false
			break
		}
		s := prefixStep{col: c, null: -1}
		nulls := false
		for _, r := range ranges {
			nulls = nulls || r.keys.cols[c].nulls
		}
		if nulls {
			left--
			s.null = left
		}
		if ranges[0].keys.cols[c].kind == keyBytes {
			s.skip = commonPrefix(ranges, c, sorted && c == 0 && !nulls)
			s.width, s.shift = left, 0
			p.steps = append(p.steps, s)
			p.exact = false
			break
		}
		s.base, s.width = valueRange(ranges, c, sorted && c == 0 && !nulls)
		s.shift = left - s.width
		left = max(s.shift, 0)
		if s.width > 0 || nulls {
			p.steps = append(p.steps, s)
		}
		if s.shift < 0 || ranges[0].keys.cols[c].wide() {
			p.exact = false // what follows a column that was cut must not count
			break
		}
	}
	return p
}

// fill writes the prefixes of the rows of r to dst.
func (p *prefixPlan) fill(r rowRange, dst []uint64) {
	clear(dst)
	for _, s := range p.steps {
		c := &r.keys.cols[s.col]
		if c.kind == keyBytes {
			fillBytes(c, s, r.lo, r.hi, dst)
		} else {
			fillFixed(c, s, r.lo, r.hi, dst)
		}
	}
}

func fillFixed(c *keyColumn, s prefixStep, lo, hi int, dst []uint64) {
	left, right := uint(max(s.shift, 0)), uint(max(-s.shift, 0))
	if c.kind == keyInt64 && !c.nulls && s.null < 0 {
		base := s.base ^ 1<<63
		for i, v := range c.i64[lo:hi] {
			dst[i] |= (uint64(v) - base) >> right << left
		}
		return
	}
	if c.kind == keyInt32 && !c.nulls && s.null < 0 {
		base := s.base ^ 1<<31
		for i, v := range c.i32[lo:hi] {
			dst[i] |= uint64(uint32(v)-uint32(base)) >> right << left
		}
		return
	}
	for i := lo; i < hi; i++ {
		if c.null(i) {
			continue
		}
		v := (c.ordered(i) - s.base) >> right << left
		if s.null >= 0 {
			v |= 1 << uint(s.null)
		}
		dst[i-lo] |= v
	}
}

func fillBytes(c *keyColumn, s prefixStep, lo, hi int, dst []uint64) {
	cut := uint(64 - s.width)
	for i := lo; i < hi; i++ {
		if c.null(i) {
			continue
		}
		v := leading(c.data, int(c.offs[i])+s.skip, int(c.offs[i+1])) >> cut
		if s.null >= 0 {
			v |= 1 << uint(s.null)
		}
		dst[i-lo] |= v
	}
}

// leading returns data[from:to] as a big-endian number of its first 8 bytes,
// padded with zeros.
func leading(data []byte, from, to int) uint64 {
	n := to - from
	if n <= 0 {
		return 0
	}
	if from+8 <= len(data) {
		v := binary.BigEndian.Uint64(data[from:])
		if n < 8 {
			v = v >> uint(64-8*n) << uint(64-8*n)
		}
		return v
	}
	var b [8]byte
	copy(b[:], data[from:to])
	return binary.BigEndian.Uint64(b[:])
}

// wide tells whether ordered drops bits of the values.
func (k *keyColumn) wide() bool { return k.kind == keyDecimal && decimalBits(k.prec) > 64 }

// ordered returns the value of row i of a fixed-width column as an unsigned
// number of as many bits in the order of the type.
func (k *keyColumn) ordered(i int) uint64 {
	switch k.kind {
	case keyBool:
		return uint64(boolInt(bitutil.BitIsSet(k.bits, k.bitOff+i)))
	case keyInt8:
		return uint64(uint8(k.i8[i]) ^ 1<<7)
	case keyInt16:
		return uint64(uint16(k.i16[i]) ^ 1<<15)
	case keyInt32:
		return uint64(uint32(k.i32[i]) ^ 1<<31)
	case keyInt64:
		return uint64(k.i64[i]) ^ 1<<63
	case keyFloat32:
		return uint64(orderFloat32(k.f32[i]))
	case keyFloat64:
		return orderFloat64(k.f64[i])
	default:
		return orderDecimal(uint64(k.dec[i].HighBits()), k.dec[i].LowBits(), decimalBits(k.prec))
	}
}

// decimalBits is the number of bits of a two's complement number that holds
// every unscaled value of the precision: log2(10) is below 3.322.
func decimalBits(prec int32) int { return min(int(prec)*3322/1000+2, 128) }

// orderDecimal shifts the 128-bit value v to v + 2^(w-1), a number of w bits,
// and returns its first 64 bits. Values outside of w bits, which no valid file
// holds, are moved to the nearest end so that the order stays.
func orderDecimal(hi, lo uint64, w int) uint64 {
	if w > 64 {
		bias := uint64(1) << uint(w-65)
		hi += bias
		if w < 128 && hi>>uint(w-64) != 0 {
			return saturate(int64(hi-bias) < 0, 64)
		}
		if w == 128 {
			return hi
		}
		return hi<<uint(128-w) | lo>>uint(w-64)
	}
	bias := uint64(1) << uint(w-1)
	v, carry := bits.Add64(lo, bias, 0)
	if hi+carry != 0 || (w < 64 && v>>uint(w) != 0) {
		return saturate(int64(hi) < 0, w)
	}
	return v
}

func saturate(negative bool, w int) uint64 {
	if negative {
		return 0
	}
	return ^uint64(0) >> uint(64-w)
}

// valueRange returns the minimum of the ordered values and the bits that their
// range needs. With ends only the first and last row of each range are read.
func valueRange(ranges []rowRange, c int, ends bool) (base uint64, width int) {
	lo, hi := ^uint64(0), uint64(0)
	for _, r := range ranges {
		if r.lo == r.hi {
			continue
		}
		col := &r.keys.cols[c]
		if ends {
			lo, hi = min(lo, col.ordered(r.lo)), max(hi, col.ordered(r.hi-1))
			continue
		}
		l, h := col.extremes(r.lo, r.hi)
		lo, hi = min(lo, l), max(hi, h)
	}
	if lo > hi {
		return 0, 0
	}
	return lo, bits.Len64(hi - lo)
}

// extremes returns the smallest and greatest ordered value of rows [lo, hi),
// nulls left out; smallest > greatest when all are null.
func (k *keyColumn) extremes(lo, hi int) (smallest, greatest uint64) {
	switch {
	case k.kind == keyInt64 && !k.nulls:
		l, h := k.i64[lo], k.i64[lo]
		for _, v := range k.i64[lo:hi] {
			l, h = min(l, v), max(h, v)
		}
		return uint64(l) ^ 1<<63, uint64(h) ^ 1<<63
	case k.kind == keyInt32 && !k.nulls:
		l, h := k.i32[lo], k.i32[lo]
		for _, v := range k.i32[lo:hi] {
			l, h = min(l, v), max(h, v)
		}
		return uint64(uint32(l) ^ 1<<31), uint64(uint32(h) ^ 1<<31)
	}
	smallest, greatest = ^uint64(0), 0
	for i := lo; i < hi; i++ {
		if !k.null(i) {
			v := k.ordered(i)
			smallest, greatest = min(smallest, v), max(greatest, v)
		}
	}
	return smallest, greatest
}

// commonPrefix returns how many leading bytes all non-null values of a bytes
// column share. With ends only the first and last row of each range are read.
func commonPrefix(ranges []rowRange, c int, ends bool) int {
	var ref []byte
	n, found := 0, false
	for _, r := range ranges {
		col := &r.keys.cols[c]
		step := 1
		if ends {
			step = max(r.hi-1-r.lo, 1)
		}
		for i := r.lo; i < r.hi; i += step {
			if col.null(i) {
				continue
			}
			v := col.bytesAt(i)
			if !found {
				ref, n, found = v, len(v), true
				continue
			}
			if n = sharedBytes(ref, v, n); n == 0 {
				return 0
			}
		}
	}
	return n
}

// sharedBytes returns the length of the common prefix of a and b, at most n.
func sharedBytes(a, b []byte, n int) int {
	n = min(n, len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
