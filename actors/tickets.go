package actors

import (
	"time"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
)

// tickets is the pure table of pinned plans: each ticket keeps a set of holds
// alive until it is used, released or expired.
type tickets struct {
	last    int64
	pinned  map[int64]*ticket
	expired map[int64]struct{} // remembered to tell "expired" from "unknown"
}

type ticket struct {
	deadline time.Duration
	release  func()
	payload  any
}

// keptExpired bounds the expired tickets that are remembered by name.
const keptExpired = 4096

func newTickets() *tickets {
	return &tickets{pinned: map[int64]*ticket{}, expired: map[int64]struct{}{}}
}

func (t *tickets) pin(m *messages.Pin, now time.Duration) int64 {
	t.last++
	t.pinned[t.last] = &ticket{deadline: now + m.TTL, release: m.Release, payload: m.Payload}
	return t.last
}

// resolve gives the payloads of all tickets or an error that names the first one
// that is not valid. It consumes nothing: a failed reader may be tried again.
func (t *tickets) resolve(ids []int64, now time.Duration) ([]any, error) {
	payloads := make([]any, len(ids))
	seen := make(map[int64]struct{}, len(ids))
	for i, id := range ids {
		if _, twice := seen[id]; twice {
			return nil, errs.Invalid("ticket %d is given twice; a split is read once", id)
		}
		seen[id] = struct{}{}
		pinned, ok := t.pinned[id]
		if !ok || pinned.deadline <= now {
			_, known := t.expired[id]
			if known || ok {
				return nil, errs.Wrap(errs.ErrSnapshotExpired, "ticket %d expired; plan again", id)
			}
			return nil, errs.Invalid("ticket %d is unknown or was used already; plan again", id)
		}
		payloads[i] = pinned.payload
	}
	return payloads, nil
}

// release consumes tickets and ends their holds. With strict each must be valid,
// and stand there once, or nothing is consumed: of two readers that resolved the
// same ticket one gets the error.
func (t *tickets) release(ids []int64, strict bool, now time.Duration) error {
	if strict {
		if _, err := t.resolve(ids, now); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if pinned, ok := t.pinned[id]; ok {
			delete(t.pinned, id)
			pinned.release()
		}
	}
	return nil
}

// expire drops what is past its deadline and returns the next deadline, 0 when
// nothing is pinned.
func (t *tickets) expire(now time.Duration) (next time.Duration) {
	for id, pinned := range t.pinned {
		if pinned.deadline <= now {
			delete(t.pinned, id)
			if len(t.expired) >= keptExpired {
				clear(t.expired)
			}
			t.expired[id] = struct{}{}
			pinned.release()
		} else if next == 0 || pinned.deadline < next {
			next = pinned.deadline
		}
	}
	return next
}

func (t *tickets) expireAll() {
	for id, pinned := range t.pinned {
		delete(t.pinned, id)
		pinned.release()
	}
}
