package bucket

import (
	"context"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/merge"
)

// FanInMax is how many runs of similar size a segment may hold before they are
// merged to one. With size classes a factor of 32 apart, n rows are in about
// FanInMax*log32(n) runs at most, and every row is copied once a class: a million
// rows in batches of a thousand once. A smaller factor costs writes more than it
// gives reads, whose merge kernel hardly minds the fan-in.
//
// A bucket that is being written waits until it is quiet, so that merging takes
// no time from its writer; but never beyond FanInForced runs of a class.
const (
	FanInMax    = 32
	FanInForced = 1024
)

const (
	classBits   = 5
	classCount  = 64/classBits + 1
	jobRunsMax  = FanInForced + 1
	jobBytesMax = 1 << 30 // also keeps positions of texts within 32 bits
)

// classOf is the size class of a run: class 0 are runs of fewer than 1024 rows.
func classOf(rows int) int { return max(0, (bits.Len(uint(rows))-1)/classBits-1) }

// Job is a merge of some runs of one segment to one. Its inputs are immutable: it
// runs on a worker while the bucket is written and read.
type Job struct {
	t      *Table
	number int64 // of the segment
	inputs []*Run
}

// Result is the run that a job made.
type Result struct {
	job *Job
	run *Run
}

// Rows are the rows that go into a job.
func (j *Job) Rows() (n int) {
	for _, r := range j.inputs {
		n += r.Rows
	}
	return n
}

// Rows are the rows that came out: for a primary-key table one a key.
func (r *Result) Rows() int { return r.run.Rows }

// Consolidation picks runs to merge, all within one segment and of epochs at or
// below the frontier; nil when nothing is to be done, or when a job is out
// already. quiet says that no write came lately: then FanInMax bounds the runs of
// a class, else FanInForced. A job that is not brought back by Consolidated must
// be given up with Abandon.
func (s *State) Consolidation(frontier int64, quiet bool) *Job {
	if s.job != nil {
		return nil
	}
	if runs := s.building.pick(frontier, quiet); runs != nil {
		s.job = &Job{t: s.t, number: s.building.number, inputs: runs}
		return s.job
	}
	for i := len(s.sealed) - 1; i >= 0; i-- {
		// What a prepare took is in memory only until its commit.
		if g := s.sealed[i]; !g.prepared {
			if runs := g.pick(frontier, quiet); runs != nil {
				s.job = &Job{t: s.t, number: g.number, inputs: runs}
				return s.job
			}
		}
	}
	return nil
}

// Abandon forgets a job that failed.
func (s *State) Abandon(j *Job) {
	if s.job == j {
		s.job = nil
	}
}

// pick gives the runs of the smallest class that has too many of them. In a quiet
// bucket a full chunk is turned into a run of its exact size at once.
func (g *segment) pick(frontier int64, quiet bool) []*Run {
	bound := FanInForced
	if quiet {
		bound = FanInMax
	}
	if quiet && g.chunks > 0 {
		for i, r := range g.runs {
			if r.chunk != nil && r.Epoch <= frontier {
				return g.runs[i : i+1 : i+1]
			}
		}
	}
	for class, n := range g.classes {
		if n <= bound {
			continue
		}
		picked := g.pickAny(class, frontier)
		if !g.t.primaryKey {
			picked = g.pickNeighbours(class, frontier)
		}
		if len(picked) > FanInMax {
			return picked
		}
	}
	return nil
}

// pickAny collects runs of a class from the whole segment: in a primary-key
// table sequence numbers decide and not the place of a run.
func (g *segment) pickAny(class int, frontier int64) (picked []*Run) {
	bytes := int64(0)
	for _, r := range g.runs {
		if classOf(r.Rows) != class || r.Epoch > frontier || bytes+r.Bytes > jobBytesMax {
			continue
		}
		bytes += r.Bytes
		if picked = append(picked, r); len(picked) == jobRunsMax {
			break
		}
	}
	return picked
}

// pickNeighbours finds the first stretch of neighbours that are not larger than a
// class: the rows of an append table stay in the order in which they came.
func (g *segment) pickNeighbours(class int, frontier int64) []*Run {
	from, bytes := 0, int64(0)
	for i, r := range g.runs {
		fits := classOf(r.Rows) <= class && r.Epoch <= frontier && bytes+r.Bytes <= jobBytesMax && i-from < jobRunsMax
		if fits {
			bytes += r.Bytes
			continue
		}
		if i-from > FanInMax {
			return g.runs[from:i:i]
		}
		from, bytes = i+1, 0
	}
	return g.runs[from:len(g.runs):len(g.runs)]
}

// Run merges the inputs to one run: the newest version of every key, deletes
// included, in key order; or all rows in write order for an append table. The
// result is on the Go heap; alloc (nil: the default one) lends memory for one
// column at a time. The only error is that of ctx.
func (j *Job) Run(ctx context.Context, alloc memory.Allocator) (*Result, error) {
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	m := merger{t: j.t, alloc: alloc}
	out := &Run{First: j.inputs[0].First, Epoch: j.inputs[0].Epoch, t: j.t}
	for _, r := range j.inputs {
		m.blocks = append(m.blocks, r.Block(alloc))
		m.rows += r.Rows
		out.First, out.Epoch = min(out.First, r.First), max(out.Epoch, r.Epoch)
	}
	b, bytes, err := m.merge(ctx)
	if err != nil {
		return nil, err
	}
	out.block, out.Rows, out.Bytes = b, b.Rows, bytes
	return &Result{job: j, run: out}, nil
}

