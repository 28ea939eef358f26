package actors

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tideline-db/tideline/bucket"
)

// Handle is how the outside knows one bucket: its name, where to post, and the
// view it published last. Readers never post; they load the view.
type Handle struct {
	ID   bucket.ID
	Part *bucket.Part // the partition the bucket belongs to, as its first part described it; rows are not kept
	pid  *actor.PID
	// mailbox is that of pid, for a writer that runs the bucket's turn itself.
	mailbox *mailbox
	view    atomic.Pointer[bucket.View]

	// The writer's mirror of the counters, so that it can refuse a batch before
	// anything is posted. Only the holder of the lease touches them.
	nextOffset int64
	nextSeq    int64
	accepted   bool // a row was accepted since the bucket was restored
}

// advance moves the mirror over a part that is about to be posted.
func (h *Handle) advance(p *bucket.Part) {
	h.accepted = true
	h.nextSeq += int64(p.Rows)
	if p.OffsetsGiven {
		h.nextOffset = p.LastOffset + 1
	} else {
		h.nextOffset += int64(p.Rows)
	}
}

// View returns the view published last. It is immutable.
func (h *Handle) View() *bucket.View { return h.view.Load() }

// Registry is the immutable set of buckets of a session; a spawn publishes a new one.
type Registry struct {
	Handles []*Handle // in order of spawning
	byID    map[bucket.ID]*Handle
}

var emptyRegistry = &Registry{}

// Find returns the handle of a bucket, nil when it has none.
func (r *Registry) Find(id bucket.ID) *Handle { return r.byID[id] }

// with returns a registry that holds more handles as well.
func (r *Registry) with(more []*Handle) *Registry {
	next := &Registry{
		Handles: make([]*Handle, 0, len(r.Handles)+len(more)),
		byID:    make(map[bucket.ID]*Handle, len(r.Handles)+len(more)),
	}
	next.Handles = append(append(next.Handles, r.Handles...), more...)
	for _, h := range next.Handles {
		next.byID[h.ID] = h
	}
	return next
}
