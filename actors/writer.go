package actors

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
)

// Writer holds the writer lease of a session and is its sequencer: it numbers
// the epochs and posts writes and cuts to the buckets itself, in epoch order, so
// that nothing stands between it and them.
//
// It serves one goroutine at a time; a second one that comes while a call is
// under way gets ErrInvalid. PrepareCommit holds it only for the cut: another
// goroutine may write while the files of the prepare are being written.
type Writer struct {
	core     *core
	lease    int64
	turn     atomic.Int32           // free, callers or background
	pending  atomic.Pointer[func()] // a background cut that found the writer taken
	closed   atomic.Bool
	dirty    map[*Handle]struct{}  // buckets with rows that no prepare took
	buckets  map[bucket.ID]*Handle // buckets this writer has written to
	messages []*messages.Write     // one for each part of a write
	wake     chan struct{}         // capacity 1
	passed   func()                // wakes; kept so that a write allocates no closure
	ack      func(int64)           // frontier.Ack
	report   func(messages.Sealed) // posts to the coordinator
}

type offsetMode = int32

const (
	offsetsUndecided offsetMode = iota
	offsetsOfEngine
	offsetsOfCaller
)

// Ack says what a write did.
type Ack struct {
	Epoch   int64
	Rows    int // rows accepted
	Skipped int // replayed rows below the committed end at open
}

// Who has the writer.
const (
	turnFree int32 = iota
	turnCaller
	turnWaiting    // a caller's, which waits for memory: a background cut may come between
	turnBackground // posts a cut and leaves; never waits
)

// enter takes the writer for one call.
func (w *Writer) enter() error {
	for !w.turn.CompareAndSwap(turnFree, turnCaller) {
		if t := w.turn.Load(); t == turnCaller || t == turnWaiting {
			return errs.Invalid("the writer is in use by another goroutine; nothing was done")
		}
		runtime.Gosched()
	}
	if w.closed.Load() {
		w.leave()
		return errs.Wrap(errs.ErrClosed, "writer")
	}
	if err := w.core.writable(); err != nil {
		w.leave()
		return err
	}
	return nil
}

// leave gives the writer back and runs a background cut that waited for it.
func (w *Writer) leave() {
	w.turn.Store(turnFree)
	w.runPending()
}

// runPending runs the waiting background cut, unless somebody has the writer:
// then that somebody will, when it leaves or has to wait for memory.
func (w *Writer) runPending() {
	for w.pending.Load() != nil {
		found := turnFree
		if !w.turn.CompareAndSwap(turnFree, turnBackground) {
			if found = turnWaiting; !w.turn.CompareAndSwap(turnWaiting, turnBackground) {
				return
			}
		}
		if cut := w.pending.Swap(nil); cut != nil {
			(*cut)()
		}
		w.turn.Store(found)
	}
}

// Memory is the bucket side of the table, for preparing batches.
func (w *Writer) Memory() *bucket.Table { return w.core.memory }

// Write makes a prepared batch visible and returns when it is. ctx counts only
// until the bytes are admitted: what has an epoch is carried through. try
// returns ErrOverloaded instead of waiting for bytes.
func (w *Writer) Write(ctx context.Context, p *bucket.Prepared, try bool) (Ack, error) {
	if err := w.enter(); err != nil {
		return Ack{}, err
	}
	defer w.leave()
	if err := ctx.Err(); err != nil {
		return Ack{}, err
	}
	if p.Rows == 0 {
		return Ack{Epoch: w.core.frontier.At()}, nil
	}
	if err := w.spawn(ctx, p.Parts); err != nil {
		return Ack{}, err
	}
	parts, skipped, err := w.check(p.Parts)
	if err != nil {
		return Ack{}, err
	}
	if len(parts) == 0 { // a replay of what is committed already
		return Ack{Epoch: w.core.frontier.At(), Skipped: skipped}, nil
	}
	bytes := int64(0)
	rows := 0
	for _, part := range parts {
		bytes += part.Bytes
		rows += part.Rows
	}
	if err := w.admit(ctx, bytes, try); err != nil {
		return Ack{}, err
	}
	epoch := w.begin(len(parts))
	for i, part := range parts {
		h := w.buckets[part.ID]
		h.advance(part)
		w.dirty[h] = struct{}{}
		if m := w.message(i, epoch, part); i == len(parts)-1 && w.core.runtime.CallerRuns() {
			h.mailbox.postAndRun(m) // the others run beside it
		} else {
			w.core.post(h.pid, m)
		}
	}
	if err := w.await(epoch); err != nil {
		return Ack{}, err
	}
	return Ack{Epoch: epoch, Rows: rows, Skipped: skipped}, nil
}

