package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/snapshot"
)

// coordinator owns what belongs to the session as a whole: the writer lease, the
// registry, the waits for credits, the pipeline of prepares, adoption and
// tickets. It never blocks and does no I/O: slow work is offloaded and comes
// back as a message.
type coordinator struct {
	core     *core
	context  actor.Context // of the message being handled
	lease    int64         // lease given last
	held     bool          // somebody holds it
	pipeline *pipeline
	tickets  *tickets
	waits    []*messages.AwaitCredits

	spawning   []*messages.Spawn // answered in order, one restore job at a time
	restoring  bool
	identifier int64 // commit identifier given last

	publishing bool
	// unadopted are the snapshots of ours that were not adopted yet: until then
	// each must stay in the table unchanged.
	unadopted []*manifest.Snapshot

	refreshing bool
	refreshes  []func(*manifest.Snapshot, error) // wait for the refresh under way
	queued     []func(*manifest.Snapshot, error) // wait for the one after it

	jobs     int // offloaded and not come back
	shutdown []func()
	ticking  func() // cancels the next Tick
}

func newCoordinator(core *core, identifier int64) *coordinator {
	return &coordinator{
		core: core, pipeline: newPipeline(), tickets: newTickets(),
		identifier: identifier,
	}
}

func (c *coordinator) Receive(ctx actor.Context) {
	defer func() {
		if reason := recover(); reason != nil {
			c.core.poison(fmt.Errorf("coordinator panicked: %v\n%s", reason, debug.Stack()))
		}
	}()
	c.context = ctx
	switch m := ctx.Message().(type) {
	case *messages.OpenWriter:
		c.openWriter(m)
	case *messages.CloseWriter:
		c.closeWriter(m)
	case *messages.Spawn:
		c.spawn(m)
	case *messages.Spawned:
		c.spawned(m)
	case *messages.Prepare:
		c.prepare(m)
	case *messages.Sealed:
		c.sealed(m)
	case *messages.CutVisible:
		c.cutVisible(m)
	case *messages.Flushed:
		c.flushed(m)
	case *messages.Commit:
		c.commit(m)
	case *messages.Published:
		c.published(m)
	case *messages.Abort:
		c.abort(m)
	case *messages.Refresh:
		c.refresh(m.Reply)
	case *messages.Followed:
		c.followed(m)
	default:
		c.receiveOther(m)
	}
	c.finishShutdown()
}

// receiveOther handles what is not on the way of a row.
func (c *coordinator) receiveOther(message any) {
	switch m := message.(type) {
	case *messages.Aborted:
		c.aborted(m)
	case *messages.AwaitCredits:
		c.awaitCredits(m)
	case *messages.CancelCredits:
		c.cancelCredits(m)
	case *messages.CreditsReturned:
		c.grantCredits()
	case *messages.CommitFailed:
		c.commitFailed(m)
	case *messages.Pin:
		c.pin(m)
	case *messages.Resolve:
		m.Reply(c.tickets.resolve(m.Tickets, c.core.runtime.Now()))
	case *messages.Release:
		m.Reply(c.tickets.release(m.Tickets, m.Strict, c.core.runtime.Now()))
	case *messages.Tick:
		c.tick()
	case *jobLost:
		c.jobs--
		c.core.poison(m.cause)
	case *sessionFailed:
		c.failAll()
	case *messages.Shutdown:
		c.core.closing.Store(true)
		c.shutdown = append(c.shutdown, m.Reply)
		c.failAll()
	}
}

func (c *coordinator) openWriter(m *messages.OpenWriter) {
	switch {
	case c.core.writable() != nil:
		m.Reply(0, c.core.writable())
	case c.held:
		m.Reply(0, errs.Invalid("table %s already has an active writer in this session; close it first", c.core.table.Root))
	default:
		c.held = true
		c.lease++
		m.Reply(c.lease, nil)
	}
}

