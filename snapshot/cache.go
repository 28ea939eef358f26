package snapshot

import "sync/atomic"

// cacheWeightMax bounds each cache: entries of manifests, keys of progress files.
const cacheWeightMax = 1 << 18

// cache keeps immutable values by the name of the immutable file that they were
// read from. It is copied on every insertion, so reads need no lock; the oldest
// values leave when the weights add up to more than cacheWeightMax. A lost race
// between two insertions costs one of them, which is then read again.
type cache[K comparable, V any] struct {
	now atomic.Pointer[cacheState[K, V]]
}

type cacheState[K comparable, V any] struct {
	values map[K]cached[V]
	order  []K // oldest first
	weight int
}

type cached[V any] struct {
	value  V
	weight int
}

func (c *cache[K, V]) get(key K) (V, bool) {
	if s := c.now.Load(); s != nil {
		v, ok := s.values[key]
		return v.value, ok
	}
	var none V
	return none, false
}

func (c *cache[K, V]) put(key K, value V, weight int) {
	old := c.now.Load()
	next := &cacheState[K, V]{values: map[K]cached[V]{key: {value, weight}}, weight: weight}
	if weight > cacheWeightMax {
		return
	}
	if old != nil {
		if _, known := old.values[key]; known {
			return
		}
		drop := 0
		for kept := old.weight; kept+weight > cacheWeightMax; drop++ {
			kept -= old.values[old.order[drop]].weight
		}
		for _, k := range old.order[drop:] {
			next.values[k] = old.values[k]
			next.order = append(next.order, k)
			next.weight += old.values[k].weight
		}
	}
	next.order = append(next.order, key)
	c.now.CompareAndSwap(old, next)
}
