package actors

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/fs/mem"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/messages"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/schema"
	"github.com/tideline-db/tideline/snapshot"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// scripted is a Runtime on one goroutine: turns, timers and jobs run when the
// script says so.
type scripted struct {
	system *actor.ActorSystem
	turns  []func()
	jobs   []func(context.Context)
	timers []*timer
	now    time.Duration
	names  int
}

type timer struct {
	at   time.Duration
	fn   func()
	gone bool
}

func (r *scripted) System() *actor.ActorSystem                { return r.system }
func (r *scripted) Dispatcher() actor.Dispatcher              { return r }
func (r *scripted) Schedule(fn func())                        { r.turns = append(r.turns, fn) }
func (r *scripted) Throughput() int                           { return 1 }
func (r *scripted) CallerRuns() bool                          { return false }
func (r *scripted) Batch() int                                { return 1 }
func (r *scripted) Now() time.Duration                        { return r.now }
func (r *scripted) WallMillis() int64                         { return 1_700_000_000_000 + r.now.Milliseconds() }
func (r *scripted) LocalMillis() int64                        { return r.WallMillis() }
func (r *scripted) Offload(job func(context.Context))         { r.jobs = append(r.jobs, job) }
func (r *scripted) Compute(job func(context.Context))         { r.jobs = append(r.jobs, job) }
func (r *scripted) Wait(context.Context, time.Duration) error { return nil }
func (r *scripted) Sync() [16]byte                            { return [16]byte{7} }
func (r *scripted) Close()                                    { r.system.Shutdown() }

func (r *scripted) UUID() string {
	r.names++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", r.names)
}

func (r *scripted) After(d time.Duration, fn func()) func() {
	t := &timer{at: r.now + d, fn: fn}
	r.timers = append(r.timers, t)
	return func() { t.gone = true }
}

// settle gives turns until nobody has a message.
func (r *scripted) settle() {
	for len(r.turns) > 0 {
		fn := r.turns[0]
		r.turns = r.turns[1:]
		fn()
	}
}

func (r *scripted) advance(d time.Duration) {
	r.now += d
	for _, t := range r.timers {
		if !t.gone && t.at <= r.now {
			t.gone = true
			t.fn()
		}
	}
}

// play is one run of a script: the sequencer's part of a writer, and a line for
// every answer.
type play struct {
	t        *testing.T
	runtime  *scripted
	io       *fault.FS
	table    *snapshot.Table
	session  *Session
	lease    int64
	preparer *bucket.Preparer
	dirty    map[*Handle]struct{}
	holds    map[int64]int
	out      []string
}

var letters = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

func newPlay(t *testing.T, budget int64) *play {
	p := &play{t: t, runtime: &scripted{system: quietSystem()}, dirty: map[*Handle]struct{}{}, holds: map[int64]int{}}
	p.io = fault.Wrap(mem.New(), fault.Plan{})
	fields, err := schema.FromArrow(letters)
	require.NoError(t, err)
	s, err := schema.New(fields, nil, []string{"id"}, map[string]string{"bucket": "2"}, 0)
	require.NoError(t, err)
	o, err := schema.ParseOptions(s)
	require.NoError(t, err)
	p.table = &snapshot.Table{IO: p.io, Root: "/t", Env: snapshot.Env{
		Now: p.runtime.WallMillis, LocalMillis: p.runtime.LocalMillis, UUID: p.runtime.UUID, Wait: p.runtime.Wait,
	}}
	require.NoError(t, p.table.CreateTable(t.Context(), s))
	rows, err := bucket.NewTable(s, o)
	require.NoError(t, err)
	p.table.Session(p.runtime.UUID())
	p.session, err = Open(t.Context(), p.runtime, p.table, rows, Settings{CommitUser: "u", MemoryBytesMax: budget, TicketTTL: time.Second})
	require.NoError(t, err)
	p.preparer = bucket.NewPreparer(rows)
	p.runtime.settle()
	return p
}

func (p *play) say(format string, args ...any) {
	p.out = append(p.out, "  "+fmt.Sprintf(format, args...))
}

// outcome prints an error as its sentinel and cause, without random names.
func (p *play) outcome(err error) string {
	if err == nil {
		return "ok"
	}
	var names []string
	for _, s := range []error{errs.ErrPoisoned, errs.ErrInvalid, errs.ErrOverloaded, errs.ErrConflict, errs.ErrFenced, errs.ErrOutcomeUnknown, errs.ErrSnapshotExpired, errs.ErrClosed, fault.ErrInjected} {
		if errors.Is(err, s) {
			names = append(names, s.Error())
		}
	}
	return strings.Join(names, ", ")
}

