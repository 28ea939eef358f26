package actors

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/snapshot"
)

// core is what the actors of one session and its shell share: only atomics and
// immutable values. Everything else has one owner and is reached by messages.
type core struct {
	runtime  Runtime
	root     *actor.RootContext
	table    *snapshot.Table // committed side
	memory   *bucket.Table   // what a bucket must know of the table
	settings Settings

	frontier frontier
	budget   budget
	registry atomic.Pointer[Registry]
	adopted  atomic.Pointer[Adopted]

	cause    atomic.Pointer[failure] // why the session is poisoned
	readOnly atomic.Pointer[failure] // why writing is closed, while commits and reads go on
	failed   chan struct{}           // closed when cause is set
	ended    chan struct{}           // closed when the coordinator has stopped
	closing  atomic.Bool             // the session is being closed; job failures are expected
	stalled  atomic.Pointer[func()]  // wakes a writer that waits for the frontier
	waits    atomic.Int64            // ids of waits for credits
	epochs   atomic.Int64            // newest epoch given; only the holder of the lease gives one
	tried    atomic.Int64            // cut of the newest prepare whose publication began: no snapshot of ours holds later writes
	prepares atomic.Int64            // numbers of prepares, over all writers of the session
	offsets  atomic.Int32            // offsetMode of the session, once its first write decided it

	live        atomic.Int64 // bucket actors not retired
	pinnedBytes atomic.Int64 // bytes that only readers and tickets keep
	reclaiming  atomic.Int64 // Reclaims on their way: bytes will come back without further help
	feed        feed         // subscribers to commits

	coordinator *actor.PID
}

type failure struct{ err error }

// stopOnFailure stops a failed actor; a restarted one would have lost its rows.
var stopOnFailure = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// Adopted is a committed snapshot whose progress is the session's own.
type Adopted struct {
	Snapshot *manifest.Snapshot // nil: the table has no snapshot yet
	Progress *snapshot.Progress
}

// ID returns the id of the adopted snapshot, 0 when there is none.
func (a *Adopted) ID() int64 { return snapshotID(a.Snapshot) }

func snapshotID(s *manifest.Snapshot) int64 {
	if s == nil {
		return 0
	}
	return s.ID
}

// post sends one message; it never blocks.
func (c *core) post(pid *actor.PID, message any) {
	c.root.Send(pid, message)
}

// tell posts to the coordinator.
func (c *core) tell(message any) { c.post(c.coordinator, message) }

// ask posts a command that carries done and waits for its answer, for the end of
// the session, or for the caller. A late answer goes nowhere.
func (c *core) ask(ctx context.Context, post func(done func(error))) error {
	return c.waitAnswer(ctx, c.failed, post)
}

// askAnyway is ask for commands that a poisoned session still answers.
func (c *core) askAnyway(ctx context.Context, post func(done func(error))) error {
	return c.waitAnswer(ctx, nil, post)
}

func (c *core) waitAnswer(ctx context.Context, failed <-chan struct{}, post func(done func(error))) error {
	answer := make(chan error, 1)
	post(func(err error) { answer <- err })
	var err error
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		err = errs.Wrap(errs.ErrClosed, "session of table %s", c.table.Root)
	case <-failed:
		err = c.poisoned()
	}
	select {
	case answered := <-answer: // it came first
		return answered
	default:
		return err
	}
}

// gone reports whether the coordinator has stopped.
func (c *core) gone() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// poison ends the session: memory stays readable through pinned plans, nothing
// is written or committed any more. The first cause stays.
func (c *core) poison(cause error) {
	err := fmt.Errorf("%w: %w", errs.ErrPoisoned, cause)
	if !c.cause.CompareAndSwap(nil, &failure{err}) {
		return
	}
	close(c.failed)
	c.wakeWriter()
	if c.coordinator != nil {
		c.tell(&sessionFailed{})
	}
}

// reclaimed is called by a bucket; the last one has waits for memory looked at
// again, because nothing may have come back.
func (c *core) reclaimed() {
	if c.reclaiming.Add(-1) == 0 && c.budget.waiters.Load() > 0 {
		c.tell(&messages.CreditsReturned{})
	}
}

// wakeWriter makes a writer that waits for the frontier look around.
func (c *core) wakeWriter() {
	if wake := c.stalled.Load(); wake != nil {
		(*wake)()
	}
}

// poisoned returns why the session is dead, nil while it lives.
func (c *core) poisoned() error {
	if f := c.cause.Load(); f != nil {
		return f.err
	}
	return nil
}

// closeWriting refuses further writes and prepares but keeps commits, adoption
// and reads: the state after ErrConflict and ErrOutcomeUnknown of a commit.
func (c *core) closeWriting(cause error) {
	c.readOnly.CompareAndSwap(nil, &failure{fmt.Errorf("%w: writing is closed: %w", errs.ErrPoisoned, cause)})
}

// writable returns why nothing may be written, nil when all is well.
func (c *core) writable() error {
	if err := c.poisoned(); err != nil {
		return err
	}
	if f := c.readOnly.Load(); f != nil {
		return f.err
	}
	if c.closing.Load() {
		return errs.Wrap(errs.ErrClosed, "session of table %s", c.table.Root)
	}
	return nil
}

// sessionFailed tells the coordinator to answer everybody who waits.
type sessionFailed struct{}
