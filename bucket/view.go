package bucket

import (
	"errors"

	"github.com/tideline-db/tideline/internal/errs"
)

// ErrRetryPlan says that a view holds runs that were consolidated beyond the
// frontier of the plan: take frontier and view again.
var ErrRetryPlan = errors.New("the view was consolidated beyond the frontier of the plan")

// View is an immutable picture of a partition-bucket. It stays readable for as
// long as somebody has it, whatever happens to the bucket.
type View struct {
	ID              ID
	Identity        *Part          // names the partition; has no rows
	Segments        []*SegmentView // oldest first, the building one last; none is empty
	End             int64          // end of the offsets
	CommittedEnd    int64          // as the bucket knew it
	ConsolidatedTo  int64          // highest epoch that was merged with an older one
	buildingPicture SegmentView
	inline          [2]*SegmentView
}

// SegmentView is the part of a view that one segment holds.
type SegmentView struct {
	Begin, End int64 // offsets [Begin, End)
	Sealed     bool
	Rows       int64
	Bytes      int64

	t      *Table
	number int64
	hold   *Hold
	runs   []*Run
	open   chunkRun // the rows of the open chunk; none when rows is 0
}

// View takes a picture. It costs one allocation and the copy of a pointer a
// sealed segment, however many batches there are.
func (s *State) View() *View {
	if s.pictures == nil && len(s.sealed) > 0 {
		s.pictures = make([]*SegmentView, len(s.sealed))
		for i, g := range s.sealed {
			s.pictures[i] = &SegmentView{}
			g.show(s.pictures[i])
			s.pictures[i].Sealed = true
		}
	}
	v := &View{
		ID: s.identity.ID, Identity: s.identity, End: s.nextOffset,
		CommittedEnd: s.committedEnd, ConsolidatedTo: s.consolidated,
	}
	if s.building.rows == 0 {
		v.Segments = s.pictures
		return v
	}
	s.building.show(&v.buildingPicture)
	v.Segments = append(append(v.inline[:0], s.pictures...), &v.buildingPicture)
	return v
}

func (g *segment) show(v *SegmentView) {
	v.Begin, v.End, v.Rows, v.Bytes = g.begin, g.end, g.rows, g.bytes
	v.t, v.number, v.hold = g.t, g.number, g.hold
	v.runs = g.runs[:len(g.runs):len(g.runs)]
	if g.open != nil {
		v.open = chunkRun{g.open.prefix, g.open.sorted}
	}
}

// Runs are the rows of the view that a plan sees: those of the offsets
// [committedEnd, View.End) and of epochs up to frontier. committedEnd is the
// progress of the snapshot that the plan reads from disk.
//
// errs.ErrFenced when committedEnd lies inside of a segment: segments are
// committed whole, so somebody else moved the progress. ErrRetryPlan when the
// frontier lies inside of a consolidated run.
func (v *View) Runs(committedEnd, frontier int64) ([]*Run, error) {
	var out []*Run
	for _, seg := range v.Segments {
		if seg.End <= committedEnd {
			continue
		}
		if seg.Begin < committedEnd {
			return nil, errs.Wrap(errs.ErrFenced, "bucket %s: the committed end %d lies inside of the segment [%d,%d) in memory; another writer moved it", v.ID, committedEnd, seg.Begin, seg.End)
		}
		for _, r := range seg.runs {
			visible, err := r.upTo(frontier)
			if err != nil {
				return nil, err
			}
			if visible != nil {
				out = append(out, visible)
			}
		}
		if seg.open.rows > 0 {
			if r := seg.open.run(seg.t, frontier); r != nil {
				out = append(out, r)
			}
		}
	}
	return out, nil
}
