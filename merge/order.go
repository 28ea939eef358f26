package merge

import (
	"cmp"
	"math/bits"
	"slices"
)

// Rows are ordered as packed numbers: the leading bits of the key prefix,
// relative to the smallest one, and behind them the row number:
//
//	| (prefix - min) >> cut | row number |
//	 63                      rowBits    0
//
// Sorting the plain numbers is stable in the row number, moves 8 bytes a row and
// needs no comparison function. Rows whose leading bits are equal are put right
// afterwards by the whole key.

// insertionRowsMax is the size below which insertion sort beats a partition.
const insertionRowsMax = 48

// orderer is the reusable scratch memory of one sort or one union.
type orderer struct {
	packed, spare []uint64
	counts        []uint32
}

// order returns the rows whose prefixes are given as packed numbers in key order
// and by row number among equal keys; the low rowBits of each are the row number.
// compare orders two rows by their whole keys and is nil when prefixes are exact.
// whole tells that equal bits above the row number mean equal keys. The result is
// scratch memory, valid until the next call.
func (o *orderer) order(prefixes []uint64, exact bool, compare func(i, j int) int) (rows []uint64, rowBits uint, whole bool) {
	n := len(prefixes)
	lo, hi := prefixes[0], prefixes[0]
	for _, p := range prefixes {
		lo, hi = min(lo, p), max(hi, p)
	}
	rowBits = uint(bits.Len(uint(n - 1)))
	keyBits := uint(bits.Len64(hi - lo))
	cut := uint(0)
	if keyBits+rowBits > 64 {
		cut = keyBits + rowBits - 64
	}
	o.packed = resize(o.packed, n)
	for i, p := range prefixes {
		o.packed[i] = (p-lo)>>cut<<rowBits | uint64(i)
	}
	o.sort(o.packed, keyBits-cut+rowBits)
	whole = exact && cut == 0
	if !whole {
		repairTies(o.packed, rowBits, prefixes, compare)
	}
	return o.packed, rowBits, whole
}

// sort orders a, whose numbers are below 2^width, ascending.
func (o *orderer) sort(a []uint64, width uint) {
	if len(a) <= insertionRowsMax {
		insertionSort(a)
		return
	}
	o.spare = resize(o.spare, len(a))
	o.partition(a, o.spare, width)
}

// partition spreads a over buckets by its leading bits; what then is out of order
// is near its place. Crowded buckets, which only skewed keys make, are
// partitioned again by the range that they really have, so each level removes
// at least 5 bits and the depth is bounded.
func (o *orderer) partition(a, spare []uint64, width uint) {
	n := len(a)
	bucketBits := min(uint(bits.Len(uint(n-1))), partitionBitsMax, width)
	shift := width - bucketBits
	o.counts = resize(o.counts, 1<<bucketBits+1)
	counts := o.counts
	clear(counts)
	for _, v := range a {
		counts[v>>shift+1]++
	}
	crowded := false
	sum := uint32(0)
	for i, c := range counts {
		crowded = crowded || c > insertionRowsMax
		sum += c
		counts[i] = sum
	}
	for _, v := range a {
		b := v >> shift
		spare[counts[b]] = v
		counts[b]++
	}
	copy(a, spare)
	if crowded {
		o.partitionCrowded(a, spare, shift)
	}
	insertionSort(a)
}

// partitionBitsMax bounds the counters to what fits into the first-level cache
// together with the write positions.
const partitionBitsMax = 15

func (o *orderer) partitionCrowded(a, spare []uint64, shift uint) {
	for lo := 0; lo < len(a); {
		bucket := a[lo] >> shift
		hi := lo + 1
		for hi < len(a) && a[hi]>>shift == bucket {
			hi++
		}
		if hi-lo > insertionRowsMax {
			o.partitionRange(a[lo:hi], spare[lo:hi])
		}
		lo = hi
	}
}

func (o *orderer) partitionRange(a, spare []uint64) {
	lo, hi, sorted := a[0], a[0], true
	last := a[0]
	for _, v := range a {
		sorted = sorted && v >= last
		lo, hi, last = min(lo, v), max(hi, v), v
	}
	if sorted {
		return
	}
	for i := range a {
		a[i] -= lo
	}
	o.partition(a, spare, uint(bits.Len64(hi-lo)))
	for i := range a {
		a[i] += lo
	}
}

func insertionSort(a []uint64) {
	for i := 1; i < len(a); i++ {
		v := a[i]
		j := i
		for j > 0 && a[j-1] > v {
			a[j] = a[j-1]
			j--
		}
		a[j] = v
	}
}

// repairTies sorts every stretch of equal leading bits by whole prefix, whole
// key and row number.
func repairTies(a []uint64, rowBits uint, prefixes []uint64, compare func(i, j int) int) {
	mask := uint64(1)<<rowBits - 1
	less := func(x, y uint64) int {
		i, j := int(x&mask), int(y&mask)
		if c := cmp.Compare(prefixes[i], prefixes[j]); c != 0 {
			return c
		}
		if compare != nil {
			if c := compare(i, j); c != 0 {
				return c
			}
		}
		return cmp.Compare(x, y)
	}
	for lo := 0; lo < len(a); {
		hi := lo + 1
		for hi < len(a) && a[hi]>>rowBits == a[lo]>>rowBits {
			hi++
		}
		if hi-lo == 2 {
			if less(a[lo], a[lo+1]) > 0 {
				a[lo], a[lo+1] = a[lo+1], a[lo]
			}
		} else if hi-lo > 2 && !slices.IsSortedFunc(a[lo:hi], less) {
			slices.SortFunc(a[lo:hi], less)
		}
		lo = hi
	}
}

// resize returns a slice of length n, reusing s where it is large enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
