package actors

import (
	"fmt"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
)

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
