package actors

import (
	"sync/atomic"
)

// budget counts the bytes of rows in memory: building, sealed and pinned. A
// write takes its bytes before it gets an epoch; they come back when the last
// hold on them ends. It is admission only: taking never blocks here, the waiting
// happens with the caller's context at the coordinator.
//
// At most limit bytes plus one batch are ever taken: a batch is admitted while
// the count is below the limit, so that one batch larger than the whole budget
// can still be written into an empty engine.
type budget struct {
	limit   int64
	used    atomic.Int64
	waiters atomic.Int32
	wake    func() // tells the coordinator that bytes came back while somebody waits
}

// TryTake admits n bytes, or reports that the budget is used up.
func (b *budget) TryTake(n int64) bool {
	for {
		used := b.used.Load()
		if used > 0 && used+n > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// Take counts bytes without asking: memory that consolidation adds for a moment.
func (b *budget) Take(n int64) { b.used.Add(n) }

// Return gives bytes back and wakes who waits for them.
func (b *budget) Return(n int64) {
	if n == 0 {
		return
	}
	b.used.Add(-n)
	if b.waiters.Load() > 0 && b.wake != nil {
		b.wake()
	}
}

// Used returns the bytes taken; Limit the configured limit.
func (b *budget) Used() int64  { return b.used.Load() }
func (b *budget) Limit() int64 { return b.limit }
