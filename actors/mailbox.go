package actors

import (
	"runtime"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// mailbox is our own protoactor mailbox: lock-free, unbounded (backpressure is
// taken before the mailbox, see budget), and it gives the dispatcher back after
// at most batch user messages. In production batch is large; in a simulation it
// is one, so that every single message is a scheduling decision.
//
//	posters --> user queue   --+
//	            system queue --+--> run (at most one at a time) --> invoker
//
// System messages overtake user messages, as protoactor defines them to.
type mailbox struct {
	user, system queue
	scheduled    atomic.Bool
	suspended    atomic.Bool
	batch        int
	invoker      actor.MessageInvoker
	dispatcher   actor.Dispatcher
}

func newMailbox(batch int) *mailbox {
	m := &mailbox{batch: batch}
	m.user.init()
	m.system.init()
	return m
}

func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
}

func (m *mailbox) Start() {}

func (m *mailbox) UserMessageCount() int { return int(m.user.length.Load()) }

func (m *mailbox) PostUserMessage(message any) {
	m.user.push(message)
	m.schedule()
}

func (m *mailbox) PostSystemMessage(message any) {
	m.system.push(message)
	m.schedule()
}

// postAndRun queues a message like PostUserMessage, but when nobody has the
// actor's turn it is taken here and now, on the caller's goroutine. A writer that
// would only wait for the answer so keeps its processor, instead of handing it to
// another goroutine and waiting to get it back.
func (m *mailbox) postAndRun(message any) {
	m.user.push(message)
	if m.scheduled.CompareAndSwap(false, true) {
		m.run()
	}
}

// schedule arms one run unless one is armed already. It is called after every
// push and after every run, so a message that arrives while a run ends is seen
// by one of the two.
func (m *mailbox) schedule() {
	if m.pending() && m.scheduled.CompareAndSwap(false, true) {
		m.dispatcher.Schedule(m.run)
	}
}

func (m *mailbox) pending() bool {
	return m.system.length.Load() > 0 || (!m.suspended.Load() && m.user.length.Load() > 0)
}

func (m *mailbox) run() {
	var current any
	defer func() {
		reason := recover()
		if reason != nil {
			m.invoker.EscalateFailure(reason, current)
		}
		m.scheduled.Store(false)
		m.schedule()
	}()
	for range m.batch {
		for m.system.length.Load() > 0 {
			current = m.system.pop()
			m.invokeSystem(current)
		}
		if m.suspended.Load() || m.user.length.Load() == 0 {
			return
		}
		current = m.user.pop()
		m.invoker.InvokeUserMessage(current)
	}
}

func (m *mailbox) invokeSystem(message any) {
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspended.Store(true)
	case *actor.ResumeMailbox:
		m.suspended.Store(false)
	default:
		m.invoker.InvokeSystemMessage(message)
	}
}

// queue is a multi-producer, single-consumer linked queue. A producer swaps
// itself in as the tail, links its predecessor to itself, then counts itself;
// so length never counts an element before it stands in the chain, but a counted
// element may wait for the moment in which an earlier producer links its own.
type queue struct {
	tail   atomic.Pointer[link]
	head   *link // consumer only: the element already consumed
	length atomic.Int64
}

type link struct {
	next    atomic.Pointer[link]
	message any
}

func (q *queue) init() {
	first := &link{}
	q.head = first
	q.tail.Store(first)
}

func (q *queue) push(message any) {
	l := &link{message: message}
	q.tail.Swap(l).next.Store(l)
	q.length.Add(1)
}

// pop takes the oldest element; the caller knows that length is positive.
func (q *queue) pop() any {
	next := q.head.next.Load()
	for next == nil { // an earlier producer is between its two steps
		runtime.Gosched()
		next = q.head.next.Load()
	}
	q.head = next
	message := next.message
	next.message = nil
	q.length.Add(-1)
	return message
}
