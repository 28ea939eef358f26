package harness

import (
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/tideline-db/tideline"
)

// memoryInterval is the pace at which memory is looked at.
const memoryInterval = 50 * time.Millisecond

// gauges keep the peaks of the Go heap and of the rows in memory.
type gauges struct {
	heap  atomic.Uint64 // bytes of live and dead objects
	rows  int64         // in memory, when there were most
	bytes int64
}

// watch samples until the returned function is called.
func (m *gauges) watch(t *tideline.Table) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(memoryInterval)
		defer tick.Stop()
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			metrics.Read(heap)
			m.heap.Store(max(m.heap.Load(), heap[0].Value.Uint64()))
			if stats, err := t.Stats(context.Background()); err == nil {
				if rows := stats.BuildingRows + stats.SealedRows; rows > m.rows {
					m.rows, m.bytes = rows, stats.BuildingBytes+stats.SealedBytes
				}
			}
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(quit); <-done }
}

// retained is the bytes that a row kept in memory; 0 when no sample saw a row.
func (m *gauges) retained() float64 {
	if m.rows == 0 {
		return 0
	}
	return float64(m.bytes) / float64(m.rows)
}
