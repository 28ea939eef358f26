package merge

import (
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// sortScratch is what one Sort needs besides its result.
type sortScratch struct {
	orderer
	prefixes []uint64
}

var sortPool = sync.Pool{New: func() any { return new(sortScratch) }}

// Sort returns the stable permutation that puts the first n rows of cols into key
// order: row i of the result is row sel[i] of the input. nil means that the rows
// already are in key order. cols are the columns of the layout; only key columns
// are read. Safe for concurrent use. It panics when a key column is missing or of
// a type that cannot be a key: that was to be refused when the table was opened.
func Sort(layout Layout, cols []arrow.Array, n int) []int32 {
	k, err := newKeys(layout, cols)
	if err != nil {
		panic(err)
	}
	if n < 2 || len(k.cols) == 0 || inOrder(&k, n) {
		return nil
	}
	s := sortPool.Get().(*sortScratch)
	defer sortPool.Put(s)
	s.prefixes = resize(s.prefixes, n)
	exact := true
	if k.i64 != nil {
		for i, v := range k.i64[:n] {
			s.prefixes[i] = uint64(v) ^ 1<<63
		}
	} else {
		r := rowRange{&k, 0, n}
		p := planPrefix([]rowRange{r}, false)
		p.fill(r, s.prefixes)
		exact = p.exact
	}
	var compare func(i, j int) int
	if !exact {
		compare = func(i, j int) int { return compareKeys(&k, i, &k, j) }
	}
	packed, rowBits, _ := s.order(s.prefixes, exact, compare)
	mask := uint64(1)<<rowBits - 1
	sel := make([]int32, n)
	for i, v := range packed {
		sel[i] = int32(v & mask)
	}
	return sel
}

// inOrder tells whether the first n keys ascend (equal keys allowed). It stops at
// the first descent, so it costs nothing on shuffled input.
func inOrder(k *keys, n int) bool {
	if k.i64 != nil {
		for i := 1; i < n; i++ {
			if k.i64[i-1] > k.i64[i] {
				return false
			}
		}
		return true
	}
	for i := 1; i < n; i++ {
		if compareKeys(k, i-1, k, i) > 0 {
			return false
		}
	}
	return true
}