// merger concatenates blocks column by column and copies the rows that remain.
type merger struct {
	t      *Table
	alloc  memory.Allocator
	blocks []*merge.Block
	rows   int
}

func (m *merger) merge(ctx context.Context) (*merge.Block, int64, error) {
	sel := selection{lo: 0, hi: m.rows}
	out := &merge.Block{Columns: make([]arrow.Array, len(m.t.columns))}
	bytes := int64(0)
	if m.t.primaryKey {
		if err := m.newest(&sel, out); err != nil {
			return nil, 0, err
		}
		bytes += int64(4*len(out.Seq.Perm) + 8*len(out.Seq.Explicit))
	}
	for i, n := range m.t.columns {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		all, err := m.column(i)
		if err != nil {
			return nil, 0, err
		}
		r := own(n, all)
		out.Columns[i] = gatherArray(n, &r, sel, &bytes)
		all.Release()
	}
	out.Rows = sel.rows()
	out.Kinds = pickKinds(m.kinds(), sel)
	return out, bytes + int64(len(out.Kinds)), nil
}

// column is one column of all blocks behind one another.
func (m *merger) column(i int) (arrow.Array, error) {
	if len(m.blocks) == 1 {
		m.blocks[0].Columns[i].Retain()
		return m.blocks[0].Columns[i], nil
	}
	parts := make([]arrow.Array, len(m.blocks))
	for k, b := range m.blocks {
		parts[k] = b.Columns[i]
	}
	return array.Concatenate(parts, m.alloc)
}

// kinds are the row kinds of all blocks behind one another; nil when all are
// inserts, which a block may say with nil.
func (m *merger) kinds() []int8 {
	if !slices.ContainsFunc(m.blocks, func(b *merge.Block) bool { return b.Kinds != nil }) {
		return nil
	}
	kinds := make([]int8, m.rows)
	at := 0
	for _, b := range m.blocks {
		copy(kinds[at:at+b.Rows], b.Kinds)
		at += b.Rows
	}
	return kinds
}

// newest selects the row with the highest sequence number of every key, in key
// order, and gives out its sequence numbers.
func (m *merger) newest(sel *selection, out *merge.Block) error {
	seq := make([]int64, 0, m.rows)
	for _, b := range m.blocks {
		for i := range b.Rows {
			seq = append(seq, b.Seq.At(i))
		}
	}
	columns := make([]arrow.Array, len(m.t.columns))
	keys := make([]keyEqual, len(m.t.Layout.Key))
	for k, c := range m.t.Layout.Key {
		all, err := m.column(c)
		if err != nil {
			return err
		}
		defer all.Release()
		columns[c] = all
		keys[k] = keyEqual{n: m.t.columns[c], raw: own(m.t.columns[c], all)}
	}
	perm := merge.Sort(m.t.Layout, columns, m.rows)
	at := func(i int) int32 {
		if perm != nil {
			return perm[i]
		}
		return int32(i)
	}
	sel.idx = make([]int32, 0, m.rows)
	kept := make([]int64, 0, m.rows)
	for i := 0; i < m.rows; {
		best := at(i)
		for i++; i < m.rows && sameKey(keys, at(i-1), at(i)); i++ {
			if j := at(i); seq[j] > seq[best] {
				best = j
			}
		}
		sel.idx = append(sel.idx, best)
		kept = append(kept, seq[best])
	}
	out.Seq = compact(kept)
	return nil
}

// Crowded says that Consolidation would have something to do once the bucket is
// quiet.
func (s *State) Crowded() bool {
	if s.job != nil {
		return false
	}
	for _, g := range s.sealed {
		if !g.prepared && g.crowded() {
			return true
		}
	}
	return s.building.crowded()
}

func (g *segment) crowded() bool {
	if g.chunks > 0 {
		return true
	}
	for _, n := range g.classes {
		if n > FanInMax {
			return true
		}
	}
	return false
}

// Consolidated puts the result of a job in the place of its inputs. It is
// ignored, with false, when the segment was reclaimed meanwhile or the job is not
// the one that is out.
func (s *State) Consolidated(r *Result) bool {
	if r == nil || s.job == nil || s.job != r.job {
		return false
	}
	s.job = nil
	for _, g := range append([]*segment{s.building}, s.sealed...) {
		if g.number == r.job.number {
			g.replace(r)
			s.pictures = nil
			if r.run.First < r.run.Epoch {
				s.consolidated = max(s.consolidated, r.run.Epoch)
			}
			return true
		}
	}
	return false
}

// replace makes a new list of runs; views keep the old one.
func (g *segment) replace(r *Result) {
	gone := make(map[*Run]bool, len(r.job.inputs))
	for _, in := range r.job.inputs {
		gone[in] = true
	}
	runs := make([]*Run, 0, len(g.runs))
	put := false
	for _, have := range g.runs {
		if !gone[have] {
			runs = append(runs, have)
			continue
		}
		g.count(have, -1)
		g.bytes -= have.Bytes
		if !put {
			runs = append(runs, r.run)
			put = true
		}
	}
	g.runs = runs
	g.count(r.run, 1)
	g.bytes += r.run.Bytes
	g.rows -= int64(r.job.Rows() - r.run.Rows)
}