func (p *play) batch(text string) []*bucket.Part {
	b := array.NewRecordBuilder(memory.DefaultAllocator, letters)
	defer b.Release()
	for _, pair := range strings.Fields(text) {
		id, name, _ := strings.Cut(pair, "=")
		n, err := strconv.ParseInt(id, 10, 64)
		require.NoError(p.t, err)
		b.Field(0).(*array.Int64Builder).Append(n)
		b.Field(1).(*array.StringBuilder).Append(name)
	}
	r := b.NewRecordBatch()
	defer r.Release()
	prepared, err := p.preparer.Prepare(r, nil, nil)
	require.NoError(p.t, err)
	return prepared.Parts
}

func (p *play) numbers(args []string) (ids []int64) {
	for _, a := range args {
		n, err := strconv.ParseInt(a, 10, 64)
		require.NoError(p.t, err)
		ids = append(ids, n)
	}
	return ids
}

// do runs one line of a script.
func (p *play) do(line string) {
	c := p.session.core
	words := strings.Fields(line)
	args := words[1:]
	switch words[0] {
	case "writer":
		c.tell(&messages.OpenWriter{Reply: func(l int64, err error) {
			if err == nil {
				p.lease = l
			}
			p.say("writer: lease %d, %s", l, p.outcome(err))
		}})
	case "close":
		c.tell(&messages.CloseWriter{Lease: p.lease, Unprepared: len(p.dirty) > 0, Discard: len(args) > 0,
			Reply: func(err error) { p.say("close: %s", p.outcome(err)) }})
	case "spawn":
		c.tell(&messages.Spawn{Lease: p.lease, Parts: p.batch(strings.Join(args, " ")), Reply: func(err error) {
			p.say("spawn: %s, %d buckets", p.outcome(err), len(c.registry.Load().Handles))
		}})
	case "write":
		p.write(p.lease, strings.Join(args, " "))
	case "write-as":
		p.write(p.numbers(args[:1])[0], strings.Join(args[1:], " "))
	case "cut":
		p.cut()
	case "turn": // exactly one message of one actor
		if len(p.runtime.turns) > 0 {
			fn := p.runtime.turns[0]
			p.runtime.turns = p.runtime.turns[1:]
			fn()
		}
		return
	case "job":
		if len(p.runtime.jobs) == 0 {
			p.say("no job")
			break
		}
		job := p.runtime.jobs[0]
		p.runtime.jobs = p.runtime.jobs[1:]
		job(p.t.Context())
	case "last-job":
		n := len(p.runtime.jobs) - 1
		job := p.runtime.jobs[n]
		p.runtime.jobs = p.runtime.jobs[:n]
		job(p.t.Context())
	case "fail":
		p.io.SetPlan(fault.FailFrom(0))
	case "heal":
		p.io.SetPlan(fault.Plan{})
	case "advance":
		d, err := time.ParseDuration(args[0])
		require.NoError(p.t, err)
		p.runtime.advance(d)
	case "look":
		p.look()
		return
	case "settle": // turns until nobody has a message; most commands end with it
	default:
		p.ask(words[0], args)
	}
	if words[0] != "write" || len(args) == 0 || args[len(args)-1] != "..." {
		p.runtime.settle()
	}
}

func (p *play) ask(word string, args []string) {
	c := p.session.core
	ids := []int64{}
	if word != "abandon" {
		ids = p.numbers(args)
	}
	switch word {
	case "commit":
		c.tell(&messages.Commit{Number: ids[0], Reply: func(r snapshot.CommitResult, err error) {
			there := ""
			if r.AlreadyThere {
				there = ", already there"
			}
			p.say("commit %d: snapshot %d%s, %s", ids[0], r.SnapshotID, there, p.outcome(err))
		}})
	case "abort":
		rejoined := 0
		deleted := func(err error) { p.say("abort %d: %d buckets rejoin, %s", ids[0], rejoined, p.outcome(err)) }
		c.tell(&messages.Abort{Number: ids[0], Deleted: deleted, Decided: func(back []bucket.ID, err error) {
			for _, id := range back {
				p.dirty[c.registry.Load().Find(id)] = struct{}{}
			}
			if rejoined = len(back); err != nil {
				deleted(err)
			}
		}})
	case "refresh":
		c.tell(&messages.Refresh{Reply: func(s *manifest.Snapshot, err error) {
			p.say("refresh: snapshot %d, %s", (&Adopted{Snapshot: s}).ID(), p.outcome(err))
		}})
	case "credits":
		c.budget.waiters.Add(1)
		c.tell(&messages.AwaitCredits{ID: ids[0], Bytes: ids[1], Ready: func(err error) {
			c.budget.waiters.Add(-1)
			p.say("credits %d: %s", ids[0], p.outcome(err))
		}})
	case "cancel":
		c.tell(&messages.CancelCredits{ID: ids[0], Bytes: ids[1]})
	case "pin":
		c.tell(&messages.Pin{TTL: time.Duration(ids[0]) * time.Millisecond, Payload: "rows", Release: func() { p.say("pin of %d ms released", ids[0]) },
			Reply: func(ticket int64, err error) { p.say("pin: ticket %d, %s", ticket, p.outcome(err)) }})
	case "resolve":
		c.tell(&messages.Resolve{Tickets: ids, Reply: func(got []any, err error) { p.say("resolve: %d, %s", len(got), p.outcome(err)) }})
	case "use":
		c.tell(&messages.Release{Tickets: ids, Strict: true, Reply: func(err error) { p.say("use: %s", p.outcome(err)) }})
	case "give-up":
		c.tell(&messages.Release{Tickets: ids, Reply: func(err error) { p.say("give up: %s", p.outcome(err)) }})
	case "shutdown":
		c.tell(&messages.Shutdown{Reply: func() { p.say("shutdown: done") }})
	default:
		p.t.Fatalf("unknown command %q", word)
	}
}

