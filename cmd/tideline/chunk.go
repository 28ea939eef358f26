package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline"
)

// chunk is a batch of input on its way to the table.
type chunk struct {
	rows    arrow.RecordBatch // of the table's columns
	kinds   []tideline.RowKind
	offsets []int64
	lines   []int64 // where each row stands; nil: from first on
	first   int64
	noun    string // "line" or "row"
	done    int64  // progress of the input at the end of the chunk, in its own unit
}

// where names the place of row i.
func (c *chunk) where(i int) string {
	n := c.first + int64(i)
	if c.lines != nil {
		n = c.lines[i]
	}
	return fmt.Sprintf("%s %d", c.noun, n)
}

// span names the place of rows [lo, hi).
func (c *chunk) span(lo, hi int) string {
	if hi-lo == 1 {
		return c.where(lo)
	}
	return fmt.Sprintf("%s to %s", c.where(lo), c.where(hi-1))
}

// source produces the chunks of an input.
type source interface {
	// run hands chunks to emit until the input ends; emit fails when nobody wants
	// them any more.
	run(ctx context.Context, emit func(chunk) error) error
	// size is the whole of what chunk.done counts, -1 when it is not known, and
	// whether it counts bytes.
	size() (n int64, bytes bool)
	// close frees the input when run has returned.
	close()
}

// errStopped ends a source whose rows are not wanted any more.
var errStopped = errors.New("stopped")

// shownRejects is how many refused rows are printed with their reason.
const shownRejects = 10

// rejects decides about rows that cannot be taken. The source and the writer use
// it at the same time.
type rejects struct {
	skip bool
	out  io.Writer

	lock  sync.Mutex
	count int64
}

// bad reports a row. It returns the error that ends the command, nil when the row
// is left out.
func (r *rejects) bad(where string, reason error) error {
	if !r.skip {
		return fmt.Errorf("%s: %w", where, reason)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.count++
	if r.count <= shownRejects {
		fmt.Fprintf(r.out, "skipped %s: %s\n", where, sentence(reason))
	}
	if r.count == shownRejects+1 {
		fmt.Fprintln(r.out, "further skipped rows are only counted")
	}
	return nil
}

func (r *rejects) total() int64 {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.count
}
