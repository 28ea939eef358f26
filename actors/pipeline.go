package actors

import (
	"sort"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/messages"
	"github.com/tideline-db/tideline/snapshot"
)

// pipeline is the pure state of prepares on their way to a snapshot, in the
// order of their cuts. It decides; the coordinator carries out.
//
//	cutting --all buckets reported, cut visible--> flushing --all files written--> ready
//	   ready --wanted, all earlier published--> publishing --> published
//	                                            publishing --error--> ready (may be tried again)
//	   newest, ready, never tried --> aborted
//
// A later prepare is never published before an earlier one: its ranges follow
// the earlier ones, and a snapshot must be one cut of all buckets.
type pipeline struct {
	stages []*stage            // unpublished, oldest first
	ends   map[bucket.ID]int64 // committed or prepared end that the next range of a bucket follows
	newest int64               // highest number ever announced

	done      map[int64]snapshot.CommitResult // of published stages that made a snapshot
	order     []int64                         // the keys of done
	forgotten int64                           // highest number whose result was dropped from done
	aborted   map[int64]struct{}
}

type stageState int

const (
	cutting stageState = iota
	flushing
	ready
	publishing
)

type stage struct {
	messages.Prepare
	identifier int64
	state      stageState
	visible    bool
	sealed     []messages.Sealed
	left       int                // flush jobs still out
	files      []messages.Flushed // one for each range, in order of the buckets when ready
	rows       int64
	bytes      int64
	wanted     bool // somebody asked for it to be published
	tried      bool // a publish was started: it is no longer surely unpublished
	replies    []func(snapshot.CommitResult, error)
}

// keptResults bounds the results remembered for repeated commits; that a prepare
// had nothing to commit is known without remembering it.
const keptResults = 1024

func newPipeline() *pipeline {
	return &pipeline{ends: map[bucket.ID]int64{}, done: map[int64]snapshot.CommitResult{}, aborted: map[int64]struct{}{}}
}

func (p *pipeline) announce(m messages.Prepare, identifier int64) *stage {
	s := &stage{Prepare: m, identifier: identifier}
	p.stages = append(p.stages, s)
	p.newest = max(p.newest, m.Number)
	return s
}

func (p *pipeline) find(number int64) *stage {
	for _, s := range p.stages {
		if s.Number == number {
			return s
		}
	}
	return nil
}

// report adds what one bucket sealed and says whether flushing can begin.
func (p *pipeline) report(s *stage, m messages.Sealed) bool {
	s.sealed = append(s.sealed, m)
	return p.startable(s)
}

func (p *pipeline) startable(s *stage) bool {
	return s.state == cutting && s.visible && len(s.sealed) == s.Buckets
}

// start moves a stage to flushing and returns the ranges to flush, in a fixed
// order, with the end each of them follows.
func (p *pipeline) start(s *stage) (flushes []flush) {
	s.state = flushing
	sort.Slice(s.sealed, func(i, j int) bool { return s.sealed[i].ID.Less(s.sealed[j].ID) })
	for _, sealed := range s.sealed {
		if len(sealed.Segments) == 0 {
			continue
		}
		flushes = append(flushes, flush{sealed: sealed, follows: p.ends[sealed.ID]})
		p.ends[sealed.ID] = sealed.End
	}
	s.left = len(flushes)
	if s.left == 0 {
		s.state = ready
	}
	return flushes
}

type flush struct {
	sealed  messages.Sealed
	follows int64
}

// flushed records one finished job and says whether the stage became ready.
func (p *pipeline) flushed(s *stage, m messages.Flushed) bool {
	s.files = append(s.files, m)
	s.rows += m.Rows
	s.bytes += m.Bytes
	s.left--
	if s.left > 0 {
		return false
	}
	sort.Slice(s.files, func(i, j int) bool { return s.files[i].ID.Less(s.files[j].ID) })
	s.state = ready
	return true
}

// ranges are the messages of a commit of this stage.
func (s *stage) ranges() []snapshot.Message {
	ranges := make([]snapshot.Message, len(s.files))
	for i, f := range s.files {
		ranges[i] = f.Message
	}
	return ranges
}

// want asks for a number and all before it.
func (p *pipeline) want(number int64) {
	for _, s := range p.stages {
		if s.Number <= number {
			s.wanted = true
		}
	}
}

// next returns the stage to publish now, nil when there is none.
func (p *pipeline) next() *stage {
	if len(p.stages) == 0 {
		return nil
	}
	if s := p.stages[0]; s.state == ready && s.wanted {
		return s
	}
	return nil
}

// published takes the oldest stage out and remembers its result.
func (p *pipeline) published(s *stage, result snapshot.CommitResult) {
	p.stages = p.stages[1:]
	if result.Snapshot == nil {
		return
	}
	p.done[s.Number] = result
	if p.order = append(p.order, s.Number); len(p.order) > keptResults {
		p.forgotten = p.order[0]
		delete(p.done, p.forgotten)
		p.order = p.order[1:]
	}
}

// result answers a repeated commit: what became of a stage that left the
// pipeline by being published, if that is still known.
func (p *pipeline) result(number int64) (snapshot.CommitResult, bool) {
	if result, ok := p.done[number]; ok {
		result.AlreadyThere = true
		return result, true
	}
	_, aborted := p.aborted[number]
	return snapshot.CommitResult{}, number > p.forgotten && number <= p.newest && !aborted && p.find(number) == nil
}

// abort takes the newest stage out, when it is surely unpublished, and gives its
// ranges back: what comes next follows the end that it followed.
func (p *pipeline) abort(number int64) (*stage, bool) {
	if len(p.stages) == 0 {
		return nil, false
	}
	last := p.stages[len(p.stages)-1]
	if last.Number != number || last.state != ready || last.tried || last.wanted {
		return nil, false
	}
	p.stages = p.stages[:len(p.stages)-1]
	p.aborted[number] = struct{}{}
	for _, m := range last.files {
		p.ends[m.ID] = m.Message.Follows
	}
	return last, true
}

// moving says that bytes of memory are on their way out: a prepare is somewhere
// between its cut and its adoption.
func (p *pipeline) moving() bool { return len(p.stages) > 0 }
