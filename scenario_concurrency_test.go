package tideline_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs/fault"
)

// until polls without sleeping.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "waited too long: %s", what)
	}
}

// insist writes in spite of a test that looks whether the writer is taken.
func insist(ctx context.Context, w *tideline.Writer, batch arrow.RecordBatch) error {
	for {
		if _, err := w.Write(ctx, batch); !errors.Is(err, tideline.ErrInvalid) {
			return err
		}
		runtime.Gosched()
	}
}

// CON-01: one writer, four committers between its writes, one refresher, four
// readers. Every read is the state after some write.
func TestManyReadersAndCommittersOneWriter(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		const batches, perBatch = 60, 5
		w := newWorld(t, def)
		table, writer := w.session()
		ctx := t.Context()
		var acked atomic.Int64 // batches whose write returned
		stop := make(chan struct{})
		var others sync.WaitGroup
		loop := func(do func() error) {
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := do(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		var commits, reads atomic.Int64
		for range 2 {
			loop(func() error {
				p, err := writer.PrepareCommit(ctx, tideline.BetweenWrites())
				if err != nil {
					return err
				}
				c, err := table.Commit(ctx, p)
				if c.ID > 0 {
					commits.Add(1)
				}
				return err
			})
		}
		loop(func() error { return table.Refresh(ctx) })
		for range 4 {
			previous := 0
			loop(func() error {
				least := int(acked.Load())
				r, err := table.Scan().Read(ctx)
				if err != nil {
					return err
				}
				defer r.Release()
				seen := map[string]int{}
				names := map[string]int{}
				n := 0
				for r.Next() {
					b := r.RecordBatch()
					for i := range int(b.NumRows()) {
						n++
						seen[b.Column(0).ValueStr(i)]++
						names[b.Column(1).ValueStr(i)]++
					}
				}
				if err := r.Err(); err != nil {
					return err
				}
				reads.Add(1)
				if len(def.PrimaryKey) > 0 { // batch b rewrites all keys: one name at most
					if n != 0 && (n != perBatch || len(names) != 1) {
						return errors.New("a read that is no state after a write")
					}
					return nil
				}
				if n%perBatch != 0 || n/perBatch < least || n/perBatch < previous || len(names) != n/perBatch {
					return errors.New("a read that is no prefix of the writes")
				}
				previous = n / perBatch
				return nil
			})
		}
		for b := range batches {
			var pairs []any
			for i := range perBatch {
				id := i
				if len(def.PrimaryKey) == 0 {
					id = b*perBatch + i
				}
				pairs = append(pairs, id, "b"+string(rune('0'+b/10))+string(rune('0'+b%10)))
			}
			_, err := writer.Write(ctx, rows(t, pairs...))
			require.NoError(t, err)
			acked.Store(int64(b + 1))
			if b == 20 || b == 40 {
				until(t, "a commit", func() bool { return commits.Load() >= int64(b/20) || t.Failed() })
			}
		}
		until(t, "two commits and some reads", func() bool { return commits.Load() >= 2 && reads.Load() >= 8 || t.Failed() })
		close(stop)
		others.Wait()
		commit(t, writer)
		require.Equal(t, []string{"0:300"}, ends(t, table, 0))
		require.Zero(t, stats(t, table).UsedBytes)
		require.NoError(t, writer.Close(ctx))
	})
}

// CON-04: writing goes on while files of a prepare are being written.
func TestWritesDuringASlowFlush(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.Create && strings.Contains(op.Name, "data-") {
			once.Do(func() { close(reached); <-goOn })
		}
		return fault.Decision{}
	}})
	answer := make(chan tideline.Prepared, 1)
	go func() {
		p, err := writer.PrepareCommit(context.Background())
		if err != nil {
			t.Error(err)
		}
		answer <- p
	}()
	<-reached
	require.NoError(t, insist(t.Context(), writer, rows(t, 2, "b")), "the cut may not have returned yet")
	require.Equal(t, []string{"1=a", "2=b"}, read(t, table.Scan()))
	close(goOn)
	p := <-answer
	require.EqualValues(t, 1, p.Rows)
	publish(t, table, p)
	require.EqualValues(t, 1, prepare(t, writer).Rows, "the next segment holds it")
	require.NoError(t, writer.Close(t.Context()))
}

