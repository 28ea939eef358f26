package actors

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
)

// bucketActor translates messages into calls of bucket.State and carries out
// what follows: publish the view, acknowledge, offload a consolidation. It never
// blocks and does no I/O. A failure poisons the whole session; the actor is
// never restarted, because a restarted bucket has lost its rows.
type bucketActor struct {
	core   *core
	handle *Handle
	state  *bucket.State
	lease  int64 // newest lease seen; an older writer is refused
	// consolidating is true while a job of this bucket is out; at most one is.
	consolidating bool
	// quietTimer runs while the bucket is crowded: when it finds that no write came
	// since it was armed, the bucket is quiet.
	quietTimer func()
	writes     int64 // since the bucket began
	retired    bool
}

// quietAfter is how long a bucket must not be written before its runs are merged
// in the background.
const quietAfter = 50 * time.Millisecond

func (a *bucketActor) Receive(ctx actor.Context) {
	defer func() {
		if reason := recover(); reason != nil {
			a.core.poison(fmt.Errorf("bucket %s panicked: %v\n%s", a.handle.ID, reason, debug.Stack()))
		}
	}()
	switch m := ctx.Message().(type) {
	case *messages.Write:
		a.write(m)
	case *messages.Cut:
		a.cut(m)
	case *messages.Reclaim:
		a.reclaim(m)
	case *messages.Consolidated:
		a.consolidated(m)
	case *messages.Quiet:
		a.quiet(m)
	case *messages.RaiseSequence:
		a.state.RaiseSequence(m.Sequence)
	case *messages.Rejoin:
		for _, segment := range m.Segments {
			a.state.Rejoin(segment)
		}
		a.publish()
	case *messages.Describe:
		m.Reply(a.handle.ID, a.state.Describe())
	case *messages.Retire:
		a.retired = true
		if a.quietTimer != nil {
			a.quietTimer()
		}
		ctx.Stop(ctx.Self())
		m.Reply()
	}
}

func (a *bucketActor) write(m *messages.Write) {
	if !a.accept(m.Lease) {
		return
	}
	if err := a.state.Append(m.Part, m.Epoch); err != nil {
		a.core.poison(fmt.Errorf("write to bucket %s failed: %w", a.handle.ID, err))
		return
	}
	a.publish()
	a.writes++
	m.Ack(m.Epoch) // the writer may use m again from here
	a.consolidate(false)
}

func (a *bucketActor) cut(m *messages.Cut) {
	if !a.accept(m.Lease) {
		return
	}
	a.state.Seal(m.Epoch)
	a.publish()
	if m.Prepare > 0 {
		segments := a.state.TakePrepare()
		sealed := messages.Sealed{Prepare: m.Prepare, ID: a.handle.ID, Segments: segments}
		if len(segments) > 0 {
			sealed.Begin, sealed.End = segments[0].Begin, segments[len(segments)-1].End
		}
		m.Report(sealed)
	}
	m.Ack(m.Epoch)
}

// accept refuses a writer whose lease was handed on. Its epochs are never
// acknowledged; it learns of it from the poisoned session or its own lease.
func (a *bucketActor) accept(lease int64) bool {
	if lease < a.lease || a.retired {
		a.core.poison(errs.Wrap(errs.ErrFenced, "bucket %s was written under lease %d after lease %d", a.handle.ID, lease, a.lease))
		return false
	}
	a.lease = lease
	return a.core.poisoned() == nil
}

func (a *bucketActor) reclaim(m *messages.Reclaim) {
	freed, pinned := a.state.Reclaim(m.CommittedEnd)
	a.core.pinnedBytes.Add(pinned)
	a.publish()
	a.core.budget.Return(freed)
	m.Done()
}

// consolidate offloads at most one merge at a time. The inputs are immutable, so
// the worker shares them with every reader.
func (a *bucketActor) consolidate(quiet bool) {
	if a.consolidating || a.retired {
		return
	}
	job := a.state.Consolidation(a.core.frontier.At(), quiet)
	if job == nil {
		a.watch()
		return
	}
	a.consolidating = true
	core, pid, writes := a.core, a.handle.pid, a.writes
	core.runtime.Compute(func(ctx context.Context) {
		result, err := runConsolidation(ctx, job)
		core.post(pid, &messages.Consolidated{Job: job, Result: result, Err: err, Writes: writes})
	})
}

// watch arms the timer of a crowded bucket.
func (a *bucketActor) watch() {
	if a.quietTimer != nil || !a.state.Crowded() {
		return
	}
	core, pid, writes := a.core, a.handle.pid, a.writes
	a.quietTimer = core.runtime.After(quietAfter, func() { core.post(pid, &messages.Quiet{Writes: writes}) })
}

// quiet merges if nothing was written since the timer was armed; else it waits on.
func (a *bucketActor) quiet(m *messages.Quiet) {
	a.quietTimer = nil
	if m.Writes != a.writes {
		a.watch()
		return
	}
	a.consolidate(true)
}

// runConsolidation turns a panic of the merge into an error: memory keeps its
// old runs, and the session is poisoned by name instead of the process dying.
func runConsolidation(ctx context.Context, job *bucket.Job) (result *bucket.Result, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("consolidation panicked: %v\n%s", reason, debug.Stack())
		}
	}()
	return job.Run(ctx, nil)
}

func (a *bucketActor) consolidated(m *messages.Consolidated) {
	a.consolidating = false
	if m.Err != nil {
		a.state.Abandon(m.Job)
		if a.core.closing.Load() { // the job was told to stop
			return
		}
		a.core.poison(fmt.Errorf("consolidation of bucket %s failed: %w", a.handle.ID, m.Err))
		return
	}
	before := a.state.Describe()
	if a.state.Consolidated(m.Result) {
		after := a.state.Describe()
		a.publish()
		freed := before.BuildingBytes + before.SealedBytes - after.BuildingBytes - after.SealedBytes
		if freed > 0 {
			a.core.budget.Return(freed)
		} else {
			a.core.budget.Take(-freed)
		}
	}
	a.consolidate(m.Writes == a.writes)
}

func (a *bucketActor) publish() { a.handle.view.Store(a.state.View()) }
