package tideline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tideline-db/tideline/merge"
)

// Reader streams the rows of a scan as Arrow record batches, in key order inside
// a split (write order in append tables). It implements array.RecordReader and
// serves one goroutine. A batch is valid until the next call of Next; retain it
// to keep it: it outlives the reader, the plan and the table.
type Reader struct {
	ctx     context.Context // of the Read call: cancels the whole read
	plan    *Plan
	splits  []Split
	release func() // gives back what the plan pinned

	source  merge.Source // of the split being read
	current arrow.RecordBatch
	left    int64 // rows still to hand out, -1 without limit
	err     error
	refs    atomic.Int64
}

var _ array.RecordReader = (*Reader)(nil)

// newReader checks that every split can be read before it takes over release.
func newReader(ctx context.Context, p *Plan, splits []Split, release func()) (*Reader, error) {
	r := &Reader{ctx: ctx, plan: p, splits: splits, release: release, left: p.scan.limit}
	r.refs.Store(1)
	for i := range splits {
		if err := p.check(ctx, &splits[i]); err != nil {
			release()
			return nil, err
		}
	}
	return r, nil
}

// Schema is the Arrow schema of the selected columns.
func (r *Reader) Schema() *arrow.Schema { return r.plan.view.arrow }

// Snapshot is the id of the committed snapshot that was read, 0 when there was
// none.
func (r *Reader) Snapshot() int64 {
	if r.plan.Snapshot == nil {
		return 0
	}
	return r.plan.Snapshot.ID
}

// Frontier is the write epoch up to which memory was read; everything a Write
// with an epoch at or below it accepted is in the result.
func (r *Reader) Frontier() int64 { return r.plan.Frontier }

// Next moves to the next batch. After false, Err tells the end from an error.
func (r *Reader) Next() bool {
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
	if r.err != nil {
		return false
	}
	r.current, r.err = r.next()
	return r.err == nil
}

func (r *Reader) next() (batch arrow.RecordBatch, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("reading table %s panicked: %v", r.plan.scan.table.path, reason)
		}
	}()
	for {
		if r.left == 0 {
			return nil, io.EOF
		}
		if r.source == nil {
			if len(r.splits) == 0 {
				return nil, io.EOF
			}
			r.source = r.plan.open(&r.splits[0])
			r.splits = r.splits[1:]
		}
		block, err := r.source.Next(r.ctx)
		if errors.Is(err, io.EOF) {
			if err := r.closeSource(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, r.explain(err)
		}
		if batch, err := r.hand(block); batch != nil || err != nil {
			return batch, err
		}
	}
}

// hand filters, projects and counts one merged block; nil when no row is left.
func (r *Reader) hand(block *merge.Block) (arrow.RecordBatch, error) {
	batch, err := r.plan.view.filtered(block, r.plan.scan.candidates, r.plan.scan.table.options.Allocator)
	if err != nil || batch == nil {
		return nil, err
	}
	if r.left >= 0 {
		if batch.NumRows() > r.left {
			short := batch.NewSlice(0, r.left)
			batch.Release()
			batch = short
		}
		r.left -= batch.NumRows()
	}
	return batch, nil
}

// explain tells a file that another engine's expiry removed from a damaged table.
func (r *Reader) explain(err error) error {
	if r.plan.Snapshot == nil || r.ctx.Err() != nil {
		return err
	}
	return r.plan.scan.table.committed.Explain(context.WithoutCancel(r.ctx), r.plan.Snapshot, err)
}

func (r *Reader) closeSource() error {
	if r.source == nil {
		return nil
	}
	err := r.source.Close()
	r.source = nil
	return err
}

// RecordBatch is the current batch.
func (r *Reader) RecordBatch() arrow.RecordBatch { return r.current }

// Record is RecordBatch under its older name.
func (r *Reader) Record() arrow.RecordBatch { return r.current }

// Err is the error that ended the read; nil at the regular end.
func (r *Reader) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// Retain adds a reference.
func (r *Reader) Retain() { r.refs.Add(1) }

// Release gives up a reference. The last one closes files and gives back the
// rows in memory that the reader held.
func (r *Reader) Release() {
	if r.refs.Add(-1) != 0 {
		return
	}
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
	if err := r.closeSource(); err != nil && r.err == nil {
		r.err = err
	}
	r.splits = nil
	if r.err == nil {
		r.err = io.EOF
	}
	r.release()
}
