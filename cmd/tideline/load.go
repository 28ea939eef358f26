package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/tideline-db/tideline"
)

const (
	// chunksAhead is how many batches are parsed while one is written.
	chunksAhead = 2
	// commitTries bounds the tries of one commit after a conflict or a doubtful
	// answer; each is safe to repeat.
	commitTries = 5
	// memoryTries bounds how often a commit makes room for one batch.
	memoryTries = 3
	// stopPatience is how long a source may take to notice that it is not wanted.
	stopPatience = 2 * time.Second
)

// load moves the chunks of a source into a table.
//
//	source --chunk--> write --+--> write ...
//	                          +--> commit, when due
//
// Writing and committing take turns; the source parses ahead meanwhile.
type load struct {
	flags   *ingestFlags
	table   *tideline.Table
	source  source
	rejects *rejects
	streams streams

	sourceErr error // valid once the channel of chunks is closed
	// stop ends the source; false when it is stuck in a read and was left behind.
	stop func() bool

	writer   *tideline.Writer
	progress *progress
	waiting  int64  // rows written since the last commit
	last     string // place of the last row that was written
}

// run loads everything. When the input ends early, by an error or an interrupt,
// what was written before is committed all the same.
func (l *load) run(ctx context.Context) error {
	// What has begun is finished: an interrupt stops between batches only.
	work := context.WithoutCancel(ctx)
	var err error
	if l.writer, err = l.table.Writer(work); err != nil {
		return err
	}
	l.progress = newProgress(l.source, l.streams.err)
	defer l.progress.end()
	err = l.pump(ctx, work)
	var commitErr error
	if !broken(err) {
		commitErr = l.commit(work)
	}
	l.progress.end()
	fmt.Fprintln(l.streams.err, l.report())
	if l.stop() {
		l.source.close()
	}
	if err == nil {
		err = commitErr
	} else if commitErr != nil {
		err = fmt.Errorf("%w; and the commit failed: %w", err, commitErr)
	}
	if err != nil {
		_ = l.writer.Discard(work) // the error that came first matters
		return err
	}
	return l.writer.Close(work)
}

// broken says whether the session cannot commit any more.
func broken(err error) bool {
	for _, end := range []error{tideline.ErrPoisoned, tideline.ErrFenced, tideline.ErrClosed} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// pump writes chunks until the input ends, something fails or ctx does. The source
// may still run then: stop ends it.
func (l *load) pump(ctx, work context.Context) error {
	chunks := l.startSource(ctx)
	var due <-chan time.Time
	if l.flags.interval > 0 {
		ticker := time.NewTicker(l.flags.interval)
		defer ticker.Stop()
		due = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return l.interrupted()
		case <-due:
			if err := l.commit(work); err != nil {
				return err
			}
		case c, ok := <-chunks:
			if !ok {
				if errors.Is(l.sourceErr, errStopped) {
					return l.interrupted()
				}
				return l.sourceErr
			}
			err := l.chunk(work, &c)
			c.rows.Release()
			if err != nil {
				return err
			}
		}
	}
}

// startSource runs the source in a goroutine of its own until it ends or stop is
// called.
func (l *load) startSource(ctx context.Context) <-chan chunk {
	ctx, cancel := context.WithCancel(ctx)
	chunks := make(chan chunk, chunksAhead)
	go func() {
		defer close(chunks)
		l.sourceErr = l.source.run(ctx, func(c chunk) error {
			select {
			case chunks <- c:
				return nil
			case <-ctx.Done():
				c.rows.Release()
				return errStopped
			}
		})
	}()
	l.stop = func() bool {
		cancel()
		patience := time.After(stopPatience)
		for {
			select {
			case c, ok := <-chunks:
				if !ok {
					return true
				}
				c.rows.Release()
			case <-patience:
				return false
			}
		}
	}
	return chunks
}

func (l *load) interrupted() error {
	if l.last == "" {
		return errors.New("interrupted before anything was written")
	}
	if l.flags.offset == "" {
		return fmt.Errorf("interrupted; the input was taken up to %s, a second run would write those rows again", l.last)
	}
	return fmt.Errorf("interrupted; the input was taken up to %s, run again to go on", l.last)
}