// CON-05: a plan does not see a partition that appears later.
func TestPlanExcludesALaterBucket(t *testing.T) {
	w := newWorld(t, tideline.Definition{Columns: regional, PrimaryKey: []string{"region", "id"}, PartitionBy: []string{"region"}})
	table, writer := w.session()
	_, err := writer.Write(t.Context(), fromJSON(t, regional, `[{"region":"a","id":1}]`))
	require.NoError(t, err)
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	_, err = writer.Write(t.Context(), fromJSON(t, regional, `[{"region":"b","id":1},{"region":"a","id":2}]`))
	require.NoError(t, err)
	r, err := table.ReadSplits(t.Context(), plan.Splits...)
	require.NoError(t, err)
	require.Equal(t, []string{"a=1=(null)"}, drain(t, r))
	require.Len(t, read(t, table.Scan()), 3)
	require.NoError(t, writer.Discard(t.Context()))
}

// CON-06: refreshes side by side end at the newest snapshot.
func TestParallelRefreshes(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	for i := range 3 {
		put(t, writer, i, "x")
		publish(t, table, prepare(t, writer))
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if err := table.Refresh(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 3, stats(t, table).AdoptedSnapshot)
	require.Zero(t, stats(t, table).UsedBytes)
}

// A second goroutine on the writer is refused by name, and so is a position then.
func TestWriterServesOneGoroutine(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session(func(o *tideline.Options) { o.MemoryBytesMax = 1 })
	put(t, writer, 1, "a") // a single batch may exceed the budget
	p := prepare(t, writer)
	waiting := make(chan error, 1)
	batch := rows(t, 2, "b")
	go func() { waiting <- insist(context.Background(), writer, batch) }()
	until(t, "the writer is taken", func() bool {
		_, err := writer.PrepareCommit(t.Context(), tideline.Position([]byte("p")))
		if err == nil { // the other goroutine is not there yet
			return false
		}
		require.ErrorIs(t, err, tideline.ErrInvalid)
		return true
	})
	_, err := writer.Write(t.Context(), rows(t, 3, "c"))
	require.ErrorIs(t, err, tideline.ErrInvalid)
	require.ErrorIs(t, writer.Close(t.Context()), tideline.ErrInvalid)
	publish(t, table, p)
	require.NoError(t, table.Refresh(t.Context()))
	require.NoError(t, <-waiting)
	commit(t, writer)
	require.Equal(t, []string{"1=a", "2=b"}, read(t, committed(table)))
	require.NoError(t, writer.Close(t.Context()))
}

// Memory is bounded: Try and a write that nothing can help are refused at once,
// and the writer stays usable.
func TestMemoryBudget(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session(func(o *tideline.Options) { o.MemoryBytesMax = 1 })
	put(t, writer, 1, "a")
	_, err := writer.Write(t.Context(), rows(t, 2, "b"), tideline.Try())
	require.ErrorIs(t, err, tideline.ErrOverloaded)
	_, err = writer.Write(t.Context(), rows(t, 2, "b"))
	require.ErrorIs(t, err, tideline.ErrOverloaded, "nothing in flight can free memory")
	require.Equal(t, []string{"1=a"}, read(t, table.Scan()))
	commit(t, writer)
	put(t, writer, 2, "b")
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	commit(t, writer)
	s := stats(t, table)
	require.Positive(t, s.PinnedBytes)
	require.Equal(t, s.PinnedBytes, s.UsedBytes)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	batch := rows(t, 3, "c")
	go func() { answer <- insist(ctx, writer, batch) }()
	until(t, "the write waits", func() bool {
		_, err := writer.Write(t.Context(), rows(t, 4, "d"), tideline.Try())
		return errors.Is(err, tideline.ErrInvalid)
	})
	cancel()
	require.ErrorIs(t, <-answer, context.Canceled)
	plan.Close(t.Context())
	require.Zero(t, stats(t, table).UsedBytes, "the bytes of a cancelled wait come back as well")
	put(t, writer, 3, "c")
	commit(t, writer)
	require.Equal(t, []string{"1=a", "2=b", "3=c"}, read(t, table.Scan()))
}

// A failed commit answers a write that waited for the memory it would have freed.
func TestFailedCommitEndsTheWaitForMemory(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session(func(o *tideline.Options) { o.MemoryBytesMax = 1 })
	put(t, writer, 1, "a")
	p := prepare(t, writer)
	answer := make(chan error, 1)
	batch := rows(t, 2, "b")
	go func() { answer <- insist(context.Background(), writer, batch) }()
	until(t, "the write waits", func() bool {
		_, err := writer.Write(t.Context(), rows(t, 4, "d"), tideline.Try())
		return errors.Is(err, tideline.ErrInvalid)
	})
	w.io.SetPlan(fault.FailFrom(0))
	_, err := table.Commit(t.Context(), p)
	require.ErrorIs(t, err, fault.ErrInjected)
	require.ErrorIs(t, <-answer, tideline.ErrPoisoned)
	w.io.SetPlan(fault.Plan{})
	publish(t, table, p)
}

// Background commits by bytes, by time and by a full memory; no call of the writer.
func TestAutoCommit(t *testing.T) {
	cases := map[string]tideline.Options{
		"bytes":       {AutoCommit: tideline.AutoCommit{Bytes: 1}},
		"interval":    {AutoCommit: tideline.AutoCommit{Interval: time.Millisecond}},
		"full memory": {AutoCommit: tideline.AutoCommit{Bytes: 1 << 40}, MemoryBytesMax: 1},
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keyed())
			done := make(chan error, 64)
			table, writer := w.session(func(own *tideline.Options) {
				own.AutoCommit, own.MemoryBytesMax = o.AutoCommit, o.MemoryBytesMax
				own.AutoCommit.Done = func(_ tideline.Commit, _ time.Duration, err error) {
					select {
					case done <- err:
					default:
					}
				}
			})
			events := table.Subscribe()
			put(t, writer, 1, "a")
			if name == "full memory" {
				put(t, writer, 2, "b")
			}
			require.NoError(t, <-done)
			event := <-events.Events()
			require.EqualValues(t, 1, event.Snapshot.ID)
			require.EqualValues(t, 1, event.Rows)
			require.NoError(t, table.Failure())
			require.Contains(t, read(t, committed(table)), "1=a")
			if name == "full memory" {
				commit(t, writer)
			}
			require.NoError(t, writer.Close(t.Context()))
			require.NoError(t, table.Close(t.Context()))
			for range events.Events() { // closed with the session
			}
		})
	}
}

