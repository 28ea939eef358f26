package bucket

import (
	"math"

	"github.com/tideline-db/tideline/internal/errs"
)

// Restore is where a bucket continues.
type Restore struct {
	NextOffset   int64 // lowest offset that the next row may get
	NextSeq      int64 // sequence number of the next row
	CommittedEnd int64
}

// Stats are the counters of a bucket. Bytes are what the runs retain.
type Stats struct {
	BuildingRows, BuildingBytes int64
	SealedRows, SealedBytes     int64
	Runs, Segments              int
	NextOffset, NextSeq         int64
	CommittedEnd                int64
}

// State is everything one partition-bucket holds in memory, and its counters.
// It has one owner, which calls one method at a time; what it hands out (views,
// segments, jobs) is immutable and may be read anywhere.
type State struct {
	t        *Table
	identity *Part

	sealed   []*segment // oldest first
	building *segment
	pictures []*SegmentView // of the sealed segments, replaced when these change

	nextOffset, nextSeq int64
	committedEnd        int64
	epoch               int64      // newest epoch seen
	mode                offsetMode // the first part decides
	numbered            int64      // number of the newest segment
	job                 *Job       // the consolidation that is out
	consolidated        int64      // highest epoch that was merged with an older one
}

type offsetMode uint8

const (
	offsetsUndecided offsetMode = iota
	offsetsOfEngine
	offsetsOfCaller
)

// NewState makes an empty bucket that continues from restored counters.
func NewState(t *Table, identity *Part, r Restore) *State {
	s := &State{
		t: t, identity: identity.Identity(),
		nextOffset: r.NextOffset, nextSeq: r.NextSeq, committedEnd: r.CommittedEnd,
		epoch: math.MinInt64, consolidated: math.MinInt64,
	}
	s.open()
	return s
}

// open begins a building segment.
func (s *State) open() {
	s.numbered++
	s.building = &segment{t: s.t, number: s.numbered, begin: s.nextOffset, end: s.nextOffset, hold: newHold()}
}

// Check refuses a part that Append could not take: offsets that go back, or
// numbers that would reach the end of 64 bits. Nothing changes.
func (s *State) Check(p *Part) error {
	rows := int64(p.Rows)
	switch {
	case p.ID != s.identity.ID:
		return errs.Invalid("a part of bucket %s was sent to bucket %s; nothing was written", p.ID, s.identity.ID)
	case rows <= 0:
		return errs.Invalid("bucket %s: a part without rows; nothing was written", p.ID)
	case s.mode != offsetsUndecided && (s.mode == offsetsOfCaller) != p.OffsetsGiven:
		return errs.Invalid("bucket %s: offsets come either from the caller or from the engine, one way for a whole session; nothing was written", p.ID)
	case p.OffsetsGiven && p.FirstOffset < s.nextOffset:
		return errs.Invalid("bucket %s: offset %d goes back, the next one is at least %d; nothing was written", p.ID, p.FirstOffset, s.nextOffset)
	case p.OffsetsGiven && p.LastOffset == math.MaxInt64:
		return errs.Invalid("bucket %s: offset %d has no successor; nothing was written", p.ID, p.LastOffset)
	case !p.OffsetsGiven && rows > math.MaxInt64-s.nextOffset:
		return errs.Invalid("bucket %s: %d rows after offset %d exhaust the offsets; nothing was written", p.ID, rows, s.nextOffset)
	case rows > math.MaxInt64-s.nextSeq:
		return errs.Invalid("bucket %s: %d rows after sequence number %d exhaust the sequence numbers; nothing was written", p.ID, rows, s.nextSeq)
	}
	return nil
}

// Append stamps a part with its first offset, its first sequence number and
// its epoch, and adds it to the building segment. Epochs must not go back. It
// costs the same for any number of rows, except that the rows of a small part are
// copied to the open chunk. On error nothing changes.
func (s *State) Append(p *Part, epoch int64) error {
	if err := s.Check(p); err != nil {
		return err
	}
	if epoch < s.epoch {
		return errs.Invalid("bucket %s: epoch %d after epoch %d; nothing was written", p.ID, epoch, s.epoch)
	}
	first := s.nextOffset
	end := first + int64(p.Rows)
	s.mode = offsetsOfEngine
	if p.OffsetsGiven {
		first, end = p.FirstOffset, p.LastOffset+1
		s.mode = offsetsOfCaller
	}
	s.building.append(p, epoch, s.nextSeq)
	if s.building.rows == 0 {
		s.building.begin = first
	}
	s.building.end = end
	s.building.rows += int64(p.Rows)
	s.building.bytes += p.Bytes
	s.nextOffset, s.epoch = end, epoch
	s.nextSeq += int64(p.Rows)
	return nil
}

// Seal closes the building segment at the epoch of a cut and opens the next one.
// Without rows there is nothing to seal and the result is nil.
func (s *State) Seal(epoch int64) *Segment {
	s.epoch = max(s.epoch, epoch)
	if s.building.rows == 0 {
		return nil
	}
	sealed := s.building
	sealed.closeChunk()
	sealed.cut = epoch
	s.sealed = append(s.sealed, sealed)
	s.open()
	s.pictures = nil
	return sealed.picture(s.identity.ID)
}

// TakePrepare hands over all sealed segments that no prepare took yet, oldest
// first. Their offsets form one range.
func (s *State) TakePrepare() []*Segment {
	var taken []*Segment
	for _, g := range s.sealed {
		if !g.prepared {
			g.prepared = true
			taken = append(taken, g.picture(s.identity.ID))
		}
	}
	return taken
}

// Rejoin takes back a segment of an aborted prepare: the next one takes it
// again. It does nothing for a segment that was reclaimed meanwhile.
func (s *State) Rejoin(seg *Segment) {
	for _, g := range s.sealed {
		if g.number == seg.number {
			g.prepared = false
		}
	}
}

// Reclaim drops the sealed segments that end at or below a committed end. freed
// are the bytes that nobody keeps any more, pinned those that readers still hold.
// A segment that reaches beyond the end is kept whole; building rows are never
// dropped. It may come twice with the same end.
func (s *State) Reclaim(committedEnd int64) (freed, pinned int64) {
	s.committedEnd = max(s.committedEnd, committedEnd)
	drop := 0
	for drop < len(s.sealed) && s.sealed[drop].end <= committedEnd {
		g := s.sealed[drop]
		g.hold.bytes.Store(g.bytes)
		if bytes, last := g.hold.Drop(); last {
			freed += bytes
		} else {
			pinned += g.bytes
		}
		drop++
	}
	if drop > 0 {
		s.sealed = append([]*segment(nil), s.sealed[drop:]...)
		s.pictures = nil
	}
	return freed, pinned
}

// RaiseSequence lifts the sequence numbers of coming rows above min. It never
// lowers them.
func (s *State) RaiseSequence(min int64) {
	if min >= s.nextSeq && min < math.MaxInt64 {
		s.nextSeq = min + 1
	} else if min == math.MaxInt64 {
		s.nextSeq = math.MaxInt64
	}
}

// Describe gives the counters.
func (s *State) Describe() Stats {
	out := Stats{
		BuildingRows: s.building.rows, BuildingBytes: s.building.bytes,
		Runs: s.building.runCount(), Segments: len(s.sealed),
		NextOffset: s.nextOffset, NextSeq: s.nextSeq, CommittedEnd: s.committedEnd,
	}
	if s.building.rows > 0 {
		out.Segments++
	}
	for _, g := range s.sealed {
		out.SealedRows += g.rows
		out.SealedBytes += g.bytes
		out.Runs += g.runCount()
	}
	return out
}
