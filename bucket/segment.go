package bucket

import (
	"github.com/tideline-db/tideline/merge"
)

// segment is the rows between two seals, as their owner sees them.
type segment struct {
	t          *Table
	number     int64
	begin, end int64 // offsets; equal while there are no rows
	cut        int64 // epoch of the seal
	rows       int64
	bytes      int64
	prepared   bool
	hold       *Hold

	// runs is shared with views by length: entries are added behind what a view
	// has, and a slice with other entries is a new one.
	runs []*Run
	open *chunk // behind runs; nil when there is none

	classes [classCount]int // runs of each size class
	chunks  int             // runs that are closed chunks
}

// append adds a part. Batches of an append table stay in the order in which they
// came, so a batch of its own closes the open chunk; the merge of a primary-key
// table goes by sequence numbers and needs no order.
func (g *segment) append(p *Part, epoch, seq int64) {
	if p.Small {
		place := chunkStart
		var full *chunk
		if g.open != nil && !g.open.takes(p, epoch) {
			full = g.open
			g.closeChunk()
			place = max(place, min(chunkBusy, chunkBusySize/max(g.t.rowBytes, 1)))
		}
		if g.open == nil {
			g.open = newChunk(g.t, epoch, place, full)
		}
		g.open.append(p, epoch, seq)
		return
	}
	if !g.t.primaryKey {
		g.closeChunk()
	}
	b := *p.Block
	b.Seq.Base = seq
	g.add(&Run{First: epoch, Epoch: epoch, Rows: p.Rows, Bytes: p.Bytes, t: g.t, block: &b})
}

func (g *segment) add(r *Run) {
	g.runs = append(g.runs, r)
	g.count(r, 1)
}

func (g *segment) count(r *Run, n int) {
	g.classes[classOf(r.Rows)] += n
	if r.chunk != nil {
		g.chunks += n
	}
}

// closeChunk turns the open chunk into a run.
func (g *segment) closeChunk() {
	if g.open == nil {
		return
	}
	c := g.open
	g.open = nil
	p := c.prefix
	g.add(&Run{First: c.epoch, Epoch: p.last(), Rows: p.rows, Bytes: c.used, t: g.t, chunk: &chunkRun{p, c.sorted}})
}

func (g *segment) runCount() int {
	if g.open != nil {
		return len(g.runs) + 1
	}
	return len(g.runs)
}

// picture is what others may see of a sealed segment.
func (g *segment) picture(id ID) *Segment {
	return &Segment{
		ID: id, Begin: g.begin, End: g.end, Epoch: g.cut, Rows: g.rows, Bytes: g.bytes,
		number: g.number, runs: g.runs[:len(g.runs):len(g.runs)],
	}
}

// Segment is an immutable picture of a sealed segment, for the flush of a
// prepare.
type Segment struct {
	ID         ID
	Begin, End int64 // offsets [Begin, End)
	Epoch      int64 // of the cut that sealed it
	Rows       int64 // every version and delete counts
	Bytes      int64

	number int64
	runs   []*Run
}

// Runs are the runs of the segment, for an append table in write order.
func (seg *Segment) Runs() []*Run { return seg.runs }

// MergeSources gives one source for each run. Rows that came in small batches
// are sorted here, so this belongs on a worker.
func (seg *Segment) MergeSources() []merge.Source {
	sources := make([]merge.Source, len(seg.runs))
	for i, r := range seg.runs {
		sources[i] = merge.NewBlockSource(r.Block(nil))
	}
	return sources
}

// MergeSegments is the rows of the segments of one prepare as one source: unique
// keys in key order with deletes kept, or in write order for an append table.
func MergeSegments(t *Table, segments []*Segment) merge.Source {
	var sources []merge.Source
	for _, seg := range segments {
		sources = append(sources, seg.MergeSources()...)
	}
	if !t.primaryKey {
		return merge.NewConcat(sources)
	}
	return merge.NewUnion(t.Layout, sources, merge.Options{KeepDeletes: true})
}