// Fan-in is bounded: many small batches become few runs.
func TestConsolidationBoundsTheFanIn(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		const batches, size = 400, 70
		for b := range batches {
			pairs := make([]any, 0, 2*size)
			for i := range size {
				pairs = append(pairs, (b*31+i*7)%1000, "n")
			}
			put(t, writer, pairs...)
		}
		until(t, "runs are merged", func() bool { return stats(t, table).Buckets[0].Runs <= 100 })
		got := read(t, table.Scan())
		if len(def.PrimaryKey) > 0 {
			require.Len(t, got, 1000)
		} else {
			require.Len(t, got, batches*size)
		}
		require.NoError(t, writer.Discard(t.Context()))
	})
}

// Close while writes, reads and commits are under way: everybody is answered.
func TestCloseUnderLoad(t *testing.T) {
	for range 20 {
		w := newWorld(t, keyed())
		table := w.open()
		writer, err := table.Writer(t.Context())
		require.NoError(t, err)
		var all sync.WaitGroup
		began := make(chan struct{}, 8)
		loop := func(do func() error) {
			all.Go(func() {
				for first := true; ; first = false {
					if err := do(); err != nil {
						if !errors.Is(err, tideline.ErrClosed) && !errors.Is(err, tideline.ErrPoisoned) {
							t.Error(err)
						}
						if first {
							began <- struct{}{}
						}
						return
					}
					if first {
						began <- struct{}{}
					}
				}
			})
		}
		batch := rows(t, 1, "a", 2, "b")
		loop(func() error { _, err := writer.Write(context.Background(), batch); return err })
		loop(func() error {
			_, err := writer.PrepareCommit(context.Background(), tideline.BetweenWrites())
			return err
		})
		loop(func() error {
			r, err := table.Scan().Read(context.Background())
			if err == nil {
				for r.Next() {
				}
				err = r.Err()
				r.Release()
			}
			return err
		})
		loop(func() error {
			_, err := table.Stats(context.Background())
			return errors.Join(err, table.Refresh(context.Background()))
		})
		for range 4 {
			<-began
		}
		require.NoError(t, table.Close(context.Background()))
		all.Wait()
	}
}

// Giving up the wait for a writer does not lose the lease.
func TestCancelledWriterGivesTheLeaseBack(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	require.NoError(t, writer.Close(t.Context()))
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if writer, err := table.Writer(ctx); err == nil {
			require.NoError(t, writer.Close(t.Context()))
		} else {
			require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, tideline.ErrInvalid), "%v", err)
		}
	}
	until(t, "the lease is free", func() bool {
		writer, err := table.Writer(t.Context())
		if err != nil {
			return false
		}
		return writer.Close(t.Context()) == nil
	})
}
