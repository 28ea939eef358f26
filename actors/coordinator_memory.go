package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
)

type jobContext = context.Context

// spawn queues a request for buckets. One restore job runs at a time, so two
// requests for the same bucket give one actor.
func (c *coordinator) spawn(m *messages.Spawn) {
	if err := c.core.writable(); err != nil {
		m.Reply(err)
		return
	}
	c.spawning = append(c.spawning, m)
	c.restoreNext()
}

func (c *coordinator) restoreNext() {
	if c.restoring || len(c.spawning) == 0 {
		return
	}
	c.restoring = true
	m, core := c.spawning[0], c.core
	var missing []*bucket.Part
	registry := core.registry.Load()
	for _, part := range m.Parts {
		if registry.Find(part.ID) == nil {
			missing = append(missing, part)
		}
	}
	request := messages.Spawn{Lease: m.Lease, Parts: missing}
	if len(missing) == 0 {
		c.core.tell(&messages.Spawned{Request: request})
		c.jobs++
		return
	}
	adopted := core.adopted.Load()
	c.offload(func(ctx jobContext) any {
		restored, seen, err := restore(ctx, core, adopted, missing)
		return &messages.Spawned{Request: request, Restored: restored, Seen: seen, Err: err}
	})
}

// restore reads the counters of new buckets from the latest snapshot, not from
// the adopted one. An end that somebody else moved since then fences: this
// session has seen neither those rows nor their offsets. seen is the
// snapshot that was read.
func restore(ctx context.Context, core *core, adopted *Adopted, parts []*bucket.Part) (_ []bucket.Restore, seen int64, _ error) {
	chain, err := core.table.Follow(ctx, adopted.Snapshot, adopted.Progress)
	if err != nil {
		return nil, 0, err
	}
	restored := make([]bucket.Restore, len(parts))
	for i, part := range parts {
		end := progressEnd(chain.Progress, part.ID)
		if known := progressEnd(adopted.Progress, part.ID); end != known {
			return nil, 0, errs.Wrap(errs.ErrFenced, "bucket %s: its committed end moved from %d to %d since this session opened; another writer owns it", part.ID, known, end)
		}
		last, err := core.table.MaxSequence(ctx, chain.Latest, part.PartitionRow, int(part.ID.Bucket))
		if err != nil {
			return nil, 0, err
		}
		restored[i] = bucket.Restore{NextOffset: end, NextSeq: last + 1, CommittedEnd: end}
	}
	return restored, (&Adopted{Snapshot: chain.Latest}).ID(), nil
}

func (c *coordinator) spawned(m *messages.Spawned) {
	c.jobs--
	c.restoring = false
	if len(c.spawning) == 0 { // the session failed meanwhile; everybody was answered
		return
	}
	if m.Err == nil && len(m.Restored) > 0 && c.core.adopted.Load().ID() > m.Seen {
		// What was adopted meanwhile raised the watermarks of the buckets that were
		// there; the new ones read theirs again.
		c.restoreNext()
		return
	}
	waiting := c.spawning[0]
	c.spawning = c.spawning[1:]
	defer c.restoreNext()
	err := m.Err
	if err == nil {
		err = c.core.writable()
	}
	if err != nil {
		if errors.Is(err, errs.ErrFenced) {
			c.core.poison(err)
		}
		waiting.Reply(err)
		return
	}
	handles := make([]*Handle, len(m.Restored))
	for i, counters := range m.Restored {
		handles[i] = c.start(m.Request.Parts[i], counters)
	}
	if len(handles) > 0 {
		c.core.registry.Store(c.core.registry.Load().with(handles))
	}
	waiting.Reply(nil)
}

