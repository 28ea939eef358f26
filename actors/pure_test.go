package actors

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/snapshot"
)

func TestFrontierWaitsForEveryBucketOfEveryEpoch(t *testing.T) {
	var f frontier
	passed := []int64{}
	begin := func(epoch int64, buckets int) { f.Begin(epoch, buckets, func() { passed = append(passed, epoch) }) }
	begin(1, 2)
	begin(2, 1)
	begin(3, 0) // touches nothing: marked at once, behind 1 and 2
	require.Zero(t, f.At())
	f.Ack(2)
	f.Ack(1)
	require.Zero(t, f.At(), "one bucket of epoch 1 is missing")
	f.Ack(1)
	require.EqualValues(t, 3, f.At())
	require.Equal(t, []int64{1, 2, 3}, passed)
	begin(4, 0)
	require.EqualValues(t, 4, f.At())
}

func TestFrontierUnderConcurrentAcknowledgements(t *testing.T) {
	var f frontier
	const epochs, buckets = 5000, 4
	var passed atomic.Int64
	acks := make([]chan int64, buckets)
	var all sync.WaitGroup
	for i := range acks {
		acks[i] = make(chan int64, 64)
		all.Go(func() {
			for e := range acks[i] {
				f.Ack(e)
			}
		})
	}
	for e := int64(1); e <= epochs; e++ {
		for e-f.At() >= epochWindow/2 {
			runtime.Gosched()
		}
		f.Begin(e, buckets, func() { passed.Add(1) })
		for _, c := range acks {
			c <- e
		}
	}
	for _, c := range acks {
		close(c)
	}
	all.Wait()
	require.EqualValues(t, epochs, f.At())
	require.EqualValues(t, epochs, passed.Load(), "each epoch passes once")
}

func TestBudget(t *testing.T) {
	woken := 0
	b := budget{limit: 100, wake: func() { woken++ }}
	require.True(t, b.TryTake(1000), "one batch larger than the budget fits into an empty engine")
	require.False(t, b.TryTake(1))
	b.Return(1000)
	require.Zero(t, woken, "nobody waits")
	require.True(t, b.TryTake(60))
	require.True(t, b.TryTake(40))
	require.False(t, b.TryTake(1))
	b.waiters.Add(1)
	b.Return(0)
	require.Zero(t, woken)
	b.Return(40)
	require.Equal(t, 1, woken)
	b.Take(500)
	require.EqualValues(t, 560, b.Used())
	require.EqualValues(t, 100, b.Limit())
}

