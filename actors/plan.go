package actors

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
)

// planTries bounds how often a plan starts again because a view was consolidated
// or reclaimed between two looks.
const planTries = 64

// Pinned is one consistent picture of the table: the committed snapshot and,
// for each bucket, the memory runs that it does not cover, up to one frontier.
type Pinned struct {
	Frontier int64
	Snapshot *Adopted // the disk side: at least as new as the adopted snapshot
	Buckets  []PinnedBucket
}

// PinnedBucket is the visible memory of one bucket, oldest run first. Its
// segments are held until every hold on it ended; it begins with one.
type PinnedBucket struct {
	Handle *Handle
	Runs   []*bucket.Run
	Begin  int64 // the snapshot's committed end
	End    int64 // offset end of the view
	view   *bucket.View
	hold   *hold
}

// Release ends the first hold of every bucket.
func (p *Pinned) Release() {
	for i := range p.Buckets {
		p.Buckets[i].Release()
	}
}

// Release ends one hold.
func (b *PinnedBucket) Release() { b.hold.release() }

// Extend takes one more hold, to be ended by Release; false when the last one
// ended already.
func (b *PinnedBucket) Extend() bool { return b.hold.extend() }

// hold keeps the segments of one view alive. It is taken only from non-zero, so
// memory that was given back cannot come to life again.
type hold struct {
	core     *core
	segments []*bucket.Hold
	count    atomic.Int64
}

func (h *hold) extend() bool {
	for {
		n := h.count.Load()
		if n == 0 {
			return false
		}
		if h.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (h *hold) release() {
	if h.count.Add(-1) == 0 {
		h.core.drop(h.segments)
	}
}

// drop ends the holds on segments; bytes that only they kept go back.
func (c *core) drop(segments []*bucket.Hold) {
	for _, s := range segments {
		if bytes, last := s.Drop(); last {
			c.pinnedBytes.Add(-bytes)
			c.budget.Return(bytes)
		}
	}
}

// Pin takes the picture in the order that makes it consistent:
// frontier, registry, views, adopted progress, disk snapshot
// last. filter leaves out buckets that a scan cannot need.
func (s *Session) Pin(ctx context.Context, filter func(*Handle) bool) (*Pinned, error) {
	for range planTries {
		p, err := s.tryPin(ctx, filter)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, bucket.ErrRetryPlan) {
			return nil, err
		}
	}
	return nil, errs.Wrap(errs.ErrOverloaded, "no consistent picture of table %s in %d tries: memory is being consolidated faster than it can be pinned; try again", s.core.table.Root, planTries)
}

func (s *Session) tryPin(ctx context.Context, filter func(*Handle) bool) (_ *Pinned, err error) {
	c := s.core
	p := &Pinned{}
	defer func() {
		if err != nil {
			p.Release()
		}
	}()
	p.Frontier = c.frontier.At()
	registry := c.registry.Load()
	for _, h := range registry.Handles {
		if filter != nil && !filter(h) {
			continue
		}
		p.Buckets = append(p.Buckets, c.acquire(h))
	}
	adopted := c.adopted.Load()
	chain, err := c.table.Follow(ctx, adopted.Snapshot, adopted.Progress)
	if err != nil {
		return nil, err
	}
	if err := c.examine(chain); err != nil {
		return nil, err
	}
	if p.Frontier < c.tried.Load() { // the snapshot may hold writes after the frontier, which would be untrue then
		return nil, bucket.ErrRetryPlan
	}
	p.Snapshot = &Adopted{Snapshot: chain.Latest, Progress: chain.Progress}
	kept := p.Buckets[:0]
	for i := range p.Buckets {
		b := p.Buckets[i]
		b.Begin = progressEnd(chain.Progress, b.Handle.ID)
		if b.Runs, err = b.view.Runs(b.Begin, p.Frontier); err != nil {
			p.Buckets = append(kept, p.Buckets[i:]...)
			return nil, err
		}
		if len(b.Runs) == 0 { // committed files say it all
			b.Release()
			continue
		}
		kept = append(kept, b)
	}
	p.Buckets = kept
	return p, nil
}

// acquire holds every segment of the view published now. A segment whose last
// hold ended is being reclaimed: then a newer view is there already.
func (c *core) acquire(handle *Handle) PinnedBucket {
	for {
		view := handle.View()
		segments := view.Held()
		taken := 0
		for taken < len(segments) && segments[taken].Take() {
			taken++
		}
		if taken == len(segments) {
			h := &hold{core: c, segments: segments}
			h.count.Store(1)
			return PinnedBucket{Handle: handle, End: view.End, view: view, hold: h}
		}
		c.drop(segments[:taken])
	}
}

// Ticket puts a pinned picture under a ticket that lives for ttl.
func (s *Session) Ticket(ctx context.Context, payload any, release func()) (int64, error) {
	c := s.core
	var ticket int64
	err := c.askAnyway(ctx, func(done func(error)) {
		c.tell(&messages.Pin{Release: release, TTL: c.settings.TicketTTL, Payload: payload, Reply: func(id int64, err error) { ticket = id; done(err) }})
	})
	if err != nil { // ticket may still be written to; then it expires
		return 0, err
	}
	return ticket, nil
}

// Resolve returns the payloads of tickets without consuming them, all or none.
func (s *Session) Resolve(ctx context.Context, ids []int64) ([]any, error) {
	c := s.core
	var payloads []any
	err := c.askAnyway(ctx, func(done func(error)) {
		c.tell(&messages.Resolve{Tickets: ids, Reply: func(p []any, err error) { payloads = p; done(err) }})
	})
	if err != nil {
		return nil, err
	}
	return payloads, nil
}

// Redeem uses tickets up, all or none: a ticket that is gone already, used or
// expired, is an error and the others stay.
func (s *Session) Redeem(ctx context.Context, ids []int64) error {
	return s.consume(ctx, ids, true)
}

// GiveUp ends tickets; those that are gone already are fine.
func (s *Session) GiveUp(ctx context.Context, ids []int64) error { return s.consume(ctx, ids, false) }

func (s *Session) consume(ctx context.Context, ids []int64, strict bool) error {
	c := s.core
	return c.askAnyway(ctx, func(done func(error)) {
		c.tell(&messages.Release{Tickets: ids, Strict: strict, Reply: done})
	})
}
