package merge

import "slices"

// Sections partitions n key intervals, those of data files and of memory runs
// alike, into sections and sorted runs (source of the rule: the format's
// IntervalPartition). compareMin(i, j) orders the smallest keys of items i and j,
// compareMinMax(i, j) the smallest key of i against the greatest of j, and
// compareMax(i, j) the greatest keys; they return a number below, at or above 0.
//
//	run 0   |--a--|   |---c---|      |--e--|
//	run 1      |---b----|                     |-f-|
//	        section 0 (2 runs)       sec. 1   sec. 2
//
// The result is in key order. Items of different sections have no key in common,
// so sections are read one after the other; within a section the items of one
// run do not overlap and are in key order, and the runs are as few as possible.
// A section with one run needs no merge.
//
// Order of the runs within a section: by the lowest item number in them, so
// callers number older data lower.
func Sections(n int, compareMin, compareMinMax, compareMax func(i, j int) int) [][][]int {
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	slices.SortStableFunc(items, func(i, j int) int {
		if c := compareMin(i, j); c != 0 {
			return c
		}
		return compareMax(i, j)
	})
	var sections [][][]int
	for lo := 0; lo < n; {
		end := items[lo] // the item with the greatest key so far
		hi := lo + 1
		for hi < n && compareMinMax(items[hi], end) <= 0 {
			if compareMax(items[hi], end) > 0 {
				end = items[hi]
			}
			hi++
		}
		sections = append(sections, packRuns(items[lo:hi], compareMinMax, compareMax))
		lo = hi
	}
	return sections
}

// packRuns packs items, sorted by their smallest keys, into the fewest runs: each
// goes behind the run that ends first, if it starts after that run's end.
func packRuns(items []int, compareMinMax, compareMax func(i, j int) int) [][]int {
	var runs [][]int
	// heap of run numbers, the run with the smallest last key on top
	var heap []int
	last := func(k int) int { return runs[heap[k]][len(runs[heap[k]])-1] }
	less := func(a, b int) bool { return compareMax(last(a), last(b)) < 0 }
	for _, item := range items {
		if len(heap) > 0 && compareMinMax(item, last(0)) > 0 {
			runs[heap[0]] = append(runs[heap[0]], item)
			for k := 0; ; {
				c := 2*k + 1
				if c+1 < len(heap) && less(c+1, c) {
					c++
				}
				if c >= len(heap) || !less(c, k) {
					break
				}
				heap[k], heap[c] = heap[c], heap[k]
				k = c
			}
			continue
		}
		runs = append(runs, []int{item})
		heap = append(heap, len(runs)-1)
		for k := len(heap) - 1; k > 0 && less(k, (k-1)/2); k = (k - 1) / 2 {
			heap[k], heap[(k-1)/2] = heap[(k-1)/2], heap[k]
		}
	}
	slices.SortFunc(runs, func(a, b []int) int { return slices.Min(a) - slices.Min(b) })
	return runs
}