func TestBudgetNeverOverflowsUnderContention(t *testing.T) {
	b := budget{limit: 50}
	var all sync.WaitGroup
	var most atomic.Int64
	for range 4 {
		all.Go(func() {
			for range 2000 {
				if b.TryTake(20) {
					for u := b.Used(); ; {
						if m := most.Load(); u <= m || most.CompareAndSwap(m, u) {
							break
						}
					}
					b.Return(20)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, b.Used())
	require.LessOrEqual(t, most.Load(), int64(50))
}

func TestTickets(t *testing.T) {
	x := newTickets()
	released := map[string]int{}
	pin := func(name string, ttl time.Duration) int64 {
		return x.pin(&messages.Pin{Payload: name, TTL: ttl, Release: func() { released[name]++ }}, 0)
	}
	a, b := pin("a", 10), pin("b", 20)
	payloads, err := x.resolve([]int64{a, b}, 5)
	require.NoError(t, err)
	require.Equal(t, []any{"a", "b"}, payloads)
	_, err = x.resolve([]int64{a, 99}, 5)
	require.ErrorIs(t, err, errs.ErrInvalid)
	_, err = x.resolve([]int64{a, a}, 5)
	require.ErrorIs(t, err, errs.ErrInvalid)
	require.ErrorIs(t, x.release([]int64{a, 99}, true, 5), errs.ErrInvalid, "all or none")
	require.Empty(t, released)
	_, err = x.resolve([]int64{a, b}, 10)
	require.ErrorIs(t, err, errs.ErrSnapshotExpired, "due, though not swept yet")
	require.EqualValues(t, 20, x.expire(10))
	require.Equal(t, map[string]int{"a": 1}, released)
	_, err = x.resolve([]int64{a}, 10)
	require.ErrorIs(t, err, errs.ErrSnapshotExpired)
	require.NoError(t, x.release([]int64{b}, true, 11))
	require.ErrorIs(t, x.release([]int64{b}, true, 11), errs.ErrInvalid, "used already")
	require.NoError(t, x.release([]int64{b, a, 7}, false, 11), "giving up twice is fine")
	require.Equal(t, map[string]int{"a": 1, "b": 1}, released)
	require.Zero(t, x.expire(99))
	pin("c", 1)
	x.expireAll()
	require.Equal(t, 1, released["c"])
}

func sealed(prepare int64, id bucket.ID, begin, end int64) messages.Sealed {
	m := messages.Sealed{Prepare: prepare, ID: id, Begin: begin, End: end}
	if end > begin {
		m.Segments = []*bucket.Segment{{}}
	}
	return m
}

func TestPipelineKeepsTheOrderOfCuts(t *testing.T) {
	p := newPipeline()
	x, y := bucket.ID{Bucket: 0}, bucket.ID{Bucket: 1}
	p.ends[x], p.ends[y] = 10, 0
	first := p.announce(messages.Prepare{Number: 1, Buckets: 2}, 1)
	require.False(t, p.report(first, sealed(1, y, 0, 2)))
	require.False(t, p.report(first, sealed(1, x, 12, 15)), "the cut is not visible yet")
	first.visible = true
	require.True(t, p.startable(first))
	flushes := p.start(first)
	require.Len(t, flushes, 2)
	require.Equal(t, x, flushes[0].sealed.ID, "in a fixed order")
	require.EqualValues(t, 10, flushes[0].follows, "offsets may have gaps")
	second := p.announce(messages.Prepare{Number: 2, Buckets: 1}, 2)
	second.visible = true
	require.True(t, p.report(second, sealed(2, x, 15, 16)))
	require.EqualValues(t, 15, p.start(second)[0].follows, "what comes next follows what is only prepared")
	require.True(t, p.flushed(second, messages.Flushed{Prepare: 2, ID: x, Message: snapshot.Message{Follows: 15}}))
	p.want(2)
	require.Nil(t, p.next(), "the first is not ready, so the second waits")
	require.False(t, p.flushed(first, messages.Flushed{Prepare: 1, ID: y}))
	require.True(t, p.flushed(first, messages.Flushed{Prepare: 1, ID: x}))
	require.Equal(t, first, p.next())
	_, known := p.result(1)
	require.False(t, known)
	_, ok := p.abort(2)
	require.False(t, ok, "somebody wants it")
	p.published(first, snapshot.CommitResult{SnapshotID: 7, Snapshot: &manifest.Snapshot{ID: 7}})
	r, known := p.result(1)
	require.True(t, known)
	require.True(t, r.AlreadyThere)
	require.Equal(t, second, p.next())
	require.True(t, p.moving())
	p.published(second, snapshot.CommitResult{})
	r, known = p.result(2)
	require.True(t, known)
	require.Zero(t, r.SnapshotID, "it had nothing to commit")
	_, known = p.result(3)
	require.False(t, known)
	require.False(t, p.moving())
}

func TestPipelineAbortGivesTheRangeBack(t *testing.T) {
	p := newPipeline()
	x := bucket.ID{Bucket: 0}
	s := p.announce(messages.Prepare{Number: 1, Buckets: 1}, 1)
	s.visible = true
	require.True(t, p.report(s, sealed(1, x, 0, 4)))
	p.start(s)
	_, ok := p.abort(1)
	require.False(t, ok, "its files are being written")
	p.flushed(s, messages.Flushed{Prepare: 1, ID: x, Message: snapshot.Message{Follows: 0}})
	s.tried = true
	_, ok = p.abort(1)
	require.False(t, ok, "it may be published")
	s.tried = false
	_, ok = p.abort(1)
	require.True(t, ok)
	require.Zero(t, p.ends[x])
	_, known := p.result(1)
	require.False(t, known)
}

func TestPipelineRemembersABoundedNumberOfResults(t *testing.T) {
	p := newPipeline()
	for n := int64(1); n <= keptResults+5; n++ {
		p.published(p.announce(messages.Prepare{Number: n}, n), snapshot.CommitResult{SnapshotID: n, Snapshot: &manifest.Snapshot{ID: n}})
	}
	require.Len(t, p.done, keptResults)
	_, known := p.result(5)
	require.False(t, known)
	r, known := p.result(6)
	require.True(t, known)
	require.EqualValues(t, 6, r.SnapshotID)
}

// ---- mailbox ----

type counter struct {
	seen    []int // number expected next, per poster
	total   atomic.Int64
	running atomic.Int32
	broken  atomic.Bool
	system  atomic.Int64
}

func (c *counter) InvokeSystemMessage(any) { c.system.Add(1) }
func (c *counter) InvokeUserMessage(message any) {
	if c.running.Add(1) != 1 {
		c.broken.Store(true)
	}
	m := message.([2]int)
	if c.seen[m[0]] != m[1] {
		c.broken.Store(true)
	}
	c.seen[m[0]]++
	c.running.Add(-1)
	c.total.Add(1)
}
func (c *counter) EscalateFailure(any, any) { c.broken.Store(true) }

type spawning struct{ all sync.WaitGroup }

func (s *spawning) Schedule(fn func()) { s.all.Go(fn) }
func (s *spawning) Throughput() int    { return 1 }

// Every message is handled once, one at a time, in the order of its poster.
func TestMailboxUnderStress(t *testing.T) {
	for _, batch := range []int{1, 7, 256} {
		const posters, each = 6, 3000
		c := &counter{seen: make([]int, posters)}
		turns := &spawning{}
		m := newMailbox(batch)
		m.RegisterHandlers(c, turns)
		m.Start()
		var all sync.WaitGroup
		for p := range posters {
			all.Go(func() {
				for i := range each {
					m.PostUserMessage([2]int{p, i})
					if rand.IntN(50) == 0 {
						m.PostSystemMessage("sys")
					}
				}
			})
		}
		all.Wait()
		for deadline := time.Now().Add(20 * time.Second); c.total.Load() < posters*each && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		turns.all.Wait()
		require.EqualValues(t, posters*each, c.total.Load())
		require.False(t, c.broken.Load())
		require.Zero(t, m.UserMessageCount())
	}
}

// A worker that ends its goroutine or panics is answered for.
func TestALostJobIsReported(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			system := quietSystem()
			defer system.Shutdown()
			facts := make(chan any, 1)
			c := &core{root: system.Root}
			c.coordinator = system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if lost, ok := ctx.Message().(*jobLost); ok {
					facts <- lost
				}
			}))
			go c.answered(func(context.Context) any { end(); return nil }, nil)(t.Context())
			require.Error(t, (<-facts).(*jobLost).cause)
			require.NoError(t, system.Root.StopFuture(c.coordinator).Wait())
		})
	}
}
