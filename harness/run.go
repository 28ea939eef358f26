package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/paimon/path"
)

// database is the database of the tables that a run makes.
const database = "sim"

// run is one run under way.
type run struct {
	config Config
	layout layout
	path   string
	table  *tideline.Table
	writer *tideline.Writer
	model  *Model
	begun  time.Time

	phase   atomic.Pointer[string]
	written atomic.Int64 // rows
	acked   atomic.Int64 // epoch of the newest write that returned
	commits atomic.Int64
	failed  atomic.Int64 // background commits
	checked atomic.Int64 // checkpoints
	reads   atomic.Int64
	read    atomic.Int64 // rows
	reading atomic.Int64 // nanoseconds
	fresh   *histogram
	commit  *histogram
	write   *histogram
	memory  gauges

	applies chan applied // settled writes on their way to the model
}

type applied struct {
	epoch   int64
	changes []Change
}

// applyQueue bounds how far the model may lag behind the writer, in writes.
const applyQueue = 256

// Run writes a source to a new table, verifies while it writes, and verifies the
// end state through a fresh handle. The error is a *Mismatch when the engine
// answered wrongly. The report is never nil once the table was created: it says
// what was done and verified until the error.
func Run(ctx context.Context, c Config) (*Report, error) {
	c, err := c.check()
	if err != nil {
		return nil, err
	}
	r := &run{
		config: c, layout: layoutOf(c.Source.Definition()), path: path.Root(c.Dir, database, c.Source.Name()),
		begun: time.Now(), fresh: newHistogram(), commit: newHistogram(), write: newHistogram(), applies: make(chan applied, applyQueue),
	}
	r.model = NewModel(r.layout.append(), c.Readers > 0)
	r.setPhase("write")
	if err := r.create(ctx); err != nil {
		return nil, err
	}
	report := &Report{Table: r.path, Seed: c.Seed, Writers: c.Writers, Readers: c.Readers}
	stopProgress := r.progress()
	defer stopProgress()
	stopMemory := r.memory.watch(r.table)
	err = r.load(ctx)
	took := time.Since(r.begun)
	r.setPhase("verify")
	err = errors.Join(err, r.close(err != nil))
	if err == nil {
		err = r.verifyEnd(ctx, report)
	}
	stopMemory()
	r.fill(report, took, err)
	return report, err
}

func (r *run) setPhase(name string) { r.phase.Store(&name) }

func (r *run) create(ctx context.Context) error {
	o := tideline.Options{CommitUser: "sim", MemoryBytesMax: r.config.MemoryBytesMax}
	if r.config.CommitInterval > 0 {
		o.AutoCommit = tideline.AutoCommit{Interval: r.config.CommitInterval, Done: func(c tideline.Commit, took time.Duration, err error) {
			switch {
			case err != nil:
				r.failed.Add(1)
			case c.ID > 0: // else there was nothing left to commit
				r.commit.record(took)
				r.commits.Add(1)
			}
		}}
	}
	var err error
	if r.table, err = tideline.Create(ctx, r.path, r.config.Source.Definition(), o); err != nil {
		return err
	}
	if r.writer, err = r.table.Writer(ctx); err != nil {
		return errors.Join(err, r.table.Close(ctx))
	}
	return nil
}

// load runs the writing loop with the readers around it and returns when all of
// them have ended. The first error stops everybody.
func (r *run) load(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	start := func(work func() error) {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := work(); err != nil {
				r.model.Fail(err)
				cancel(err)
			}
		}()
	}
	modelled := make(chan struct{})
	go func() {
		defer close(modelled)
		for a := range r.applies {
			r.model.Apply(a.epoch, a.changes)
		}
	}()
	var watch *watcher
	stop := make(chan struct{})
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	if r.config.Readers > 0 {
		watch = &watcher{table: r.table, layout: r.layout, times: r.fresh, samples: make(chan sample)}
		start(func() error { return watch.run(watching) })
	}
	for i := range r.config.Readers {
		v := r.verifier(r.table)
		start(func() error { return v.run(ctx, i, stop) })
	}
	err := r.writeAll(ctx, watch)
	close(r.applies)
	<-modelled
	stopWatching()
	if err != nil {
		r.model.Fail(err)
		cancel(err)
	}
	close(stop)
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (r *run) verifier(t *tideline.Table) *verifier {
	return &verifier{config: r.config, layout: r.layout, table: t, model: r.model, acked: &r.acked, reads: &r.reads, rows: &r.read, time: &r.reading}
}

