package tideline_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/actors"
	"github.com/tideline-db/tideline/fs/fault"
)

func readSplits(t *testing.T, table *tideline.Table, splits ...tideline.Split) []string {
	t.Helper()
	r, err := table.ReadSplits(t.Context(), splits...)
	require.NoError(t, err)
	return drain(t, r)
}

// LIF-02, APP-02: a ticket is used up by the reader that was built.
func TestTicketIsUsedOnce(t *testing.T) {
	w := newWorld(t, listed())
	table, writer := w.session()
	for i := range 10 {
		put(t, writer, i, "x")
	}
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	require.Len(t, plan.Splits, 1)
	split := plan.Splits[0]
	require.Nil(t, plan.Snapshot)
	require.Zero(t, split.Committed)
	require.EqualValues(t, 10, split.Visible)
	require.Positive(t, split.Ticket)
	_, err = table.ReadSplits(t.Context(), split, split)
	require.ErrorIs(t, err, tideline.ErrInvalid, "one split twice")
	_, err = w.open().ReadSplits(t.Context(), split)
	require.ErrorIs(t, err, tideline.ErrInvalid, "another handle has no such ticket")
	require.Len(t, readSplits(t, table, split), 10)
	_, err = table.ReadSplits(t.Context(), split)
	require.ErrorIs(t, err, tideline.ErrInvalid)
	_, err = table.ReadSplits(t.Context())
	require.ErrorIs(t, err, tideline.ErrInvalid)
	plan.Close(t.Context())
	require.NoError(t, writer.Discard(t.Context()))
}

// Of many readers of one ticket one gets it.
func TestTicketHasOneWinner(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	for range 20 {
		plan, err := table.Scan().Plan(t.Context())
		require.NoError(t, err)
		var all sync.WaitGroup
		won := make(chan *tideline.Reader, 4)
		for range 4 {
			all.Go(func() {
				if r, err := table.ReadSplits(context.Background(), plan.Splits...); err == nil {
					won <- r
				}
			})
		}
		all.Wait()
		close(won)
		require.Len(t, won, 1)
		require.Equal(t, []string{"1=a"}, drain(t, <-won))
	}
	commit(t, writer)
	require.Zero(t, stats(t, table).UsedBytes)
}

// LIF-03, LIF-04: a reader that cannot be built keeps all tickets.
func TestFailureKeepsTheTickets(t *testing.T) {
	w := newWorld(t, keyed("bucket", "2"))
	table, writer := w.session()
	put(t, writer, 1, "a", 2, "b", 3, "c", 4, "d")
	commit(t, writer)
	put(t, writer, 1, "A", 2, "B", 3, "C", 4, "D")
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	require.Len(t, plan.Splits, 2)
	bad := plan.Splits[1]
	bad.Files = append(bad.Files[:0:0], bad.Files...)
	bad.Files[0].Name = "data-1.orc"
	_, err = table.ReadSplits(t.Context(), plan.Splits[0], bad)
	require.ErrorIs(t, err, tideline.ErrUnsupported)
	require.ElementsMatch(t, []string{"1=A", "2=B", "3=C", "4=D"}, readSplits(t, table, plan.Splits...))
	require.NoError(t, writer.Discard(t.Context()))
}

// LIF-05, LIF-06, LIF-07: plans and readers keep their rows over a refresh.
func TestPinnedOverRefresh(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a", 2, "b", 3, "c")
		commit(t, writer)
		put(t, writer, 4, "d", 5, "e")
		want := []string{"1=a", "2=b", "3=c", "4=d", "5=e"}
		plan, err := table.Scan().Plan(t.Context())
		require.NoError(t, err)
		reader, err := table.Scan().Read(t.Context())
		require.NoError(t, err)
		held := stats(t, table).UsedBytes
		commit(t, writer)
		s := stats(t, table)
		require.Zero(t, s.BuildingRows+s.SealedRows, "reclaimed")
		require.Equal(t, held, s.PinnedBytes)
		require.Equal(t, want, drain(t, reader))
		require.Equal(t, held, stats(t, table).PinnedBytes, "the plan still holds")
		require.Equal(t, want, readSplits(t, table, plan.Splits...))
		s = stats(t, table)
		require.Zero(t, s.PinnedBytes+s.UsedBytes)
		require.Equal(t, want, read(t, table.Scan()))
	})
}