// chunk writes a batch and commits when enough rows wait.
func (l *load) chunk(ctx context.Context, c *chunk) error {
	rows := int(c.rows.NumRows())
	if err := l.write(ctx, c, 0, rows); err != nil {
		return err
	}
	l.last = c.where(rows - 1)
	l.progress.at(c.done)
	if l.flags.rows > 0 && l.waiting >= l.flags.rows {
		return l.commit(ctx)
	}
	return nil
}

// write writes the rows [lo, hi) of a chunk. Of rows that the table refuses, the
// bad ones are found by halving.
func (l *load) write(ctx context.Context, c *chunk, lo, hi int) error {
	ack, err := l.accept(ctx, c, lo, hi)
	switch {
	case err == nil:
		l.waiting += int64(ack.Rows)
		l.progress.wrote(int64(ack.Rows), int64(ack.Skipped))
		return nil
	case !errors.Is(err, tideline.ErrInvalid):
		return fmt.Errorf("%s: %w", c.span(lo, hi), err)
	case hi-lo == 1:
		return l.rejects.bad(c.where(lo), err)
	case !l.rejects.skip:
		return l.rejects.bad(l.firstBad(c, lo, hi, err))
	}
	middle := lo + (hi-lo)/2
	if err := l.write(ctx, c, lo, middle); err != nil {
		return err
	}
	return l.write(ctx, c, middle, hi)
}

// firstBad finds the first row that does not fit into the table. Nothing is
// written. When each row fits, the whole range is to blame.
func (l *load) firstBad(c *chunk, lo, hi int, reason error) (string, error) {
	n := sort.Search(hi-lo, func(n int) bool {
		_, err := l.prepare(c, lo, lo+n+1)
		return err != nil
	})
	if n == hi-lo {
		return c.span(lo, hi), reason
	}
	if _, err := l.prepare(c, lo+n, lo+n+1); err != nil {
		reason = err
	}
	return c.where(lo + n), reason
}

func (l *load) prepare(c *chunk, lo, hi int) (*tideline.Batch, error) {
	part := c.rows.NewSlice(int64(lo), int64(hi))
	defer part.Release()
	var options []tideline.WriteOption
	if c.kinds != nil {
		options = append(options, tideline.Kinds(c.kinds[lo:hi]))
	}
	if c.offsets != nil {
		options = append(options, tideline.Offsets(c.offsets[lo:hi]))
	}
	return l.writer.Prepare(part, options...)
}

// accept writes rows; a commit makes room when the memory is used up.
func (l *load) accept(ctx context.Context, c *chunk, lo, hi int) (tideline.Ack, error) {
	b, err := l.prepare(c, lo, hi)
	if err != nil {
		return tideline.Ack{}, err
	}
	for try := 1; ; try++ {
		ack, err := l.writer.WritePrepared(ctx, b)
		if !errors.Is(err, tideline.ErrOverloaded) || try > memoryTries {
			return ack, err
		}
		if err := l.commit(ctx); err != nil {
			return ack, err
		}
	}
}

// commit makes what was written durable.
func (l *load) commit(ctx context.Context) error {
	if l.waiting == 0 {
		return nil
	}
	p, err := l.writer.PrepareCommit(ctx)
	if err != nil {
		return err
	}
	var c tideline.Commit
	for try := 1; ; try++ {
		c, err = l.table.Commit(ctx, p)
		if try >= commitTries || !errors.Is(err, tideline.ErrConflict) && !errors.Is(err, tideline.ErrOutcomeUnknown) {
			break
		}
	}
	if err != nil {
		return err
	}
	l.waiting = 0
	if c.ID > 0 {
		l.progress.committed(c.ID)
	}
	return l.table.Refresh(ctx)
}

func (l *load) report() string {
	text := l.progress.String()
	if l.waiting > 0 {
		text += fmt.Sprintf("; %s not committed", count(l.waiting, "row"))
	}
	if n := l.rejects.total(); n > 0 {
		text += fmt.Sprintf("; %s skipped", count(n, "bad row"))
	}
	return text
}