// start makes the actor of one bucket.
func (c *coordinator) start(part *bucket.Part, counters bucket.Restore) *Handle {
	h := &Handle{ID: part.ID, Part: part.Identity(), nextOffset: counters.NextOffset, nextSeq: counters.NextSeq}
	state := bucket.NewState(c.core.memory, h.Part, counters)
	h.view.Store(state.View())
	core := c.core
	props := actor.PropsFromProducer(
		func() actor.Actor { return &bucketActor{core: core, handle: h, state: state} },
		actor.WithMailbox(func() actor.Mailbox { h.mailbox = newMailbox(core.runtime.Batch()); return h.mailbox }),
		actor.WithDispatcher(core.runtime.Dispatcher()),
		actor.WithSupervisor(stopOnFailure),
	)
	h.pid = c.context.Spawn(props)
	c.pipeline.ends[h.ID] = counters.CommittedEnd
	core.live.Add(1)
	return h
}

// awaitCredits queues a write that found the budget used up. When nothing in
// flight can give bytes back, waiting would be a deadlock: it is refused.
func (c *coordinator) awaitCredits(m *messages.AwaitCredits) {
	if err := c.core.writable(); err != nil {
		m.Ready(err)
		return
	}
	c.waits = append(c.waits, m)
	c.grantCredits()
}

func (c *coordinator) cancelCredits(m *messages.CancelCredits) {
	for i, wait := range c.waits {
		if wait.ID == m.ID {
			c.waits = append(c.waits[:i], c.waits[i+1:]...)
			return
		}
	}
	// Granted in the moment in which the caller gave up: the bytes go back.
	c.core.budget.Return(m.Bytes)
}

// grantCredits is called whenever bytes came back, or a thing ended from which
// they could have come.
func (c *coordinator) grantCredits() {
	if len(c.waits) == 0 {
		return
	}
	if err := c.core.writable(); err != nil { // a failed commit closed writing
		for _, m := range c.waits {
			m.Ready(err)
		}
		c.waits = nil
		return
	}
	for len(c.waits) > 0 {
		m := c.waits[0]
		if !c.core.budget.TryTake(m.Bytes) {
			break
		}
		c.waits = c.waits[1:]
		m.Ready(nil)
	}
	if len(c.waits) == 0 || c.canFree() {
		return
	}
	used, limit := c.core.budget.Used(), c.core.budget.Limit()
	for _, m := range c.waits {
		m.Ready(errs.Wrap(errs.ErrOverloaded, "%d bytes do not fit: %d of %d are in use and no commit is under way that could free them; nothing was written", m.Bytes, used, limit))
	}
	c.waits = nil
}

// commitFailed answers the writes that relied on a background commit: the next
// one begins only with another write.
func (c *coordinator) commitFailed(m *messages.CommitFailed) {
	if c.core.writable() != nil { // the writes are told why
		c.grantCredits()
		return
	}
	waits := c.waits
	c.waits = nil
	for _, wait := range waits {
		wait.Ready(fmt.Errorf("%w: %d bytes do not fit and the background commit failed; nothing was written: %w", errs.ErrOverloaded, wait.Bytes, m.Err))
	}
}

// canFree reports whether bytes will come back without the waiting writer's help.
func (c *coordinator) canFree() bool {
	return c.core.settings.AutoCommit || c.pipeline.moving() || c.refreshing ||
		len(c.unadopted) > 0 || c.core.pinnedBytes.Load() > 0 || c.core.reclaiming.Load() > 0
}

func (c *coordinator) pin(m *messages.Pin) {
	if c.core.closing.Load() {
		m.Reply(0, errs.Wrap(errs.ErrClosed, "session of table %s", c.core.table.Root))
		return
	}
	m.Reply(c.tickets.pin(m, c.core.runtime.Now()), nil)
	c.tick()
}

// tick drops expired tickets and arms the timer for the next one.
func (c *coordinator) tick() {
	if c.ticking != nil {
		c.ticking()
		c.ticking = nil
	}
	now := c.core.runtime.Now()
	if next := c.tickets.expire(now); next > 0 && !c.core.closing.Load() {
		core := c.core
		c.ticking = core.runtime.After(next-now, func() { core.tell(&messages.Tick{}) })
	}
}

// stopOnFailure stops a failed actor; a restarted one would have lost its rows.
var stopOnFailure = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
