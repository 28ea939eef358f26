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
	"github.com/tideline-db/tideline/snapshot"
)

func (c *coordinator) prepare(m *messages.Prepare) {
	if err := c.core.writable(); err != nil {
		m.Reply(messages.Prepared{}, err)
		return
	}
	c.identifier++
	c.pipeline.announce(*m, c.identifier)
}

func (c *coordinator) sealed(m *messages.Sealed) {
	if s := c.pipeline.find(m.Prepare); s != nil && c.pipeline.report(s, *m) {
		c.flush(s)
	}
}

func (c *coordinator) cutVisible(m *messages.CutVisible) {
	if s := c.pipeline.find(m.Prepare); s != nil {
		s.visible = true
		if c.pipeline.startable(s) {
			c.flush(s)
		}
	}
}

// flush writes every sealed range of a stage to level-0 files, one job a bucket.
func (c *coordinator) flush(s *stage) {
	core, registry := c.core, c.core.registry.Load()
	for _, f := range c.pipeline.start(s) {
		h := registry.Find(f.sealed.ID)
		c.compute(func(ctx context.Context) any {
			flushed := messages.Flushed{Prepare: s.Number, ID: f.sealed.ID}
			flushed.Message, flushed.Rows, flushed.Bytes, flushed.Err = runFlush(ctx, core, h, f)
			return &flushed
		})
	}
	if s.state == ready {
		c.prepared(s)
	}
}

// runFlush merges the segments of one range to sorted files. Nothing is visible
// to anybody before a snapshot names them.
func runFlush(ctx context.Context, core *core, h *Handle, f flush) (m snapshot.Message, rows, bytes int64, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("flush of bucket %s panicked: %v\n%s", h.ID, reason, debug.Stack())
		}
	}()
	m = snapshot.Message{
		Partition: h.Part.PartitionRow, Bucket: int(h.ID.Bucket),
		Follows: f.follows, Begin: f.sealed.Begin, End: f.sealed.End,
	}
	source := bucket.MergeSegments(core.memory, f.sealed.Segments)
	defer source.Close()
	m.Files, err = core.table.WriteFiles(ctx, snapshot.FileSpec{
		Schema: core.memory.Schema, Options: core.memory.Options,
		PartitionKVs: h.Part.PartitionKVs, Bucket: int(h.ID.Bucket),
	}, source)
	if err != nil {
		return m, 0, 0, fmt.Errorf("writing files of bucket %s: %w", h.ID, err)
	}
	for _, file := range m.Files {
		rows += file.Rows
		bytes += file.Size
	}
	return m, rows, bytes, nil
}

func (c *coordinator) flushed(m *messages.Flushed) {
	c.jobs--
	s := c.pipeline.find(m.Prepare)
	if s == nil {
		return
	}
	if m.Err != nil {
		if !c.core.closing.Load() {
			c.core.poison(fmt.Errorf("prepare %d failed, nothing of it is committed: %w", m.Prepare, m.Err))
		}
		return
	}
	if c.pipeline.flushed(s, *m) {
		c.prepared(s)
	}
}

// prepared answers a finished prepare and publishes it when somebody wants it.
func (c *coordinator) prepared(s *stage) {
	if s.Reply != nil {
		s.Reply(messages.Prepared{
			Number: s.Number, Identifier: s.identifier, Rows: s.rows, Bytes: s.bytes,
			Files: countFiles(s.files), Buckets: len(s.files),
		}, nil)
		s.Reply = nil
	}
	c.publishNext()
}

func countFiles(files []messages.Flushed) (n int) {
	for _, m := range files {
		n += len(m.Message.Files)
	}
	return n
}

// commit publishes a prepare after all earlier ones. Repeating it is answered
// with the first result.
func (c *coordinator) commit(m *messages.Commit) {
	if result, ok := c.pipeline.result(m.Number); ok {
		m.Reply(result, nil)
		return
	}
	if c.core.closing.Load() {
		m.Reply(snapshot.CommitResult{}, errs.Wrap(errs.ErrClosed, "session of table %s; prepare %d was not committed", c.core.table.Root, m.Number))
		return
	}
	s := c.pipeline.find(m.Number)
	if s == nil {
		m.Reply(snapshot.CommitResult{}, errs.Invalid("prepare %d is unknown to this session, was aborted, or was committed too long ago to be remembered; nothing was committed", m.Number))
		return
	}
	if err := c.core.poisoned(); err != nil {
		for _, earlier := range c.pipeline.stages {
			if earlier.Number <= m.Number && earlier.state < ready {
				m.Reply(snapshot.CommitResult{}, fmt.Errorf("prepare %d was never finished, so %d cannot be committed after it: %w", earlier.Number, m.Number, err))
				return
			}
		}
	}
	s.replies = append(s.replies, m.Reply)
	c.pipeline.want(m.Number)
	c.publishNext()
}

