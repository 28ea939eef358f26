package bucket

import (
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/row"
)

// Run is an immutable set of rows of one segment: a batch, the rows of small
// batches, or what a consolidation made of several. In a primary-key table it is
// sorted by key once it is a block.
type Run struct {
	First, Epoch int64 // lowest and highest epoch of the rows
	Rows         int
	Bytes        int64 // what it retains

	t     *Table
	block *merge.Block
	chunk *chunkRun // instead of block
	stats atomic.Pointer[columnStats]
}

// chunkRun is a prefix of a chunk, and where its sorted form is kept.
type chunkRun struct {
	prefix
	sorted *atomic.Pointer[sortedPrefix]
}

// run makes a run of the rows up to a frontier; nil without rows.
func (c *chunkRun) run(t *Table, frontier int64) *Run {
	p := c.upTo(frontier)
	if p.rows == 0 {
		return nil
	}
	return &Run{First: p.epoch, Epoch: p.last(), Rows: p.rows, Bytes: p.bytes(t), t: t, chunk: &chunkRun{p, c.sorted}}
}

// upTo is the run without epochs above a frontier, nil when none is left.
func (r *Run) upTo(frontier int64) (*Run, error) {
	switch {
	case r.Epoch <= frontier:
		return r, nil
	case r.First > frontier:
		return nil, nil
	case r.chunk != nil:
		return r.chunk.run(r.t, frontier), nil
	}
	return nil, errs.Wrap(ErrRetryPlan, "frontier %d, run of the epochs %d to %d", frontier, r.First, r.Epoch)
}

// Block is the rows in key order, equal keys in write order (primary key), or in
// write order (append). The memory is on the Go heap and is never released. The
// rows of an open chunk are sorted on the first call and kept for the next.
func (r *Run) Block(memory.Allocator) *merge.Block {
	if r.block != nil {
		return r.block
	}
	if s := r.chunk.sorted.Load(); s != nil && s.rows == r.Rows {
		return s.block
	}
	b := r.chunk.block(r.t)
	r.chunk.sorted.Store(&sortedPrefix{r.Rows, b})
	return b
}

// KeyRange is the lowest and the highest key; nil for an append table.
func (r *Run) KeyRange() (min, max []row.Value) {
	if !r.t.primaryKey {
		return nil, nil
	}
	b := r.Block(nil)
	for _, k := range r.t.Layout.Key {
		typ := r.t.Layout.Fields[k].Type
		min = append(min, row.ValueAt(b.Columns[k], typ, 0))
		max = append(max, row.ValueAt(b.Columns[k], typ, b.Rows-1))
	}
	return min, max
}
