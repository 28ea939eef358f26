package actors

import "sync/atomic"

// epochWindow bounds the epochs under way: a slot is reused only below the
// frontier. The writer waits for its epoch before it gives the next one; the
// background cuts between, whose callers may not wait, are bounded by cutsMax.
const epochWindow = 1 << 10

// frontier is the highest epoch at and below which every epoch was acknowledged
// by all buckets it touched. Nobody sees a row above it, and a write returns
// when it covers the write's epoch.
//
//	ring slot of epoch e:  remaining -> 0 : marked = e
//	frontier f:            marked[f+1] == f+1 ? f = f+1 : stop
//
// The view is stored before the mark, and the mark before the look at the next
// epoch; then no advance is lost, whoever comes last makes it.
type frontier struct {
	at   atomic.Int64
	ring [epochWindow]epochSlot
}

type epochSlot struct {
	remaining atomic.Int64
	marked    atomic.Int64
	done      func() // set before the first acknowledgement can arrive; runs once, when the frontier passes
}

// At returns the frontier.
func (f *frontier) At() int64 { return f.at.Load() }

// Begin announces an epoch that touches buckets many buckets, before its first
// message is posted. done runs once, on the goroutine that moves the frontier
// over the epoch, and must not block. An epoch without buckets is marked here.
func (f *frontier) Begin(epoch int64, buckets int, done func()) {
	slot := &f.ring[epoch%epochWindow]
	slot.done = done
	slot.remaining.Store(int64(buckets))
	if buckets == 0 {
		f.mark(epoch, slot)
	}
}

// Ack is the acknowledgement of one bucket; its view is published already.
func (f *frontier) Ack(epoch int64) {
	slot := &f.ring[epoch%epochWindow]
	if slot.remaining.Add(-1) == 0 {
		f.mark(epoch, slot)
	}
}

func (f *frontier) mark(epoch int64, slot *epochSlot) {
	slot.marked.Store(epoch)
	for {
		at := f.at.Load()
		next := &f.ring[(at+1)%epochWindow]
		if next.marked.Load() != at+1 {
			return
		}
		done := next.done
		if f.at.CompareAndSwap(at, at+1) && done != nil {
			done()
		}
	}
}
