package actors

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
)

// Runtime is everything an actor may not take from the world by itself: turns
// on a processor, time, slow work and randomness. Production uses NewRuntime; a
// simulation supplies its own and decides every order from a seed.
type Runtime interface {
	// System is the protoactor system that the actors live in.
	System() *actor.ActorSystem
	// Dispatcher gives an actor its turn; Batch is the number of user messages
	// handled in one turn.
	Dispatcher() actor.Dispatcher
	Batch() int
	// CallerRuns allows a writer to run the turn of a bucket on its own goroutine;
	// a simulation, which picks every turn, does not.
	CallerRuns() bool
	// Now is monotonic time since the runtime began; WallMillis is wall-clock
	// time in Unix milliseconds and decides nothing; LocalMillis is the local
	// wall clock encoded as if it were UTC (FORMAT §4.5 _CREATION_TIME).
	Now() time.Duration
	WallMillis() int64
	LocalMillis() int64
	// After runs fn once when d has passed, unless cancelled. fn must not block:
	// it posts a message.
	After(d time.Duration, fn func()) (cancel func())
	// Offload runs a job that mostly waits for storage, Compute one that mostly
	// computes: each on a bounded pool of workers of its own, so that opening a
	// bucket never queues behind a flush. The job posts its result itself; it gets a
	// context that ends when the runtime closes.
	Offload(job func(ctx context.Context))
	Compute(job func(ctx context.Context))
	// Wait pauses a job (never an actor).
	Wait(ctx context.Context, d time.Duration) error
	// UUID and Sync are the only sources of random names and Avro sync markers.
	UUID() string
	Sync() [16]byte
	// Close waits for every job; the system itself is shut down only if the
	// runtime made it.
	Close()
}

// runBatch bounds the user messages of one turn, so that a flooded bucket does
// not keep a processor from the others.
const runBatch = 256

type liveRuntime struct {
	system  func() *actor.ActorSystem // made at first use: a reader needs none
	made    atomic.Bool               // a system of our own exists
	began   time.Time
	turns   *turns
	waiting chan struct{} // one token per running job of Offload
	working chan struct{} // one token per running job of Compute
	jobs    atomic.Int64
	idle    chan struct{} // signalled when a job ends
	ctx     context.Context
	cancel  context.CancelFunc
	entropy io.Reader
}

// NewRuntime returns the production runtime on an embedder's actor system. With
// nil it makes a quiet system of its own and shuts it down at Close.
func NewRuntime(system *actor.ActorSystem) Runtime {
	r := &liveRuntime{
		began: time.Now(), waiting: make(chan struct{}, waitingMax),
		working: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)),
		turns:   newTurns(), idle: make(chan struct{}, 1), entropy: rand.Reader,
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.system = func() *actor.ActorSystem { return system }
	if system == nil {
		r.system = sync.OnceValue(func() *actor.ActorSystem {
			r.made.Store(true)
			return quietSystem()
		})
	}
	return r
}

// quietSystem logs nothing: the engine has its own logger.
func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
		actor.WithDeadLetterRequestLogging(false),
	)
}

func (r *liveRuntime) System() *actor.ActorSystem   { return r.system() }
func (r *liveRuntime) Dispatcher() actor.Dispatcher { return r.turns }
func (r *liveRuntime) Batch() int                   { return runBatch }
func (r *liveRuntime) CallerRuns() bool             { return true }
func (r *liveRuntime) Now() time.Duration           { return time.Since(r.began) }
func (r *liveRuntime) WallMillis() int64            { return time.Now().UnixMilli() }

func (r *liveRuntime) LocalMillis() int64 {
	now := time.Now()
	_, offset := now.Zone()
	return now.UnixMilli() + int64(offset)*1000
}

func (r *liveRuntime) After(d time.Duration, fn func()) func() {
	timer := time.AfterFunc(d, fn)
	return func() { timer.Stop() }
}

// waitingMax bounds the jobs that wait for storage at the same time.
const waitingMax = 16

func (r *liveRuntime) Offload(job func(ctx context.Context)) { r.start(r.waiting, job) }

// Compute leaves one processor to writers and readers where there is more than
// one: a flush and a consolidation that ran beside each other would make a write
// wait for its turn on the processor.
func (r *liveRuntime) Compute(job func(ctx context.Context)) { r.start(r.working, job) }

func (r *liveRuntime) start(slots chan struct{}, job func(ctx context.Context)) {
	r.jobs.Add(1)
	go func() {
		defer func() {
			if r.jobs.Add(-1) == 0 {
				select {
				case r.idle <- struct{}{}:
				default:
				}
			}
		}()
		slots <- struct{}{}
		defer func() { <-slots }()
		job(r.ctx)
	}()
}

func (r *liveRuntime) Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *liveRuntime) UUID() string {
	id, err := uuid.NewRandomFromReader(r.entropy)
	if err != nil { // crypto/rand never fails on the supported systems
		panic(fmt.Sprintf("no randomness: %v", err))
	}
	return id.String()
}

func (r *liveRuntime) Sync() (marker [16]byte) {
	id := uuid.MustParse(r.UUID())
	copy(marker[:], id[:])

	return marker
}

func (r *liveRuntime) Close() {
	for r.jobs.Load() > 0 {
		<-r.idle
	}
	r.cancel()
	r.turns.close()
	if r.made.Load() {
		r.system().Shutdown()
	}
}

// turns gives every run of a mailbox a goroutine. A few goroutines are kept, so
// that the stack of a run need not grow again for every message; a run that
// finds none of them waiting gets a new one. Runs never block.
type turns struct {
	work    chan func() // nil ends a goroutine
	started atomic.Int32
	workers sync.WaitGroup
}

// turnWorkers is the number of goroutines that are kept.
const turnWorkers = 4

func newTurns() *turns { return &turns{work: make(chan func())} }

func (t *turns) Throughput() int { return runBatch }

func (t *turns) Schedule(fn func()) {
	select {
	case t.work <- fn:
		return
	default:
	}
	if t.started.Load() < turnWorkers && t.started.Add(1) <= turnWorkers {
		t.workers.Add(1)
		go t.serve(fn)
		return
	}
	go fn()
}

func (t *turns) serve(fn func()) {
	defer t.workers.Done()
	for fn != nil {
		fn()
		fn = <-t.work
	}
}

// close ends the kept goroutines; runs that come later get one of their own.
func (t *turns) close() {
	kept := min(t.started.Swap(turnWorkers), turnWorkers)
	for range kept {
		t.work <- nil
	}
	t.workers.Wait()
}