// LIF-14: tickets that nobody uses expire, and say so.
func TestTicketsExpire(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session(func(o *tideline.Options) { o.TicketTTL = time.Millisecond })
	put(t, writer, 1, "a")
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	commit(t, writer)
	until(t, "the ticket expires", func() bool { return stats(t, table).UsedBytes == 0 })
	_, err = table.ReadSplits(t.Context(), plan.Splits...)
	require.ErrorIs(t, err, tideline.ErrSnapshotExpired)
}

// The end of a table handle: readers go on, tickets end, everything else says so.
func TestReadersOutliveTheTable(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a")
		commit(t, writer)
		put(t, writer, 2, "b")
		reader, err := table.Scan().Read(t.Context())
		require.NoError(t, err)
		plan, err := table.Scan().Plan(t.Context())
		require.NoError(t, err)
		p := prepare(t, writer)
		require.NoError(t, table.Close(t.Context()))
		require.NoError(t, table.Close(t.Context()), "twice is fine")
		require.Equal(t, []string{"1=a", "2=b"}, drain(t, reader))
		_, err = table.ReadSplits(t.Context(), plan.Splits...)
		require.ErrorIs(t, err, tideline.ErrClosed)
		_, err = table.Scan().Read(t.Context())
		require.ErrorIs(t, err, tideline.ErrClosed)
		_, err = table.Writer(t.Context())
		require.ErrorIs(t, err, tideline.ErrClosed)
		_, err = writer.Write(t.Context(), rows(t, 3, "c"))
		require.ErrorIs(t, err, tideline.ErrClosed)
		_, err = writer.PrepareCommit(t.Context())
		require.ErrorIs(t, err, tideline.ErrClosed)
		_, err = table.Commit(t.Context(), p)
		require.ErrorIs(t, err, tideline.ErrClosed)
		require.ErrorIs(t, table.Refresh(t.Context()), tideline.ErrClosed)
	})
}

// Cancelling a Close gives up the wait; the next Close finishes it.
func TestCancelledClose(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = table.Close(ctx)
	require.NoError(t, table.Close(t.Context()))
}

// PK-04, PK-18: a batch outlives the reader, the plan and the table.
func TestBatchesOutliveTheReader(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	commit(t, writer)
	put(t, writer, 2, "b")
	r, err := table.Scan().Read(t.Context())
	require.NoError(t, err)
	var kept []arrow.RecordBatch
	for r.Next() {
		r.RecordBatch().Retain()
		kept = append(kept, r.RecordBatch())
	}
	require.NoError(t, r.Err())
	r.Release()
	require.NoError(t, table.Close(t.Context()))
	n := int64(0)
	for _, b := range kept {
		n += b.NumRows()
		require.NotEmpty(t, b.Column(1).ValueStr(0))
		b.Release()
	}
	require.EqualValues(t, 2, n)
}

