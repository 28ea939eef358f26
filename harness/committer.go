package harness

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tideline-db/tideline"
)

// committer makes snapshots while rows are written. By interval the table does
// it in the background. By rows the writing loop prepares, so that the cut lies
// between two writes and later writes are not in it, and another goroutine
// publishes and adopts.
type committer struct {
	table   *tideline.Table
	writer  *tideline.Writer
	every   int64 // rows, 0: not by rows
	waiting int64 // rows since the last cut
	queue   chan publication
	done    chan struct{}
	failed  atomic.Pointer[error]
	times   *histogram
	count   *atomic.Int64
}

type publication struct {
	prepared tideline.Prepared
	begun    time.Time
	ended    chan struct{} // closed when it was published, or failed
}

// publishQueue bounds the prepares in flight.
const publishQueue = 2

func startCommitter(t *tideline.Table, w *tideline.Writer, rows int64, times *histogram, count *atomic.Int64) *committer {
	c := &committer{table: t, writer: w, every: rows, queue: make(chan publication, publishQueue), done: make(chan struct{}), times: times, count: count}
	go func() {
		defer close(c.done)
		for p := range c.queue {
			if c.failed.Load() == nil {
				if err := c.publish(p); err != nil {
					c.failed.Store(&err)
				}
			}
			close(p.ended)
		}
	}()
	return c
}

// publish finishes what was begun even when the run is being interrupted.
func (c *committer) publish(p publication) error {
	ctx := context.Background()
	commit, err := c.table.Commit(ctx, p.prepared)
	if err != nil {
		return err
	}
	if err := c.table.Refresh(ctx); err != nil {
		return err
	}
	if commit.ID > 0 {
		c.times.record(time.Since(p.begun))
		c.count.Add(1)
	}
	return nil
}

// wrote counts rows and cuts when there are enough.
func (c *committer) wrote(ctx context.Context, rows int) error {
	c.waiting += int64(rows)
	if c.every == 0 || c.waiting < c.every {
		return c.err()
	}
	_, err := c.cut(ctx)
	return err
}

// cut prepares what was written since the last cut and has it published.
func (c *committer) cut(ctx context.Context) (publication, error) {
	p := publication{begun: time.Now(), ended: make(chan struct{})}
	var err error
	if p.prepared, err = c.writer.PrepareCommit(ctx); err != nil {
		return p, err
	}
	c.waiting = 0
	c.queue <- p
	return p, c.err()
}

// makeRoom commits everything and waits for it: then its memory is free, or held
// by readers, for whom a write waits.
func (c *committer) makeRoom(ctx context.Context) error {
	p, err := c.cut(ctx)
	if err != nil {
		return err
	}
	<-p.ended
	return c.err()
}

// finish waits for the publications and commits the rest.
func (c *committer) finish(ctx context.Context) error {
	close(c.queue)
	<-c.done
	if err := c.err(); err != nil {
		return err
	}
	begun := time.Now()
	commit, err := c.writer.Commit(ctx)
	if err == nil && commit.ID > 0 {
		c.times.record(time.Since(begun))
		c.count.Add(1)
	}
	return err
}

func (c *committer) err() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// abandon waits for what is in flight, after a failure.
func (c *committer) abandon() {
	close(c.queue)
	<-c.done
}
