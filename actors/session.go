package actors

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/snapshot"
)

// Settings are the limits and names of one session; the face validated them.
type Settings struct {
	CommitUser       string
	MemoryBytesMax   int64
	TicketTTL        time.Duration
	AutoCommit       bool   // commits happen without the writer's help
	OnFull           func() // optional; told, without waiting, that a write found no memory
	RecoveryProgress *snapshot.Progress
}

// Session is everything one process holds in memory for one open table. Its
// methods are the blocking shell over the actors; they may be called from any
// goroutine.
type Session struct {
	core *core
}

// Open adopts the latest snapshot and starts the coordinator. The caller keeps
// the runtime and closes it after the session.
func Open(ctx context.Context, runtime Runtime, table *snapshot.Table, memory *bucket.Table, settings Settings) (*Session, error) {
	latest, err := table.Latest(ctx, 0)
	if err != nil {
		return nil, err
	}
	progress := settings.RecoveryProgress
	if progress == nil {
		if progress, err = table.Progress(ctx, latest); err != nil {
			return nil, err
		}
	}
	c := &core{
		runtime: runtime, root: runtime.System().Root, table: table, memory: memory, settings: settings,
		failed: make(chan struct{}), ended: make(chan struct{}),
	}
	c.budget.limit = settings.MemoryBytesMax
	c.budget.wake = func() { c.tell(&messages.CreditsReturned{}) }
	c.registry.Store(emptyRegistry)
	c.adopted.Store(&Adopted{Snapshot: latest, Progress: progress})
	identifier := progress.Identifiers[settings.CommitUser]
	if identifier >= math.MaxInt64-1 {
		return nil, errs.Invalid("commit user %q has used up its identifiers (the newest is %d); open the table with another one", settings.CommitUser, identifier)
	}
	props := actor.PropsFromProducer(
		func() actor.Actor { return newCoordinator(c, identifier) },
		actor.WithMailbox(func() actor.Mailbox { return newMailbox(runtime.Batch()) }),
		actor.WithDispatcher(runtime.Dispatcher()),
		actor.WithSupervisor(stopOnFailure),
	)
	c.coordinator = runtime.System().Root.Spawn(props)
	return &Session{core: c}, nil
}

// Poisoned returns why the session is dead, nil while it lives.
func (s *Session) Poisoned() error { return s.core.poisoned() }

// Adopted returns the adopted snapshot and its progress.
func (s *Session) Adopted() *Adopted { return s.core.adopted.Load() }

// Frontier returns the epoch up to which everything written is visible.
func (s *Session) Frontier() int64 { return s.core.frontier.At() }

// Writer takes the writer lease. The next writer continues the numbers of the
// one before.
func (s *Session) Writer(ctx context.Context) (*Writer, error) {
	c := s.core
	lease, err := c.openWriter(ctx)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		core: c, lease: lease,
		dirty: map[*Handle]struct{}{}, buckets: map[bucket.ID]*Handle{},
		wake: make(chan struct{}, 1), ack: c.frontier.Ack,
		report: func(m messages.Sealed) { c.tell(&m) },
	}
	for _, h := range c.registry.Load().Handles {
		w.buckets[h.ID] = h
	}
	w.passed = w.signal
	wake := w.signal
	c.stalled.Store(&wake)
	return w, nil
}

// openWriter asks for the lease. When the caller gives up before the answer, the
// answer gives the lease back, or nobody could ever write again.
func (c *core) openWriter(ctx context.Context) (int64, error) {
	answer := make(chan int64, 1)
	var settled atomic.Bool // by the answer or by the caller, whoever came first
	drop := func(lease int64) { c.tell(&messages.CloseWriter{Lease: lease, Reply: func(error) {}}) }
	err := c.ask(ctx, func(done func(error)) {
		c.tell(&messages.OpenWriter{Reply: func(lease int64, err error) {
			if settled.CompareAndSwap(false, true) {
				answer <- lease
				done(err)
			} else if err == nil {
				drop(lease)
			}
		}})
	})
	switch {
	case err == nil:
		return <-answer, nil
	case !settled.CompareAndSwap(false, true):
		if lease := <-answer; lease > 0 {
			drop(lease)
		}
	}
	return 0, err
}

// Commit publishes a prepare and every earlier one. Cancelling ctx gives up the
// wait, not the commit: asking again tells what became of it.
func (s *Session) Commit(ctx context.Context, number int64) (snapshot.CommitResult, error) {
	c := s.core
	if c.closing.Load() {
		return snapshot.CommitResult{}, errs.Wrap(errs.ErrClosed, "session of table %s", c.table.Root)
	}
	var result snapshot.CommitResult
	err := c.askAnyway(ctx, func(done func(error)) {
		c.tell(&messages.Commit{Number: number, Reply: func(r snapshot.CommitResult, err error) { result = r; done(err) }})
	})
	if err != nil {
		return snapshot.CommitResult{}, err
	}
	return result, nil
}

// Refresh adopts what was committed and reclaims the memory it covers.
func (s *Session) Refresh(ctx context.Context) (*manifest.Snapshot, error) {
	c := s.core
	if c.closing.Load() {
		return nil, errs.Wrap(errs.ErrClosed, "session of table %s", c.table.Root)
	}
	var adopted *manifest.Snapshot
	err := c.ask(ctx, func(done func(error)) {
		c.tell(&messages.Refresh{Reply: func(s *manifest.Snapshot, err error) { adopted = s; done(err) }})
	})
	if err != nil { // adopted may still be written to
		return nil, err
	}
	return adopted, nil
}

// CommitFailed answers writes that wait for a background commit to free memory.
func (s *Session) CommitFailed(err error) {
	s.core.tell(&messages.CommitFailed{Err: err})
}

// Subscribe returns a channel of the commits of this session.
func (s *Session) Subscribe() *Subscription { return s.core.feed.subscribe() }

// Buckets returns the counters of every bucket, asked one by one; quiet for a
// poisoned or closing session.
func (s *Session) Buckets(ctx context.Context) (map[bucket.ID]bucket.Stats, error) {
	handles := s.core.registry.Load().Handles
	type line struct {
		id    bucket.ID
		stats bucket.Stats
	}
	lines := make(chan line, len(handles))
	for _, h := range handles {
		s.core.post(h.pid, &messages.Describe{Reply: func(id bucket.ID, st bucket.Stats) { lines <- line{id, st} }})
	}
	out := make(map[bucket.ID]bucket.Stats, len(handles))
	for range handles {
		select {
		case l := <-lines:
			out[l.id] = l.stats
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.core.ended:
			return nil, errs.Wrap(errs.ErrClosed, "session of table %s", s.core.table.Root)
		}
	}
	return out, nil
}

// Memory returns the bytes of rows in memory, those that only readers and
// tickets still hold, and the limit.
func (s *Session) Memory() (used, pinned, limit int64) {
	return s.core.budget.Used(), s.core.pinnedBytes.Load(), s.core.budget.Limit()
}

// Close refuses new work, lets running jobs end, and stops every actor. Plans
// that were pinned keep their rows until they are closed; tickets end. Rows that
// were not committed are gone: the caller replays its log.
func (s *Session) Close(ctx context.Context) error {
	err := s.core.askAnyway(ctx, func(done func(error)) {
		s.core.tell(&messages.Shutdown{Reply: func() { done(nil) }})
	})
	if err != nil && !s.core.gone() { // an earlier Close whose caller gave up may have finished
		return fmt.Errorf("closing the session of table %s: %w", s.core.table.Root, err)
	}
	return nil
}
