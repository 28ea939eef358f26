package tideline_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs/fault"
)

// gate holds the first operation that match selects until it is opened, and then
// lets it end with what decide says.
type gate struct {
	reached, open chan struct{}
	taken         atomic.Bool
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

// hold is for the hook of a fault plan; true for the operation that was held.
func (g *gate) hold() bool {
	if !g.taken.CompareAndSwap(false, true) {
		return false
	}
	close(g.reached)
	<-g.open
	return true
}

// Splits of a plan from before the session can be read together with later ones.
func TestSplitsFromBeforeTheSession(t *testing.T) {
	w := newWorld(t, keyed("bucket", "2"))
	table := w.open()
	other, writer := w.session(user("other"))
	put(t, writer, 1, "a", 2, "b", 3, "c", 4, "d")
	commit(t, writer)
	require.NoError(t, writer.Close(t.Context()))
	require.NoError(t, other.Close(t.Context()))
	before, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, before.Splits)
	own, err := table.Writer(t.Context())
	require.NoError(t, err)
	put(t, own, 1, "x", 2, "y", 3, "z", 4, "w")
	after, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	splits := append([]tideline.Split{before.Splits[0]}, after.Splits...)
	r, err := table.ReadSplits(t.Context(), splits...)
	require.NoError(t, err)
	require.NotEmpty(t, drain(t, r))
	require.NoError(t, own.Discard(t.Context()))
}

// Any number of cuts that nobody waits for leaves the writer working.
func TestManyCancelledCuts(t *testing.T) {
	w := newWorld(t, keyed("bucket", "4"))
	table, writer := w.session()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 8 {
		put(t, writer, i, "a")
		for range 3000 {
			_, err := writer.PrepareCommit(gone, tideline.BetweenWrites())
			require.Error(t, err)
		}
	}
	done := make(chan error, 1)
	go func() {
		_, err := writer.Commit(context.Background())
		done <- err
	}()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the commit hangs")
	}
	require.Len(t, read(t, table.Scan()), 8)
}

// A background commit that fails answers the write that waits for its memory, and
// the next one makes up for it.
func TestFailedBackgroundCommitEndsTheWaitForMemory(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session(func(o *tideline.Options) {
		o.MemoryBytesMax = 1
		o.AutoCommit = tideline.AutoCommit{Bytes: 1 << 40}
	})
	put(t, writer, 1, "a")
	var published atomic.Bool
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.CreateIfAbsent && strings.Contains(op.Name, "/snapshot-") {
			published.Store(true)
		} else if published.Load() && op.Kind == fault.Open {
			return fault.Decision{Action: fault.Fail}
		}
		return fault.Decision{}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := writer.Write(ctx, rows(t, 2, "b"))
	require.ErrorIs(t, err, tideline.ErrOverloaded)
	require.ErrorIs(t, err, fault.ErrInjected)
	require.True(t, published.Load())
	w.io.SetPlan(fault.Plan{})
	put(t, writer, 2, "b")
	require.Equal(t, []string{"1=a", "2=b"}, read(t, table.Scan()))
	commit(t, writer)
}

// Closing an old writer again leaves the background commits of the next one alone.
func TestClosingTwiceKeepsTheBackgroundCommits(t *testing.T) {
	w := newWorld(t, keyed())
	done := make(chan error, 8)
	table, first := w.session(func(o *tideline.Options) {
		o.AutoCommit = tideline.AutoCommit{Bytes: 1, Done: func(_ tideline.Commit, _ time.Duration, err error) { done <- err }}
	})
	require.NoError(t, first.Close(t.Context()))
	second, err := table.Writer(t.Context())
	require.NoError(t, err)
	require.NoError(t, first.Close(t.Context()))
	put(t, second, 1, "a")
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("no background commit")
	}
}

// A table may be closed while writes trigger background commits.
func TestCloseUnderBackgroundCommits(t *testing.T) {
	for range 30 {
		w := newWorld(t, keyed())
		table, writer := w.session(func(o *tideline.Options) {
			o.AutoCommit = tideline.AutoCommit{Bytes: 1, Interval: 50 * time.Microsecond}
		})
		batch := rows(t, 1, "a")
		began, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			for first := true; ; first = false {
				if _, err := writer.Write(context.Background(), batch); err != nil {
					ended <- err
					return
				}
				if first {
					close(began)
				}
			}
		}()
		<-began
		require.NoError(t, table.Close(context.Background()))
		require.ErrorIs(t, <-ended, tideline.ErrClosed)
	}
}

// A bucket that appears while a foreign snapshot is adopted continues after the
// sequence numbers of its rows.
func TestBucketSpawnedDuringAnAdoption(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	// The restore of the bucket reads the newest snapshot; held behind that, it
	// misses the foreign rows that are adopted meanwhile.
	w.add(0, 5, "before")
	reading := newGate()
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.Open && strings.Contains(op.Name, "/manifest/") {
			reading.hold()
		}
		return fault.Decision{}
	}})
	answer := make(chan error, 1)
	batch := rows(t, 1, "ours")
	go func() {
		_, err := writer.Write(context.Background(), batch)
		answer <- err
	}()
	<-reading.reached
	w.add(40, 1, "foreign")
	require.NoError(t, table.Refresh(t.Context()))
	close(reading.open)
	require.NoError(t, <-answer)
	require.Equal(t, []string{"1=ours", "5=before"}, read(t, table.Scan()))
	commit(t, writer)
}
