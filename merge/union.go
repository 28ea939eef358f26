package merge

import (
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Options of a union. The zero value is the read path: deletes are dropped,
// blocks of up to 8192 rows, buffers on the Go heap.
type Options struct {
	// KeepDeletes keeps keys whose newest row is a -U or -D, as merging below the
	// oldest run must; the blocks then carry Kinds and Seq.Explicit.
	KeepDeletes bool
	// BatchRows is the most rows of an output block; 0 means 8192.
	BatchRows int
	// Alloc provides the buffers of copied columns; nil means the Go heap.
	Alloc memory.Allocator
}

const (
	batchRowsDefault  = 8192
	windowRowsTarget  = 1 << 16 // columns of a window stay in the second-level cache
	windowBytesTarget = 1 << 25 // wide rows make windows of fewer rows
	windowRowsMin     = 1 << 10
	batchBytesMax     = 1 << 26 // wide rows make batches of fewer rows
)

// NewUnion merges sorted runs into one run with unique keys: of all rows with one
// key the one with the highest sequence number survives, and of rows with equal
// numbers the one of the later source (later row within a source), so callers
// list disk before memory and older before newer. A key whose survivor is a -U
// or -D vanishes unless KeepDeletes is set. All sources yield the same columns of
// the layout; what is nil in their blocks stays nil; key columns must be there,
// except that a single source of Unique blocks, itself unique from block to block,
// does without (only deletes are dropped then). A layout without key is a
// concatenation.
//
// The union owns the sources and closes them with Close. Blocks obey the contract
// of Source and are marked Unique; they are never empty.
func NewUnion(layout Layout, sources []Source, o Options) Source {
	if len(layout.Key) == 0 {
		return NewConcat(sources)
	}
	if o.BatchRows <= 0 {
		o.BatchRows = batchRowsDefault
	}
	u := &union{layout: layout, options: o, sources: sources, scratch: make([]concatScratch, len(layout.Fields))}
	u.windowRowsTarget, u.window.passRowsMin, u.window.heavyBytes = windowRowsTarget, passRowsMin, heavyBytes
	for _, s := range sources {
		u.cursors = append(u.cursors, &cursor{source: s, alone: len(sources) == 1})
	}
	return u
}

type union struct {
	layout  Layout
	options Options
	sources []Source
	cursors []*cursor // those with rows left, in source order
	err     error     // what every further Next returns

	bound     *keyRef  // windows of this epoch end here; nil: nothing is unread
	splitters []keyRef // ends of the windows before the last one of the epoch
	inEpoch   bool

	windowRowsTarget int // a field, so that tests see many small windows
	window           window
	retired          []*chunk // chunks that the window refers to and no cursor holds
	scratch          []concatScratch
	out              handed
}

// keyRef names a key by a row that has it.
type keyRef struct {
	chunk *chunk
	row   int
}

func (u *union) Next(ctx context.Context) (*Block, error) {
	if u.err != nil {
		return nil, u.err
	}
	b, err := u.next(ctx)
	if err != nil {
		u.err = err
		return nil, err
	}
	return b, nil
}

func (u *union) next(ctx context.Context) (*Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u.out.turn()
	for u.window.empty() {
		if err := u.advance(ctx); err != nil {
			return nil, err
		}
	}
	u.out[0] = u.emit()
	return u.out[0], nil
}

func (u *union) Close() error {
	if u.err == nil {
		u.err = io.EOF
	}
	u.out.release()
	u.dropRetired()
	for i := range u.scratch {
		u.scratch[i].release()
	}
	for _, c := range u.cursors {
		c.release()
	}
	u.cursors, u.window, u.splitters, u.bound = nil, window{}, nil, nil
	sources := u.sources
	u.sources = nil
	return closeAll(sources)
}

func (u *union) dropRetired() {
	for _, c := range u.retired {
		c.release()
	}
	u.retired = u.retired[:0]
}

// advance fills the window with the next rows, io.EOF when there are none.
func (u *union) advance(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !u.inEpoch {
		u.dropRetired()
		if err := u.refill(ctx); err != nil {
			return err
		}
		if len(u.cursors) == 0 {
			return io.EOF
		}
		if err := u.startEpoch(ctx); err != nil {
			return err
		}
	}
	u.window.reset()
	end := u.bound
	last := len(u.splitters) == 0
	if !last {
		end = &u.splitters[0]
	}
	for _, c := range u.cursors {
		hi := c.rows()
		if end != nil {
			hi = upperBound(&c.cur.keys, c.pos, hi, &end.chunk.keys, end.row)
		}
		u.window.add(c.cur, c.pos, hi)
		c.pos = hi
		if last {
			if err := u.follow(ctx, c); err != nil {
				return err
			}
		}
	}
	if last {
		u.inEpoch = false
	} else {
		u.splitters = u.splitters[1:]
	}
	u.window.merge(u.options.KeepDeletes)
	return nil
}

// refill drops the cursors that are read to their end and loads a block where
// one is missing.
func (u *union) refill(ctx context.Context) error {
	live := u.cursors[:0]
	var failed error
	for _, c := range u.cursors {
		if failed == nil && c.cur != nil && c.pos == c.rows() {
			u.retired = append(u.retired, c.cur)
			c.cur, c.next, c.pos = c.next, nil, 0
		}
		if failed == nil && c.cur == nil {
			c.cur, failed = c.load(ctx, u.layout)
		}
		if failed != nil || c.cur != nil {
			live = append(live, c)
		}
	}
	u.cursors = live
	u.dropRetired()
	return failed
}

// startEpoch finds the key up to which the blocks at hand are complete, and cuts
// the rows up to it into windows.
func (u *union) startEpoch(ctx context.Context) error {
	open := make([]*cursor, 0, len(u.cursors))
	for _, c := range u.cursors {
		if !c.ended() {
			open = append(open, c)
		}
	}
	// Sources are asked for their next block in the order in which theirs end, so
	// that those that turn out to have none do not limit the epoch.
	slices.SortStableFunc(open, func(a, b *cursor) int {
		return compareKeys(&a.cur.keys, a.rows()-1, &b.cur.keys, b.rows()-1)
	})
	u.bound = nil
	for _, c := range open {
		if err := c.ahead(ctx, u.layout); err != nil {
			return err
		}
		if !c.ended() {
			u.bound = &keyRef{c.cur, c.rows() - 1}
			break
		}
	}
	u.inEpoch = true
	u.split()
	return nil
}

// follow takes the rows of blocks behind cur that still have the key of the
// bound; it is called when everything up to the bound of cur was taken.
func (u *union) follow(ctx context.Context, c *cursor) error {
	for u.bound != nil && c.pos == c.rows() {
		if c.next == nil && !c.done {
			if err := c.ahead(ctx, u.layout); err != nil {
				return err
			}
		}
		if c.next == nil || len(c.cur.keys.cols) == 0 || compareKeys(&c.next.keys, 0, &u.bound.chunk.keys, u.bound.row) != 0 {
			return nil
		}
		c.cur.detach()
		c.next.detach()
		u.retired = append(u.retired, c.cur)
		c.cur, c.next = c.next, nil
		c.pos = upperBound(&c.cur.keys, 0, c.rows(), &u.bound.chunk.keys, u.bound.row)
		u.window.add(c.cur, 0, c.pos)
	}
	return nil
}

// split cuts the epoch into windows of about the target size by keys sampled at
// pseudo-random rows, one in every step rows of all sources together.
func (u *union) split() {
	u.splitters = u.splitters[:0]
	total := 0
	ends := make([]int, len(u.cursors))
	for i, c := range u.cursors {
		ends[i] = c.rows()
		if u.bound != nil {
			ends[i] = upperBound(&c.cur.keys, c.pos, c.rows(), &u.bound.chunk.keys, u.bound.row)
		}
		total += ends[i] - c.pos
	}
	target := u.windowRows()
	if len(u.cursors) == 1 || total <= target+target/2 {
		return
	}
	const perWindow = 32
	step := max(target/perWindow, 1)
	var samples []keyRef
	before, at := 0, step/2
	for i, c := range u.cursors {
		n := ends[i] - c.pos
		for at < before+n {
			samples = append(samples, keyRef{c.cur, c.pos + at - before})
			base := (at/step + 1) * step
			at = base + int(mix(uint64(base))%uint64(step))
		}
		before += n
	}
	slices.SortStableFunc(samples, func(a, b keyRef) int {
		return compareKeys(&a.chunk.keys, a.row, &b.chunk.keys, b.row)
	})
	windows := max(total/target, 1)
	for w := 1; w < windows; w++ {
		s := samples[w*len(samples)/windows]
		if u.bound != nil && compareKeys(&s.chunk.keys, s.row, &u.bound.chunk.keys, u.bound.row) >= 0 {
			break // rows with the key of the bound go into one window, the last
		}
		u.splitters = append(u.splitters, s)
	}
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// windowRows is the number of rows that a window should have.
func (u *union) windowRows() int {
	return max(min(u.windowRowsTarget, windowBytesTarget/u.rowBytes()), min(u.windowRowsTarget, windowRowsMin))
}

// rowBytes estimates the bytes of a row from a few of the blocks at hand.
func (u *union) rowBytes() int {
	bytes := 1
	for i := 0; i < len(u.cursors); i += len(u.cursors)/8 + 1 {
		bytes = max(bytes, u.cursors[i].cur.meanRowBytes())
	}
	return bytes
}
