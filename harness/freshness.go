package harness

import (
	"context"
	"time"

	"github.com/tideline-db/tideline"
)

// watcher measures freshness: the time from just before a write until a scan
// returns one of its rows. It scans for the row again and again, without a pause.
type watcher struct {
	table   *tideline.Table
	layout  layout
	times   *histogram
	samples chan sample
}

// sample is one row to wait for.
type sample struct {
	watched
	begun time.Time
	epoch chan int64 // capacity 1: the epoch of the write, or closed when it failed
}

// offer gives a sample to the watcher if it is idle; else nil. The caller sends
// the epoch of the write.
func (w *watcher) offer(row *watched) chan int64 {
	if w == nil || row == nil {
		return nil
	}
	s := sample{watched: *row, begun: time.Now(), epoch: make(chan int64, 1)}
	select {
	case w.samples <- s:
		return s.epoch
	default:
		return nil
	}
}

func (w *watcher) run(ctx context.Context) error {
	for {
		select {
		case s := <-w.samples:
			if err := w.watch(ctx, s); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// watch scans until the row is there. A row that a later write replaced before a
// scan saw it is given up.
func (w *watcher) watch(ctx context.Context, s sample) error {
	epoch, known := int64(0), false
	for ctx.Err() == nil {
		seen, frontier, err := w.look(ctx, s.watched)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if seen {
			w.times.record(time.Since(s.begun))
			return nil
		}
		if !known {
			select {
			case epoch, known = <-s.epoch:
				if !known { // the write failed
					return nil
				}
			default:
			}
		}
		if known && frontier >= epoch {
			return nil
		}
	}
	return nil
}

func (w *watcher) look(ctx context.Context, row watched) (seen bool, frontier int64, err error) {
	r, err := w.table.Scan().Where(row.where).Read(ctx)
	if err != nil {
		return false, 0, err
	}
	defer r.Release()
	var hashes []uint64
	for r.Next() {
		if hashes, err = hashRows(r.RecordBatch(), w.layout.all, hashes); err != nil {
			return false, 0, err
		}
		for _, h := range hashes {
			seen = seen || h == row.hash
		}
	}
	return seen, r.Frontier(), r.Err()
}