// Every path of reading gives back what it took from the caller's allocator.
func TestAllocatorIsBalanced(t *testing.T) {
	nested := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true},
			arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			arrow.Field{Name: "in", Nullable: true, Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true})},
		)},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "part", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	scans := map[string]func(tideline.Scan) tideline.Scan{
		"all":                 func(s tideline.Scan) tideline.Scan { return s },
		"small batches":       func(s tideline.Scan) tideline.Scan { return s.BatchRows(3) },
		"limit":               func(s tideline.Scan) tideline.Scan { return s.Limit(7) },
		"no rows":             func(s tideline.Scan) tideline.Scan { return s.Limit(0) },
		"count":               func(s tideline.Scan) tideline.Scan { return s.Select() },
		"keyless":             func(s tideline.Scan) tideline.Scan { return s.Select("l") },
		"nested":              func(s tideline.Scan) tideline.Scan { return s.Select("s.b", "s.in.y", "part") },
		"nested and filtered": func(s tideline.Scan) tideline.Scan { return s.Select("s.b").Where(tideline.StartsWith("s.a", "a1")) },
		"filtered":            func(s tideline.Scan) tideline.Scan { return s.Where(tideline.Gt("id", int64(11))) },
		"nothing left":        func(s tideline.Scan) tideline.Scan { return s.Where(tideline.Gt("s.b", int32(1<<30))) },
		"committed":           func(s tideline.Scan) tideline.Scan { return s.CommittedOnly() },
		"candidates":          func(s tideline.Scan) tideline.Scan { return s.Candidates().Where(tideline.Eq("id", int64(5))) },
		"snapshot":            func(s tideline.Scan) tideline.Scan { return s.AtSnapshot(1) },
	}
	for _, key := range [][]string{{"part", "id"}, nil} {
		kind, options := "append", map[string]string{"bucket": "1", "bucket-key": "id"}
		if key != nil {
			kind, options = "pk", nil
		}
		w := newWorld(t, tideline.Definition{Columns: nested, PrimaryKey: key, PartitionBy: []string{"part"}, Options: options})
		alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
		table, writer := w.session(func(o *tideline.Options) { o.Allocator = alloc })
		write := func(from, to int) {
			text := "["
			for i := from; i < to; i++ {
				if i > from {
					text += ","
				}
				n := string(rune('0'+i/10)) + string(rune('0'+i%10))
				text += `{"id":` + itoa(i) + `,"s":{"a":"a` + n + `","b":` + itoa(i) + `,"in":{"x":` + itoa(i) + `,"y":"y` + n + `"}},"l":[` + itoa(i) + `,1],"part":"p` + itoa(i%2) + `"}`
			}
			_, err := writer.Write(t.Context(), fromJSON(t, nested, text+"]"))
			require.NoError(t, err)
		}
		write(0, 20)
		commit(t, writer)
		write(10, 30)
		commit(t, writer)
		write(25, 40)
		for name, scan := range scans {
			t.Run(kind+"/"+name, func(t *testing.T) {
				drain := func(stop int) {
					r, err := scan(table.Scan()).Read(t.Context())
					require.NoError(t, err)
					defer r.Release()
					for n := 0; n != stop && r.Next(); n++ {
						require.Positive(t, r.RecordBatch().NumRows())
					}
					require.NoError(t, r.Err())
				}
				drain(-1)
				require.Zero(t, alloc.CurrentAlloc(), "after the end")
				drain(0)
				require.Zero(t, alloc.CurrentAlloc(), "nothing was read")
				drain(1)
				require.Zero(t, alloc.CurrentAlloc(), "released early")
				ctx, cancel := context.WithCancel(t.Context())
				r, err := scan(table.Scan()).Read(ctx)
				require.NoError(t, err)
				cancel()
				for r.Next() {
				}
				r.Release()
				require.Zero(t, alloc.CurrentAlloc(), "cancelled")
				before := w.io.Count()
				drain(-1)
				for k := range w.io.Count() - before {
					w.io.SetPlan(fault.FailOnce(k))
					if r, err := scan(table.Scan()).Read(t.Context()); err == nil {
						for r.Next() {
						}
						r.Release()
					}
					w.io.SetPlan(fault.Plan{})
					require.Zero(t, alloc.CurrentAlloc(), "fault at operation %d", k)
				}
			})
		}
		require.NoError(t, writer.Discard(t.Context()))
	}
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return string(rune('0'+i/10)) + string(rune('0'+i%10))
}

// A table lives in the embedder's actor system and leaves it running.
func TestExternalActorSystem(t *testing.T) {
	system := actor.NewActorSystem( // with the library's defaults its dead letters log and keep a goroutine for a second
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	runtime := actors.NewRuntime(system)
	for range 2 {
		w := newWorld(t, keyed())
		table, writer := w.session(func(o *tideline.Options) { o.Runtime = runtime })
		put(t, writer, 1, "a")
		commit(t, writer)
		require.Equal(t, []string{"1=a"}, read(t, table.Scan()))
		require.NoError(t, table.Close(t.Context()))
	}
	runtime.Close()
	require.False(t, system.IsStopped())
	system.Shutdown()
}

// Cancelled contexts are answered, before and during a read, and change nothing.
func TestCancellation(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := writer.Write(ctx, rows(t, 2, "b"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = writer.PrepareCommit(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = table.Scan().Plan(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"1=a"}, read(t, table.Scan()))
	c := commit(t, writer)
	require.EqualValues(t, 1, c.ID)
	require.Zero(t, stats(t, table).UsedBytes)
	reading, stop := context.WithCancel(t.Context())
	r, err := table.Scan().Read(reading)
	require.NoError(t, err)
	stop()
	require.False(t, r.Next())
	require.ErrorIs(t, r.Err(), context.Canceled)
	r.Release()
	require.NoError(t, writer.Close(t.Context()))
}

// LIF-17: many sealed segments are reclaimed at once, with a plan that holds them.
func TestReclaimOfManySegments(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	for i := range 300 {
		put(t, writer, i, "x")
		require.NoError(t, writer.Seal(t.Context()))
	}
	require.Equal(t, 300, stats(t, table).Buckets[0].Segments)
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	commit(t, writer)
	require.Zero(t, stats(t, table).Buckets[0].Segments)
	require.Equal(t, []string{"0:300"}, ends(t, table, 0))
	require.Len(t, readSplits(t, table, plan.Splits...), 300)
	require.Zero(t, stats(t, table).UsedBytes)
}
