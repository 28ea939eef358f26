package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tideline-db/tideline"
)

// freshness measures, for batches of one row, the time from before Write until
// another goroutine that keeps looking sees the row: idle against channel round
// trips, and the tail while commits run.
func freshness(c *config) ([]Result, error) {
	defer onCores(2)()
	samples := max(2000, min(20_000, c.rows/50))
	trip := channelRoundTrip(samples)
	idle, err := seen(c, samples, false)
	if err != nil {
		return nil, err
	}
	trip = (trip + channelRoundTrip(samples)) / 2
	busy, err := seen(c, samples, true)
	if err != nil {
		return nil, err
	}
	p50, p999 := median(idle), percentile(busy, 0.999)
	return []Result{
		{"H9-p50", float64(p50) / float64(trip), 5, "lower", "median time until a batch of one row is seen over a channel round trip, two cores",
			fmt.Sprintf("%s over %s", p50, trip)},
		{"H9-p999", p999.Seconds() * 1e3, 5, "lower", "99.9th percentile of that time while commits run, in milliseconds, two cores",
			fmt.Sprintf("%s, median %s", p999, median(busy))},
	}, nil
}

// seen writes single rows and returns how long each took to be seen.
func seen(c *config, samples int, commits bool) ([]time.Duration, error) {
	ctx := context.Background()
	t1 := shapes["t1"]
	t, w, _, err := written(ctx, c, t1, c.rows/10, 1000)
	if err != nil {
		return nil, err
	}
	batches := t1.batches(1024, 1)
	var target, when atomic.Int64 // the epoch looked for; when it was seen, in ns since began
	var done atomic.Bool
	began := time.Now()
	watcher := make(chan struct{})
	go func() {
		defer close(watcher)
		for !done.Load() {
			if want := target.Load(); want > 0 && t.Frontier() >= want {
				when.Store(int64(time.Since(began)))
				target.Store(0)
			}
		}
	}()
	committed := make(chan error, 1)
	go func() {
		var err error
		for commits && err == nil && !done.Load() {
			var p tideline.Prepared
			p, err = w.PrepareCommit(ctx, tideline.BetweenWrites())
			if err == nil {
				_, err = t.Commit(ctx, p)
			}
			if err == nil {
				err = t.Refresh(ctx)
			}
		}
		committed <- err
	}()
	times := make([]time.Duration, 0, samples)
	for i := 0; len(times) < samples; i++ {
		target.Store(t.Frontier() + 1)
		begin := int64(time.Since(began))
		if _, err := w.Write(ctx, batches[i%len(batches)]); err != nil {
			return nil, err
		}
		for target.Load() != 0 {
			runtime.Gosched()
		}
		times = append(times, time.Duration(when.Load()-begin))
	}
	done.Store(true)
	<-watcher
	err = <-committed
	return times, errors.Join(err, w.Discard(ctx), t.Close(ctx))
}
