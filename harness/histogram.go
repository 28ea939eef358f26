package harness

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is what a histogram can tell apart; longer times count as this one.
const longest = 10 * time.Minute

// histogram collects times with three digits. It may be used from any goroutine.
type histogram struct {
	mutex sync.Mutex
	times *hdrhistogram.Histogram
}

func newHistogram() *histogram {
	return &histogram{times: hdrhistogram.New(1, int64(longest), 3)}
}

func (h *histogram) record(d time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	_ = h.times.RecordValue(int64(min(max(d, 1), longest))) // the range is kept
}

// Times are percentiles in nanoseconds; all zero when Count is.
type Times struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	Max   time.Duration `json:"max_ns"`
}

func (h *histogram) summary() Times {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	at := func(q float64) time.Duration { return time.Duration(h.times.ValueAtQuantile(q)) }
	return Times{Count: h.times.TotalCount(), P50: at(50), P99: at(99), P999: at(99.9), Max: time.Duration(h.times.Max())}
}
