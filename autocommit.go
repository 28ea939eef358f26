package tideline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// autoCommit prepares, commits and refreshes in the background, by interval or
// by bytes. One commit runs at a time; triggers that fire meanwhile run one more
// after it.
//
//	idle --trigger--> running --done--> idle
//	running --trigger--> running again
//	idle --finish--> ended
type autoCommit struct {
	table   *Table
	writer  atomic.Pointer[Writer] // whose rows are committed; nil: nothing is triggered
	bytes   atomic.Int64           // written since the last cut
	state   atomic.Int32           // idle, running, again, ended
	timer   atomic.Pointer[func()]
	failure atomic.Pointer[error]
	left    chan struct{} // capacity 1: a run has ended
}

const (
	autoIdle int32 = iota
	autoRunning
	autoAgain
	autoEnded
)

func (a *autoCommit) start(w *Writer) {
	if !a.table.options.AutoCommit.enabled() {
		return
	}
	a.writer.Store(w)
	a.arm(w)
}

// arm sets the timer of one writer, which goes on until another one follows.
func (a *autoCommit) arm(w *Writer) {
	interval := a.table.options.AutoCommit.Interval
	if interval <= 0 || a.ended(w) {
		return
	}
	cancel := a.table.runtime.After(interval, func() {
		if a.bytes.Load() > 0 {
			a.trigger()
		}
		a.arm(w)
	})
	a.timer.Store(&cancel)
	if a.ended(w) { // stop looked before the timer was there
		cancel()
	}
}

func (a *autoCommit) ended(w *Writer) bool { return a.writer.Load() != w || a.table.closed.Load() }

// stop ends the triggers of a writer; those of a later one stay.
func (a *autoCommit) stop(w *Writer) {
	if w == nil || !a.writer.CompareAndSwap(w, nil) {
		return
	}
	if cancel := a.timer.Swap(nil); cancel != nil {
		(*cancel)()
	}
}

// finish waits for the run under way; none begins any more.
func (a *autoCommit) finish() {
	for !a.state.CompareAndSwap(autoIdle, autoEnded) {
		<-a.left
	}
}

// wrote counts a write and commits when enough bytes wait.
func (a *autoCommit) wrote(bytes int64) {
	limit := a.table.options.AutoCommit.Bytes
	if total := a.bytes.Add(bytes); limit > 0 && total >= limit {
		a.trigger()
	}
}

func (a *autoCommit) trigger() {
	if a.writer.Load() == nil {
		return
	}
	if a.state.CompareAndSwap(autoIdle, autoRunning) {
		go a.run()
		return
	}
	a.state.CompareAndSwap(autoRunning, autoAgain)
}

func (a *autoCommit) run() {
	for {
		if w := a.writer.Load(); w != nil {
			a.once(w)
		}
		if a.state.CompareAndSwap(autoRunning, autoIdle) {
			select {
			case a.left <- struct{}{}:
			default:
			}
			return
		}
		a.state.Store(autoRunning)
	}
}

// once runs one commit and tells everybody how it ended.
func (a *autoCommit) once(w *Writer) {
	waiting := a.bytes.Swap(0)
	begun := time.Now()
	c, err := a.commit(w)
	if done := a.table.options.AutoCommit.Done; done != nil {
		done(c, time.Since(begun), err)
	}
	if err == nil {
		a.failure.Store(nil)
		return
	}
	a.failure.Store(&err)
	a.table.options.Logger.Error("background commit failed", "table", a.table.path, "error", err)
	if !errors.Is(err, ErrPoisoned) && !errors.Is(err, ErrClosed) {
		a.bytes.Add(max(waiting, 1)) // the next trigger tries again
	}
	a.table.session.Load().CommitFailed(err)
}

// backgroundCommitMax bounds one background commit, which no caller's context ends.
const backgroundCommitMax = 10 * time.Minute

// commit has its own time limit: triggers may keep run going for hours.
func (a *autoCommit) commit(w *Writer) (Commit, error) {
	ctx, cancel := context.WithTimeout(context.Background(), backgroundCommitMax)
	defer cancel()
	p, err := w.actor.PrepareInBackground(ctx)
	if err != nil {
		return Commit{}, err
	}
	c, err := a.table.Commit(ctx, preparedOf(p))
	if err != nil {
		return Commit{}, err
	}
	return c, a.table.Refresh(ctx)
}

// Failure is the error of the last background commit, nil when it went well.
func (t *Table) Failure() error {
	if err := t.auto.failure.Load(); err != nil {
		return *err
	}
	return nil
}