// message fills the message of the i-th part of a write. Messages are used again:
// a write has returned only when every bucket has read its own.
func (w *Writer) message(i int, epoch int64, part *bucket.Part) *messages.Write {
	if i == len(w.messages) {
		w.messages = append(w.messages, new(messages.Write))
	}
	m := w.messages[i]
	*m = messages.Write{Lease: w.lease, Epoch: epoch, Part: part, Ack: w.ack}
	return m
}

// spawn finds the buckets of a batch and has the missing ones restored.
func (w *Writer) spawn(ctx context.Context, parts []*bucket.Part) error {
	var missing []*bucket.Part
	for _, part := range parts {
		if w.buckets[part.ID] == nil {
			missing = append(missing, part)
		}
	}
	if len(missing) > 0 {
		err := w.core.ask(ctx, func(done func(error)) {
			w.core.tell(&messages.Spawn{Lease: w.lease, Parts: missing, Reply: done})
		})
		if err != nil {
			return err
		}
		registry := w.core.registry.Load()
		for _, part := range missing {
			w.buckets[part.ID] = registry.Find(part.ID)
		}
	}
	return nil
}

// check refuses what a bucket would have to refuse, before anything is posted,
// and cuts off replayed rows: those below the committed end at open, until the
// bucket accepted its first row. It changes nothing.
func (w *Writer) check(parts []*bucket.Part) ([]*bucket.Part, int, error) {
	mode := offsetsOfEngine
	if parts[0].OffsetsGiven {
		mode = offsetsOfCaller
	}
	if known := w.core.offsets.Load(); known != offsetsUndecided && known != mode {
		return nil, 0, errs.Invalid("offsets come either from the caller or from the engine, one way for a whole session; nothing was written")
	}
	accepted := parts
	skipped := 0
	if mode == offsetsOfCaller {
		accepted = nil
		for _, part := range parts {
			rest, cut := part, 0
			if h := w.buckets[part.ID]; !h.accepted && part.FirstOffset < h.nextOffset {
				rest, cut = part.After(h.nextOffset)
			}
			skipped += cut
			if rest != nil {
				accepted = append(accepted, rest)
			}
		}
	}
	for _, part := range accepted {
		h := w.buckets[part.ID]
		if mode == offsetsOfCaller && part.FirstOffset < h.nextOffset {
			return nil, 0, errs.Invalid("offset %d of bucket %s goes back: the next one is at least %d; nothing was written", part.FirstOffset, part.ID, h.nextOffset)
		}
		if int64(part.Rows) > math.MaxInt64-1-max(h.nextSeq, h.nextOffset) {
			return nil, 0, errs.Invalid("bucket %s: %d more rows would exhaust its offsets or sequence numbers (next offset %d, next sequence %d); nothing was written", part.ID, part.Rows, h.nextOffset, h.nextSeq)
		}
	}
	w.core.offsets.Store(mode)
	return accepted, skipped, nil
}

// admit takes the bytes of a batch from the budget, waiting with the caller's
// context. While it waits the batch has no epoch, so a background cut, which may
// be what frees memory, comes between.
func (w *Writer) admit(ctx context.Context, bytes int64, try bool) error {
	if w.core.budget.TryTake(bytes) {
		return nil
	}
	if try {
		return errs.Wrap(errs.ErrOverloaded, "%d bytes do not fit: %d of %d are in use; nothing was written", bytes, w.core.budget.Used(), w.core.budget.Limit())
	}
	id := w.core.waits.Add(1)
	w.core.budget.waiters.Add(1)
	defer w.core.budget.waiters.Add(-1)
	w.turn.Store(turnWaiting)
	w.runPending()
	defer func() {
		for !w.turn.CompareAndSwap(turnWaiting, turnCaller) {
			runtime.Gosched()
		}
	}()
	err := w.core.ask(ctx, func(done func(error)) {
		w.core.tell(&messages.AwaitCredits{ID: id, Bytes: bytes, Ready: done})
		if full := w.core.settings.OnFull; full != nil { // behind the wait, so that its failure ends the wait
			full()
		}
	})
	if err != nil && ctx.Err() != nil {
		w.core.tell(&messages.CancelCredits{ID: id, Bytes: bytes})
	}
	return err
}

// begin gives the next epoch.
func (w *Writer) begin(buckets int) int64 {
	epoch := w.core.epochs.Add(1)
	w.core.frontier.Begin(epoch, buckets, w.passed)
	return epoch
}

// await returns when the frontier covers the epoch.
func (w *Writer) await(epoch int64) error {
	for w.core.frontier.At() < epoch {
		if err := w.core.poisoned(); err != nil {
			return err
		}
		if w.core.gone() { // the buckets were stopped before they saw the epoch
			return errs.Wrap(errs.ErrClosed, "session of table %s", w.core.table.Root)
		}
		<-w.wake
	}
	return nil
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
