package tideline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// autoCommit prepares, commits and refreshes in the background, by interval or
// by bytes. One commit runs at a time; triggers that fire meanwhile run one more
// after it.
//
//	idle --trigger--> running --done--> idle
//	running --trigger--> running again
type autoCommit struct {
	table   *Table
	writer  atomic.Pointer[Writer]
	bytes   atomic.Int64 // written since the last cut
	state   atomic.Int32 // idle, running, again
	timer   atomic.Pointer[func()]
	stopped atomic.Bool
	failure atomic.Pointer[error]
	running sync.WaitGroup
}

const (
	autoIdle int32 = iota
	autoRunning
	autoAgain
)

func (a *autoCommit) start(w *Writer) {
	if !a.table.options.AutoCommit.enabled() {
		return
	}
	a.writer.Store(w)
	a.stopped.Store(false)
	a.arm()
}

func (a *autoCommit) arm() {
	interval := a.table.options.AutoCommit.Interval
	if interval <= 0 || a.stopped.Load() {
		return
	}
	cancel := a.table.runtime.After(interval, func() {
		if a.bytes.Load() > 0 {
			a.trigger()
		}
		a.arm()
	})
	a.timer.Store(&cancel)
	if a.stopped.Load() { // stop looked before the timer was there
		cancel()
	}
}

func (a *autoCommit) stop() {
	a.stopped.Store(true)
	if cancel := a.timer.Swap(nil); cancel != nil {
		(*cancel)()
	}
}

// wrote counts a write and commits when enough bytes wait.
func (a *autoCommit) wrote(_ *Writer, bytes int64) {
	limit := a.table.options.AutoCommit.Bytes
	if total := a.bytes.Add(bytes); limit > 0 && total >= limit {
		a.trigger()
	}
}

func (a *autoCommit) trigger() {
	if a.stopped.Load() {
		return
	}
	if !a.state.CompareAndSwap(autoIdle, autoRunning) {
		a.state.CompareAndSwap(autoRunning, autoAgain)
		return
	}
	a.running.Add(1)
	go a.run()
}

func (a *autoCommit) run() {
	defer a.running.Done()
	for {
		a.bytes.Store(0)
		begun := time.Now()
		c, err := a.commit()
		if done := a.table.options.AutoCommit.Done; done != nil {
			done(c, time.Since(begun), err)
		}
		if err != nil {
			a.failure.Store(&err)
			a.table.options.Logger.Error("background commit failed", "table", a.table.path, "error", err)
		} else {
			a.failure.Store(nil)
		}
		if a.state.CompareAndSwap(autoRunning, autoIdle) {
			return
		}
		a.state.Store(autoRunning)
	}
}

// commit has its own time limit: triggers may keep run going for hours.
func (a *autoCommit) commit() (Commit, error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitShort)
	defer cancel()
	p, err := a.writer.Load().actor.PrepareInBackground(ctx)
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