// writeAll is the writing loop; it owns the writer.
func (r *run) writeAll(ctx context.Context, watch *watcher) error {
	feed, err := r.config.Source.Feed()
	if err != nil {
		return err
	}
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.config.Interrupt, cancel)()
	if r.config.Duration > 0 {
		var stop context.CancelFunc
		writing, stop = context.WithTimeout(writing, r.config.Duration)
		defer stop()
	}
	p := startPipeline(writing, feed, r.layout, r.writer, r.config.Writers)
	defer p.stop()
	c := startCommitter(r.table, r.writer, r.config.CommitRows, r.commit, &r.commits)
	for {
		next, ok := p.next(writing)
		if !ok {
			break
		}
		if err = r.writeOne(writing, c, next, watch); err != nil {
			break
		}
	}
	if err != nil && ctx.Err() == nil && writing.Err() != nil && errors.Is(err, writing.Err()) {
		err = nil // the end of the time, or of the user's patience, is no failure
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.abandon()
		return err
	}
	return c.finish(context.WithoutCancel(ctx))
}

// writeOne makes one batch visible and accounts for it.
func (r *run) writeOne(ctx context.Context, c *committer, next ready, watch *watcher) error {
	if next.err != nil {
		return next.err
	}
	r.model.Begin()
	epoch := watch.offer(next.watch)
	begun := time.Now()
	ack, err := r.writer.WritePrepared(ctx, next.batch)
	for tries := 0; errors.Is(err, tideline.ErrOverloaded) && tries < overloadTries; tries++ {
		if err = c.makeRoom(ctx); err == nil {
			ack, err = r.writer.WritePrepared(ctx, next.batch)
		}
	}
	if epoch != nil {
		if err == nil {
			epoch <- ack.Epoch
		}
		close(epoch)
	}
	if err != nil {
		r.model.Cancel()
		return err
	}
	r.write.record(time.Since(begun))
	if ack.Rows != next.rows || ack.Epoch <= r.acked.Load() {
		r.model.Cancel()
		return fmt.Errorf("a write of %d rows after epoch %d was acknowledged as %d rows at epoch %d", next.rows, r.acked.Load(), ack.Rows, ack.Epoch)
	}
	r.applies <- applied{ack.Epoch, next.changes}
	r.acked.Store(ack.Epoch)
	r.written.Add(int64(next.rows))
	if next.check != nil {
		if err := r.checkpoint(ctx, next.check); err != nil {
			return err
		}
	}
	return c.wrote(ctx, next.rows)
}

// overloadTries bounds the commits that are made for the sake of one write.
const overloadTries = 8

// checkpoint reads the table between two writes and asks the source.
func (r *run) checkpoint(ctx context.Context, check *Checkpoint) error {
	reader, err := r.table.Scan().Read(ctx)
	if err != nil {
		return err
	}
	got, err := r.verifier(r.table).drain(reader)
	if err != nil {
		return err
	}
	defer got.release()
	if err := check.Check(got.batches); err != nil {
		return &Mismatch{Seed: r.config.Seed, Read: "checkpoint " + check.Name, Frontier: got.frontier, Snapshot: got.snapshot, Want: r.model.Newest().digest, Got: got.digest, Reason: err.Error()}
	}
	r.checked.Add(1)
	return nil
}

// close ends the session.
func (r *run) close(failed bool) error {
	ctx := context.Background()
	var err error
	if failed {
		_ = r.writer.Discard(ctx) // the failure is reported already
	} else {
		err = r.writer.Close(ctx)
	}
	return errors.Join(err, r.table.Close(ctx))
}

// verifyEnd reads the table through a fresh handle.
func (r *run) verifyEnd(ctx context.Context, report *Report) error {
	t, err := tideline.Open(ctx, r.path, tideline.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = t.Close(ctx) }() // it only read
	v := r.verifier(t)
	begun := time.Now()
	reader, err := t.Scan().Read(ctx)
	if err != nil {
		return err
	}
	got, err := v.drain(reader)
	if err != nil {
		return err
	}
	defer got.release()
	r.reading.Add(int64(time.Since(begun)))
	r.read.Add(got.digest.Rows)
	const kind = "read after reopening"
	want := r.model.Newest()
	got.frontier = want.epoch
	if err := v.compare(kind, got, want); err != nil {
		return err
	}
	if err := v.committed(ctx, kind, got); err != nil {
		return err
	}
	report.Final = got.digest
	if end, ok := r.config.Source.(End); ok && want.rows == r.config.Source.Rows() && got.digest.Rows <= keepRowsMax {
		if report.EndCheck, err = end.CheckEnd(got.batches); err != nil {
			return &Mismatch{Seed: r.config.Seed, Read: kind, Frontier: want.epoch, Snapshot: got.snapshot, Writes: want.writes, Want: want.digest, Got: got.digest, Reason: err.Error()}
		}
	}
	return r.count(ctx, t, report)
}

// progress calls Config.Progress until the returned function is called.
func (r *run) progress() (stop func()) {
	if r.config.Progress == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				r.config.Progress(Progress{
					Phase: *r.phase.Load(), Rows: r.written.Load(), Total: r.config.Source.Rows(),
					Reads: r.reads.Load(), Snapshots: r.commits.Load(), Elapsed: time.Since(r.begun),
				})
			}
		}
	}()
	return func() { close(quit); <-done }
}