func (c *coordinator) publishNext() {
	for !c.publishing {
		s := c.pipeline.next()
		if s == nil {
			return
		}
		if len(s.files) == 0 && !s.HasPosition { // nothing prepared: no snapshot, no error
			c.finish(s, snapshot.CommitResult{})
			continue
		}
		c.publishing = true
		s.state, s.tried = publishing, true
		c.core.tried.Store(s.Epoch)
		c.jobs++
		c.core.runtime.Offload(c.core.answered(c.publishJob(s), &messages.Published{
			Number: s.Number,
			Err:    errs.Wrap(errs.ErrOutcomeUnknown, "the worker that published prepare %d ended without an answer", s.Number),
		}))
	}
}

// request is the commit of one stage, on top of what is adopted now.
func (c *coordinator) request(s *stage) snapshot.CommitRequest {
	core, adopted := c.core, c.core.adopted.Load()
	request := snapshot.CommitRequest{
		User: core.settings.CommitUser, Identifier: s.identifier, Messages: s.ranges(),
		Position: s.Position, HasPosition: s.HasPosition, SchemaID: core.memory.Schema.ID,
		Adopted: adopted.Snapshot, AdoptedProgress: adopted.Progress,
		Options:   core.memory.Options,
		Published: slices.Clone(c.unadopted), // adopting changes it in place meanwhile
	}
	for _, h := range core.registry.Load().Handles {
		request.Active = append(request.Active, progressKey(h.ID))
	}
	return request
}

func (c *coordinator) publishJob(s *stage) func(context.Context) any {
	core, request := c.core, c.request(s)
	return func(ctx context.Context) (fact any) {
		published := &messages.Published{Number: s.Number}
		defer func() {
			if reason := recover(); reason != nil {
				published.Err = errs.Wrap(errs.ErrOutcomeUnknown, "commit of prepare %d panicked: %v\n%s", s.Number, reason, debug.Stack())
				fact = published
			}
		}()
		published.Result, published.Err = core.table.Commit(ctx, request)
		return published
	}
}

func (c *coordinator) published(m *messages.Published) {
	c.jobs--
	c.publishing = false
	s := c.pipeline.find(m.Number)
	if s == nil {
		return
	}
	if m.Err == nil {
		if m.Result.Snapshot != nil {
			c.unadopted = append(c.unadopted, m.Result.Snapshot)
		}
		c.finish(s, m.Result)
		c.publishNext()
		return
	}
	// Everybody who asked for this one or a later one is answered; the stage stays
	// ready, and the same commit may be tried again.
	s.state = ready
	switch {
	case errors.Is(m.Err, errs.ErrPoisoned): // the prepared files, or what they were to follow, cannot be relied on
		c.core.poison(m.Err)
	case !errors.Is(m.Err, errs.ErrInvalid):
		c.core.closeWriting(m.Err)
	}
	for _, later := range c.pipeline.stages {
		later.wanted = false
		for i, reply := range later.replies {
			if later == s {
				reply(snapshot.CommitResult{}, m.Err)
			} else {
				reply(snapshot.CommitResult{}, fmt.Errorf("prepare %d before it was not committed: %w", s.Number, m.Err))
			}
			later.replies[i] = nil
		}
		later.replies = nil
	}
	c.grantCredits()
}

// finish takes a published stage out and answers who waits for it.
func (c *coordinator) finish(s *stage, result snapshot.CommitResult) {
	c.pipeline.published(s, result)
	for _, reply := range s.replies {
		reply(result, nil)
	}
	c.grantCredits()
	if result.Snapshot != nil {
		c.core.feed.publish(Committed{Snapshot: result.Snapshot, Prepare: s.Number, Identifier: s.identifier, Rows: s.rows})
	}
}

// abort gives up the newest prepare. Its files are deleted only because it was
// surely never published; its rows join the next prepare.
func (c *coordinator) abort(m *messages.Abort) {
	s, ok := c.pipeline.abort(m.Number)
	if !ok {
		m.Decided(nil, errs.Invalid("prepare %d cannot be aborted: only the newest one, finished and never handed to a commit, can; nothing was changed", m.Number))
		return
	}
	registry := c.core.registry.Load()
	var ids []bucket.ID
	for _, sealed := range s.sealed {
		if len(sealed.Segments) > 0 {
			ids = append(ids, sealed.ID)
			c.core.post(registry.Find(sealed.ID).pid, &messages.Rejoin{Segments: sealed.Segments})
		}
	}
	m.Decided(ids, nil)
	core, ranges := c.core, s.ranges()
	c.offload(func(ctx context.Context) any {
		return &messages.Aborted{Number: s.Number, Err: core.table.DeleteFiles(ctx, ranges), Reply: m.Deleted}
	})
}

// aborted answers an abort. Files that could not be deleted are orphans, never
// rows: the abort itself happened.
func (c *coordinator) aborted(m *messages.Aborted) {
	c.jobs--
	if m.Err != nil {
		m.Err = fmt.Errorf("prepare %d was aborted, but not all of its files could be deleted: %w", m.Number, m.Err)
	}
	m.Reply(m.Err)
}