// write posts a batch as the writer does; the frontier moves by the turns.
func (p *play) write(lease int64, text string) {
	c := p.session.core
	parts := p.batch(strings.TrimSuffix(text, "..."))
	for _, part := range parts {
		if !c.budget.TryTake(part.Bytes) {
			p.say("write: no memory")
			return
		}
	}
	epoch := c.epochs.Add(1)
	c.frontier.Begin(epoch, len(parts), func() { p.say("epoch %d is visible", epoch) })
	for _, part := range parts {
		h := c.registry.Load().Find(part.ID)
		p.dirty[h] = struct{}{}
		c.post(h.pid, &messages.Write{Lease: lease, Epoch: epoch, Part: part, Ack: c.frontier.Ack})
	}
}

func (p *play) cut() {
	c := p.session.core
	number, epoch := c.prepares.Add(1), c.epochs.Add(1)
	c.tell(&messages.Prepare{Lease: p.lease, Number: number, Epoch: epoch, Buckets: len(p.dirty), Reply: func(r messages.Prepared, err error) {
		p.say("prepare %d: %d rows in %d files of %d buckets, %s", number, r.Rows, r.Files, r.Buckets, p.outcome(err))
	}})
	c.frontier.Begin(epoch, len(p.dirty), func() {
		p.say("cut %d is visible", epoch)
		c.tell(&messages.CutVisible{Prepare: number})
	})
	for _, h := range c.registry.Load().Handles {
		if _, ok := p.dirty[h]; ok {
			c.post(h.pid, &messages.Cut{Lease: p.lease, Epoch: epoch, Prepare: number, Ack: c.frontier.Ack, Report: func(m messages.Sealed) {
				p.say("bucket %d sealed [%d,%d)", m.ID.Bucket, m.Begin, m.End)
				c.tell(&m)
			}})
		}
	}
	clear(p.dirty)
}

// look prints what everybody could see now.
func (p *play) look() {
	c := p.session.core
	state := "alive"
	if err := c.writable(); err != nil {
		state = p.outcome(err)
	}
	p.say("frontier %d, adopted %d, %d jobs out, %s, %s", c.frontier.At(), p.session.Adopted().ID(), len(p.runtime.jobs), map[bool]string{true: "memory in use", false: "no memory in use"}[c.budget.Used() > 0], state)
	for _, h := range c.registry.Load().Handles {
		rows := 0
		runs, err := h.View().Runs(progressEnd(c.adopted.Load().Progress, h.ID), c.frontier.At())
		require.NoError(p.t, err)
		for _, r := range runs {
			rows += r.Rows
		}
		p.say("bucket %d: %d rows visible", h.ID.Bucket, rows)
	}
}

// Each script in testdata is a conversation with the actors: lines with ">" are
// what is asked, indented lines what is answered. The order of turns is fixed, so
// the answers are as well.
func TestTranscripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			budget := int64(1 << 20)
			var p *play
			var got []string
			for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
				switch {
				case strings.HasPrefix(line, "budget "):
					budget, err = strconv.ParseInt(strings.Fields(line)[1], 10, 64)
					require.NoError(t, err)
					got = append(got, line)
				case strings.HasPrefix(line, "> "):
					if p == nil {
						p = newPlay(t, budget)
					}
					p.do(line[2:])
					got = append(append(got, line), p.out...)
					p.out = nil
				case strings.HasPrefix(line, "#") || line == "":
					got = append(got, line)
				}
			}
			p.end()
			text := strings.Join(got, "\n") + "\n"
			if *update {
				require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
			}
			require.Equal(t, string(data), text)
		})
	}
}

// end stops everything that a script left running.
func (p *play) end() {
	p.io.SetPlan(fault.Plan{})
	if !p.session.core.gone() {
		p.session.core.tell(&messages.Shutdown{Reply: func() {}})
	}
	for p.runtime.settle(); len(p.runtime.jobs) > 0; p.runtime.settle() {
		job := p.runtime.jobs[0]
		p.runtime.jobs = p.runtime.jobs[1:]
		job(p.t.Context())
	}
	require.True(p.t, p.session.core.gone())
	p.runtime.Close()
}
