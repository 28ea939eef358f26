package harness

import (
	"context"
	"sync"

	"github.com/tideline-db/tideline"
)

// ready is a batch that waits for its turn at the writer.
type ready struct {
	batch   *tideline.Batch
	changes []Change
	watch   *watched
	check   *Checkpoint
	rows    int
	err     error
}

// watched is a row to look for in scans.
type watched struct {
	where *tideline.Predicate
	hash  uint64
}

// aheadPerWorker bounds how many batches wait for the writer.
const aheadPerWorker = 4

// pipeline makes and prepares batches on several goroutines and hands them over
// in the order of the source.
//
//	feed --jobs--> worker \
//	     \-------> worker  > slots, in order --> the writing loop
type pipeline struct {
	slots  chan chan ready
	cancel context.CancelFunc
	done   sync.WaitGroup
}

type task struct {
	job  Job
	slot chan ready
}

// startPipeline begins to prepare batches of a feed, which it closes.
func startPipeline(ctx context.Context, feed Feed, l layout, w *tideline.Writer, workers int) *pipeline {
	ctx, cancel := context.WithCancel(ctx)
	p := &pipeline{slots: make(chan chan ready, aheadPerWorker*workers), cancel: cancel}
	tasks := make(chan task)
	p.done.Add(1 + workers)
	go func() {
		defer p.done.Done()
		defer close(p.slots)
		defer close(tasks)
		defer func() { _ = feed.Close() }() // only read from
		for {
			job, err := feed.Next()
			if err == nil && job == nil {
				return
			}
			slot := make(chan ready, 1)
			if err != nil {
				slot <- ready{err: err}
			}
			select {
			case p.slots <- slot:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			select {
			case tasks <- task{job, slot}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range workers {
		go func() {
			defer p.done.Done()
			for t := range tasks {
				t.slot <- prepare(t.job, l, w)
			}
		}()
	}
	return p
}

// next returns the next batch in order; ok is false at the end or when ctx ends.
func (p *pipeline) next(ctx context.Context) (r ready, ok bool) {
	select {
	case slot, open := <-p.slots:
		if !open {
			return ready{}, false
		}
		select {
		case r := <-slot:
			return r, true
		case <-ctx.Done():
			return ready{}, false
		}
	case <-ctx.Done():
		return ready{}, false
	}
}

func (p *pipeline) stop() {
	p.cancel()
	p.done.Wait()
}

// prepare makes one batch and does what needs no turn at the writer.
func prepare(job Job, l layout, w *tideline.Writer) ready {
	b, err := job()
	if err != nil {
		return ready{err: err}
	}
	defer b.Record.Release()
	r := ready{rows: int(b.Record.NumRows()), check: b.Checkpoint}
	if r.changes, r.err = l.changes(b.Record, b.Kinds, make([]Change, 0, r.rows)); r.err != nil {
		return r
	}
	if b.Watch != nil {
		r.watch = &watched{where: b.Watch.Where, hash: r.changes[b.Watch.Row].Row}
	}
	if b.Kinds == nil {
		r.batch, r.err = w.Prepare(b.Record)
	} else {
		r.batch, r.err = w.Prepare(b.Record, tideline.Kinds(b.Kinds))
	}
	return r
}
