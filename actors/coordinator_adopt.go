package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/progress"
	"github.com/tideline-db/tideline/snapshot"
)

// refresh adopts what was committed since the adopted snapshot. One chain is
// read at a time; who asks meanwhile waits for the next reading, because the
// current one may have looked already.
func (c *coordinator) refresh(reply func(*manifest.Snapshot, error)) {
	if err := c.core.poisoned(); err != nil {
		reply(nil, err)
		return
	}
	c.queued = append(c.queued, reply)
	c.refreshNext()
}

func (c *coordinator) refreshNext() {
	if c.refreshing || len(c.queued) == 0 {
		return
	}
	c.refreshing = true
	c.refreshes, c.queued = c.queued, nil
	core, adopted, ours := c.core, c.core.adopted.Load(), append([]*manifest.Snapshot(nil), c.unadopted...)
	c.offload(func(ctx context.Context) any { return followChain(ctx, core, adopted, ours) })
}

// followChain reads the snapshots after the adopted one. Before memory can be
// reclaimed, what we published is compared with what stands there now: another
// engine's overwriting rename may have replaced it.
func followChain(ctx context.Context, core *core, adopted *Adopted, ours []*manifest.Snapshot) (fact *messages.Followed) {
	fact = &messages.Followed{}
	defer func() {
		if reason := recover(); reason != nil {
			fact.Err = fmt.Errorf("reading the snapshot chain panicked: %v\n%s", reason, debug.Stack())
		}
	}()
	for _, published := range ours {
		if fact.Err = core.table.Verify(ctx, published); fact.Err != nil {
			return fact
		}
	}
	fact.Chain, fact.Err = core.table.Follow(ctx, adopted.Snapshot, adopted.Progress)
	return fact
}

func (c *coordinator) followed(m *messages.Followed) {
	c.jobs--
	c.refreshing = false
	waiting := c.refreshes
	c.refreshes = nil
	answer := func(s *manifest.Snapshot, err error) {
		for _, reply := range waiting {
			reply(s, err)
		}
		c.refreshNext()
		c.grantCredits()
	}
	if m.Err != nil {
		if terminal(m.Err) {
			c.core.poison(m.Err)
		}
		answer(nil, m.Err)
		return
	}
	if err := c.core.examine(m.Chain); err != nil {
		c.core.poison(err)
		answer(nil, err)
		return
	}
	c.adopt(m.Chain)
	answer(m.Chain.Latest, nil)
}

// terminal tells errors that say what the table has become from I/O trouble,
// after which reading the chain may simply be tried again.
func terminal(err error) bool {
	return errors.Is(err, errs.ErrPoisoned) || errors.Is(err, errs.ErrFenced) || errors.Is(err, errs.ErrConflict)
}

// examine applies the rules of adoption (package snapshot) to a chain, for the buckets
// that this session holds in memory.
func (c *core) examine(chain *snapshot.Chain) error {
	registry := c.registry.Load()
	keys := make([]progress.Key, len(registry.Handles))
	for i, h := range registry.Handles {
		keys[i] = progressKey(h.ID)
	}
	active := func(k progress.Key) bool {
		return registry.Find(bucket.ID{Partition: k.Partition, Bucket: int32(k.Bucket)}) != nil
	}
	if err := chain.Check(active); err != nil {
		return err
	}
	return chain.CheckOverwrites(keys)
}

func progressKey(id bucket.ID) progress.Key {
	return progress.Key{Partition: id.Partition, Bucket: int(id.Bucket)}
}

// progressEnd is the committed end of a bucket, 0 when it has none.
func progressEnd(p *snapshot.Progress, id bucket.ID) int64 {
	if p == nil {
		return 0
	}
	return p.End(progressKey(id))
}

// adopt makes a chain's end the session's own: watermarks first, then the
// adopted snapshot for all to see, then memory is reclaimed.
func (c *coordinator) adopt(chain *snapshot.Chain) {
	handles := c.core.registry.Load().Handles
	for _, h := range handles {
		if sequence, ok := chain.MaxSeq[progressKey(h.ID)]; ok {
			c.core.post(h.pid, &messages.RaiseSequence{Sequence: sequence})
		}
	}
	if chain.Latest == nil {
		return
	}
	c.core.adopted.Store(&Adopted{Snapshot: chain.Latest, Progress: chain.Progress})
	c.unadopted = slices.DeleteFunc(c.unadopted, func(s *manifest.Snapshot) bool { return s.ID <= chain.Latest.ID })
	c.core.reclaiming.Add(int64(len(handles)))
	for _, h := range handles {
		c.core.post(h.pid, &messages.Reclaim{CommittedEnd: progressEnd(chain.Progress, h.ID), Done: c.core.reclaimed})
	}
}
