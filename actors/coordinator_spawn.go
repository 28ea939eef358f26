package actors

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
)

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
	c.offload(func(ctx context.Context) any {
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
	return restored, snapshotID(chain.Latest), nil
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
