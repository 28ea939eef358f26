package bucket

import "sync/atomic"

// Hold counts who keeps the rows of one segment: the bucket itself and every
// reader or ticket that pinned a view with it. It is taken only from non-zero,
// so rows that were given back cannot come to life again, and it is counted,
// never finalised.
type Hold struct {
	count atomic.Int64
	bytes atomic.Int64
}

func newHold() *Hold {
	h := &Hold{}
	h.count.Store(1) // the bucket's own
	return h
}

// Take adds a hold; false when the last one ended already.
func (h *Hold) Take() bool {
	for {
		n := h.count.Load()
		if n == 0 {
			return false
		}
		if h.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Drop ends one hold. When it was the last one, bytes is what the rows retained.
func (h *Hold) Drop() (bytes int64, last bool) {
	if h.count.Add(-1) > 0 {
		return 0, false
	}
	return h.bytes.Load(), true
}

// Held are the holds of the segments in the view.
func (v *View) Held() []*Hold {
	held := make([]*Hold, len(v.Segments))
	for i, seg := range v.Segments {
		held[i] = seg.hold
	}
	return held
}
