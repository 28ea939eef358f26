package merge

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// chunk is a block that a union holds: its arrays are retained, its key columns
// are viewed once.
type chunk struct {
	block *Block
	keys  keys
	cols  []column // viewed on first use; shape 0: not yet

	detached bool
	// The range of sequence numbers, valid when ranged. Runs that were written one
	// after the other are told apart by it without looking at single numbers.
	seqMin, seqMax int64
	ranged         bool
	rowBytes       int // mean bytes of a row, 0: not computed yet
}

// newChunk views a block. Only a union of one source (alone) does without key
// columns, if the block is known to be unique.
func newChunk(layout Layout, b *Block, alone bool) (*chunk, error) {
	k, err := newKeys(layout, b.Columns)
	if err != nil {
		if !alone || !b.Unique {
			return nil, err
		}
		k = keys{}
	}
	for _, c := range b.Columns {
		if c != nil {
			c.Retain()
		}
	}
	return &chunk{block: b, keys: k, cols: make([]column, len(b.Columns))}, nil
}

func (c *chunk) column(i int) *column {
	if c.cols[i].shape == 0 {
		c.cols[i] = viewColumn(c.block.Columns[i])
	}
	return &c.cols[i]
}

func (c *chunk) release() {
	for _, a := range c.block.Columns {
		if a != nil {
			a.Release()
		}
	}
}

// meanRowBytes is the mean size of a row of the chunk, at least 1.
func (c *chunk) meanRowBytes() int {
	if c.rowBytes == 0 {
		total := int64(0)
		for _, a := range c.block.Columns {
			if a != nil {
				total += arrayBytes(a)
			}
		}
		c.rowBytes = int(total/int64(c.block.Rows)) + 1
	}
	return c.rowBytes
}

func arrayBytes(a arrow.Array) int64 {
	switch s, w := shapeOf(a.DataType()); s {
	case shapeFixed:
		return int64(w) * int64(a.Len())
	case shapeBits:
		return int64(a.Len()) / 8
	case shapeBytes:
		offs, _ := bytesView(a.Data())
		return int64(offs[len(offs)-1]-offs[0]) + 4*int64(a.Len())
	}
	return int64(a.Data().SizeInBytes())
}

// detach copies what retaining the arrays does not keep alive: the kinds and
// numbers, which a source may take back at the second following Next.
func (c *chunk) detach() {
	if c.detached {
		return
	}
	c.detached = true
	b := *c.block
	b.Columns = slices.Clone(b.Columns)
	b.Kinds = slices.Clone(b.Kinds)
	b.Seq.Perm = slices.Clone(b.Seq.Perm)
	b.Seq.Explicit = slices.Clone(b.Seq.Explicit)
	c.block = &b
}

// measureSeq finds the range of the sequence numbers once.
func (c *chunk) measureSeq() {
	if c.ranged {
		return
	}
	c.ranged = true
	n, rows := c.block.Seq, c.block.Rows
	switch {
	case n.Explicit != nil:
		c.seqMin, c.seqMax = slices.Min(n.Explicit[:rows]), slices.Max(n.Explicit[:rows])
	case n.Perm != nil:
		lo, hi := n.Perm[0], n.Perm[0]
		for _, p := range n.Perm[:rows] {
			lo, hi = min(lo, p), max(hi, p)
		}
		c.seqMin, c.seqMax = n.Base+int64(lo), n.Base+int64(hi)
	default:
		c.seqMin, c.seqMax = n.Base, n.Base+int64(rows)-1
	}
}

// retracts tells whether rows [lo, hi) hold a -U or -D.
func (c *chunk) retracts(lo, hi int) bool {
	if c.block.Kinds == nil {
		return false
	}
	for _, k := range c.block.Kinds[lo:hi] {
		if retract(k) {
			return true
		}
	}
	return false
}

// retract tells whether a row kind takes a row away: -U (1) and -D (3).
func retract(kind int8) bool { return kind&1 != 0 }

// strict tells whether no two rows of [lo, hi) share a key.
func (c *chunk) strict(lo, hi int) bool {
	if c.block.Unique {
		return true
	}
	for i := lo + 1; i < hi; i++ {
		if compareKeys(&c.keys, i-1, &c.keys, i) == 0 {
			return false
		}
	}
	return true
}

// cursor is the reading position in one source.
//
//	cur   the block being merged, rows [pos, rows) are left
//	next  the block after it, read ahead only to learn where cur's last key ends
//	done  the source has no block after cur and next
type cursor struct {
	source Source
	cur    *chunk
	next   *chunk
	pos    int
	done   bool
	alone  bool // the union has no other source
}

// load reads the next non-empty block, nil at the end of the source.
func (c *cursor) load(ctx context.Context, layout Layout) (*chunk, error) {
	for !c.done {
		b, err := c.source.Next(ctx)
		if errors.Is(err, io.EOF) {
			c.done = true
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if s, ok := c.source.(*blockSource); ok {
			c.done = s.last()
		}
		if b.Rows > 0 {
			return newChunk(layout, b, c.alone)
		}
		if c.cur != nil {
			c.cur.detach() // the next Next is the second one after cur's
		}
	}
	return nil, nil
}

// ahead makes sure that the block after cur is known, or that there is none.
func (c *cursor) ahead(ctx context.Context, layout Layout) error {
	if c.next != nil || c.done {
		return nil
	}
	var err error
	c.next, err = c.load(ctx, layout)
	return err
}

func (c *cursor) rows() int { return c.cur.block.Rows }

// ended tells that no row behind cur can exist.
func (c *cursor) ended() bool { return c.done && c.next == nil }

func (c *cursor) release() {
	for _, k := range []*chunk{c.cur, c.next} {
		if k != nil {
			k.release()
		}
	}
	c.cur, c.next = nil, nil
}