func (c *coordinator) closeWriter(m *messages.CloseWriter) {
	if m.Lease != c.lease || !c.held {
		m.Reply(nil)
		return
	}
	c.held = false
	if !m.Unprepared || c.core.poisoned() != nil {
		m.Reply(nil)
		return
	}
	if m.Discard {
		c.core.poison(errs.Wrap(errs.ErrClosed, "the writer was discarded with rows that no prepare took"))
		m.Reply(nil)
		return
	}
	err := errs.Invalid("the writer was closed with rows that no prepare took; they are not committed, reopen the table and replay them")
	c.core.poison(err)
	m.Reply(err)
}

// failAll answers everybody who waits, once the session is dead or closing.
func (c *coordinator) failAll() {
	err := c.core.poisoned()
	if err == nil {
		err = errs.Wrap(errs.ErrClosed, "session of table %s", c.core.table.Root)
	}
	for _, m := range c.waits {
		m.Ready(err)
	}
	c.waits = nil
	for _, m := range c.spawning {
		m.Reply(err)
	}
	c.spawning = nil
	unfinished := false
	for _, s := range c.pipeline.stages {
		if s.Reply != nil && s.state < ready {
			s.Reply(messages.Prepared{}, err)
			s.Reply = nil
		}
		// A publish under way ends with its own answer. What was prepared before the
		// session was poisoned may still be committed, except behind a prepare that
		// may never finish.
		if unfinished = unfinished || s.state < ready; !unfinished {
			continue
		}
		s.wanted = false
		for _, reply := range s.replies {
			reply(snapshot.CommitResult{}, err)
		}
		s.replies = nil
	}
}

// finishShutdown retires the buckets when no job is out any more.
func (c *coordinator) finishShutdown() {
	if len(c.shutdown) == 0 || c.jobs > 0 {
		return
	}
	replies := c.shutdown
	c.shutdown = nil
	if c.ticking != nil {
		c.ticking()
	}
	c.tickets.expireAll()
	handles := c.core.registry.Load().Handles
	left := len(handles)
	core := c.core
	done := func() {
		core.feed.end()
		close(core.ended)
		core.wakeWriter()
		for _, reply := range replies {
			reply()
		}
	}
	self := c.context.Self()
	if left == 0 {
		c.context.Stop(self)
		done()
		return
	}
	system := c.core.runtime.System()
	for _, h := range handles {
		c.core.post(h.pid, &messages.Retire{Reply: func() {
			// Retire is answered on the buckets' turns; only the last one goes on.
			if c.core.live.Add(-1) == 0 {
				system.Root.Stop(self)
				done()
			}
		}})
	}
}

// offload runs a job that waits for storage and counts it until it comes back.
func (c *coordinator) offload(job func(ctx context.Context) any) {
	c.jobs++
	c.core.runtime.Offload(c.core.answered(job, nil))
}

// compute is offload for a job that mostly computes.
func (c *coordinator) compute(job func(ctx context.Context) any) {
	c.jobs++
	c.core.runtime.Compute(c.core.answered(job, nil))
}

// answered posts what a job found. A job that ends without finding anything, by a
// panic that it did not expect or by ending its goroutine, is reported as well:
// nobody waits for ever, and no panic leaves the engine. unanswered is what is
// posted then; nil poisons the session.
func (c *core) answered(job func(ctx context.Context) any, unanswered any) func(context.Context) {
	return func(ctx context.Context) {
		lost := &jobLost{errors.New("a worker ended without an answer")}
		fact := unanswered
		if fact == nil {
			fact = lost
		}
		defer func() {
			if reason := recover(); reason != nil {
				lost.cause = fmt.Errorf("a worker panicked: %v\n%s", reason, debug.Stack())
			}
			c.tell(fact)
		}()
		fact = job(ctx)
	}
}

// jobLost stands for the fact that a job should have found.
type jobLost struct{ cause error }
