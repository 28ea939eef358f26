package actors

import (
	"context"
	"runtime"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
)

// MaxPositionBytes bounds the caller's opaque position.
const MaxPositionBytes = 64 << 10

// Seal closes the building segment of every bucket at one epoch. It returns when
// the cut is visible; nothing is written to storage.
func (w *Writer) Seal() error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave()
	epoch := w.begin(len(w.dirty))
	for h := range w.dirty {
		w.core.post(h.pid, &messages.Cut{Lease: w.lease, Epoch: epoch, Ack: w.ack})
	}
	return w.await(epoch)
}

// PrepareCommit cuts all buckets at one epoch, opens new building segments at
// once, and returns when workers have written everything below the cut to data
// files. Position, when has is true, stands for exactly the writes that returned
// before. Cancelling ctx gives up the wait, not the prepare: it stays in order
// and is published with the next one that is committed.
func (w *Writer) PrepareCommit(ctx context.Context, position []byte, has bool) (messages.Prepared, error) {
	if len(position) > MaxPositionBytes {
		return messages.Prepared{}, errs.Invalid("position of %d bytes exceeds %d; nothing was prepared", len(position), MaxPositionBytes)
	}
	answer := make(chan outcome, 1)
	reply := func(p messages.Prepared, err error) { answer <- outcome{p, err} }
	if err := w.cutNow(ctx, position, has, reply); err != nil {
		return messages.Prepared{}, err
	}
	return w.awaitPrepared(ctx, answer)
}

// cutsMax bounds the epochs under way well inside the window of the frontier.
const cutsMax = epochWindow / 2

type outcome struct {
	prepared messages.Prepared
	err      error
}

// PrepareInBackground is PrepareCommit for a timer: it never refuses because the
// writer is in use, but cuts between two of its calls.
func (w *Writer) PrepareInBackground(ctx context.Context) (messages.Prepared, error) {
	if err := ctx.Err(); err != nil {
		return messages.Prepared{}, err
	}
	answer := make(chan outcome, 1)
	cut := func() {
		err := w.core.writable()
		switch {
		case w.closed.Load():
			err = errs.Wrap(errs.ErrClosed, "writer")
		case w.core.epochs.Load()-w.core.frontier.At() >= cutsMax: // of callers who did not wait
			err = errs.Wrap(errs.ErrOverloaded, "%d cuts are under way; nothing was prepared", cutsMax)
		}
		if err != nil {
			answer <- outcome{err: err}
			return
		}
		w.cut(nil, false, func(p messages.Prepared, err error) { answer <- outcome{p, err} })
	}
	for !w.pending.CompareAndSwap(nil, &cut) { // another one waits; it is taken in a moment
		if err := ctx.Err(); err != nil {
			return messages.Prepared{}, err
		}
		w.runPending()
		runtime.Gosched()
	}
	w.runPending()
	return w.awaitPrepared(ctx, answer)
}

func (w *Writer) awaitPrepared(ctx context.Context, answer chan outcome) (messages.Prepared, error) {
	select {
	case o := <-answer:
		return o.prepared, o.err
	case <-ctx.Done():
		return messages.Prepared{}, ctx.Err()
	case <-w.core.ended:
		return messages.Prepared{}, errs.Wrap(errs.ErrClosed, "session of table %s", w.core.table.Root)
	case <-w.core.failed:
		select {
		case o := <-answer:
			return o.prepared, o.err
		default:
			return messages.Prepared{}, w.core.poisoned()
		}
	}
}

// cutNow is the part of a prepare that holds the writer.
func (w *Writer) cutNow(ctx context.Context, position []byte, has bool, reply func(messages.Prepared, error)) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.await(w.cut(position, has, reply))
}

// cut posts one cut to every bucket with rows that no prepare took; it does not
// wait. The announcement reaches the coordinator before any bucket can report.
func (w *Writer) cut(position []byte, has bool, reply func(messages.Prepared, error)) (epoch int64) {
	number, core := w.core.prepares.Add(1), w.core
	epoch = core.epochs.Add(1)
	core.tell(&messages.Prepare{
		Lease: w.lease, Number: number, Epoch: epoch, Buckets: len(w.dirty),
		Position: append([]byte(nil), position...), HasPosition: has, Reply: reply,
	})
	core.frontier.Begin(epoch, len(w.dirty), func() {
		core.tell(&messages.CutVisible{Prepare: number})
		w.signal()
	})
	for h := range w.dirty {
		core.post(h.pid, &messages.Cut{Lease: w.lease, Epoch: epoch, Prepare: number, Ack: w.ack, Report: w.report})
	}
	clear(w.dirty)
	return epoch
}

// Abort gives up the newest prepare; its rows join the next one. Cancelling ctx
// gives up the wait for its files to be deleted, not the decision: a later cut
// that overtook it would leave out the rows that came back.
func (w *Writer) Abort(ctx context.Context, number int64) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave()
	var rejoined []bucket.ID
	deleted := make(chan error, 1)
	err := w.core.ask(context.WithoutCancel(ctx), func(done func(error)) {
		w.core.tell(&messages.Abort{
			Number:  number,
			Decided: func(ids []bucket.ID, err error) { rejoined = ids; done(err) },
			Deleted: func(err error) { deleted <- err },
		})
	})
	if err != nil { // rejoined may still be written to
		return err
	}
	for _, id := range rejoined {
		w.dirty[w.buckets[id]] = struct{}{}
	}
	select {
	case err := <-deleted:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Closed reports whether the writer was closed.
func (w *Writer) Closed() bool { return w.closed.Load() }

// Dirty reports whether rows were written that no prepare took.
func (w *Writer) Dirty() bool { return len(w.dirty) > 0 }

// Close gives the lease back. With rows that no prepare took it is an error and
// poisons the session; discard gives them up on purpose. Closing twice is fine.
func (w *Writer) Close(ctx context.Context, discard bool) error {
	for !w.turn.CompareAndSwap(turnFree, turnCaller) {
		if t := w.turn.Load(); t == turnCaller || t == turnWaiting {
			return errs.Invalid("the writer is in use by another goroutine; it was not closed")
		}
		runtime.Gosched()
	}
	defer w.leave()
	if w.closed.Swap(true) {
		return nil
	}
	_ = w.await(w.core.epochs.Load()) // a background cut may still be on its way; its report must come before the hand-over
	w.core.stalled.Store(nil)
	return w.core.askAnyway(ctx, func(done func(error)) {
		w.core.tell(&messages.CloseWriter{Lease: w.lease, Unprepared: w.Dirty(), Discard: discard, Reply: done})
	})
}
