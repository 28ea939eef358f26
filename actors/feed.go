package actors

import (
	"sync/atomic"

	"github.com/tideline-db/tideline/paimon/manifest"
)

// Committed tells a subscriber of one snapshot that this session published.
type Committed struct {
	Snapshot   *manifest.Snapshot
	Prepare    int64
	Identifier int64
	Rows       int64
}

// feedBuffer bounds what a slow subscriber may fall behind.
const feedBuffer = 256

// feed hands commits to subscribers. Only the coordinator publishes; the list of
// subscribers is immutable and swapped whole.
type feed struct {
	subscribers atomic.Pointer[[]*Subscription]
}

// Subscription is one subscriber's channel. It never blocks the engine: when the
// buffer is full, commits are dropped and counted.
type Subscription struct {
	feed    *feed
	events  chan Committed
	dropped atomic.Int64
	closed  atomic.Bool
}

// Events is the channel of commits, in order. It is closed with the session.
func (s *Subscription) Events() <-chan Committed { return s.events }

// Dropped counts commits that did not fit into the buffer.
func (s *Subscription) Dropped() int64 { return s.dropped.Load() }

// Cancel ends the subscription; no more events arrive.
func (s *Subscription) Cancel() {
	s.closed.Store(true)
	s.feed.change(func(list []*Subscription) []*Subscription {
		var rest []*Subscription
		for _, other := range list {
			if other != s {
				rest = append(rest, other)
			}
		}
		return rest
	})
}

func (f *feed) subscribe() *Subscription {
	s := &Subscription{feed: f, events: make(chan Committed, feedBuffer)}
	f.change(func(list []*Subscription) []*Subscription {
		return append(append([]*Subscription(nil), list...), s)
	})
	return s
}

func (f *feed) change(next func([]*Subscription) []*Subscription) {
	for {
		old := f.subscribers.Load()
		var list []*Subscription
		if old != nil {
			list = *old
		}
		changed := next(list)
		if f.subscribers.CompareAndSwap(old, &changed) {
			return
		}
	}
}

func (f *feed) publish(event Committed) {
	list := f.subscribers.Load()
	if list == nil {
		return
	}
	for _, s := range *list {
		if s.closed.Load() {
			continue
		}
		select {
		case s.events <- event:
		default:
			s.dropped.Add(1)
		}
	}
}

// end closes every channel; the coordinator calls it when nothing can be
// published any more.
func (f *feed) end() {
	if list := f.subscribers.Swap(nil); list != nil {
		for _, s := range *list {
			close(s.events)
		}
	}
}
