package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

func load(kind Kind, rows int64, batch, buckets int, keys Keys) Load {
	return Load{Kind: kind, Total: rows, Batch: batch, Buckets: buckets, Profile: Profile{Seed: 7, Keys: keys, Updates: 0.2, Deletes: 0.05}}
}

func TestEveryKindOfTableIsVerified(t *testing.T) {
	for name, c := range map[string]Config{
		"t1 by rows":      {Source: load(T1, 20_000, 500, 2, KeysRandom), Writers: 2, Readers: 2, CommitRows: 3000},
		"t1 by interval":  {Source: load(T1, 20_000, 500, 1, KeysHot), Readers: 1, CommitInterval: 10 * time.Millisecond},
		"t1 small writes": {Source: load(T1, 5_000, 1, 2, KeysZipf), Writers: 2, Readers: 1, CommitRows: 2000},
		"t2":              {Source: load(T2, 10_000, 300, 3, KeysZipf), Readers: 1, CommitRows: 2500},
		"t3":              {Source: load(T3, 10_000, 7, 1, KeysAppend), Writers: 3, Readers: 1, CommitRows: 4000},
		"append":          {Source: load(AppendTable, 10_000, 300, 2, KeysRandom), Readers: 1, CommitRows: 2500},
		"one commit":      {Source: load(T1, 3_000, 300, 2, KeysRandom), Readers: 1},
		"no readers":      {Source: load(T1, 3_000, 300, 2, KeysRandom), CommitRows: 1000},
		"little memory":   {Source: load(T1, 50_000, 1000, 1, KeysRandom), Readers: 1, CommitRows: 1 << 40, MemoryBytesMax: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			c.Dir, c.Seed = t.TempDir(), 7
			r, err := Run(t.Context(), c)
			require.NoError(t, err)
			require.True(t, r.Verified)
			require.Equal(t, c.Source.Rows(), r.Rows)
			require.Positive(t, r.Snapshots)
			require.Positive(t, r.Files)
			require.GreaterOrEqual(t, r.Reads, int64(2*min(1, c.Readers)+1))
			require.Contains(t, r.String(), "verified")
			require.DirExists(t, filepath.Join(c.Dir, "sim.db", "load", "snapshot"))
			state := NewState(c.Source.Definition().PrimaryKey == nil)
			require.NoError(t, replay(c.Source, layoutOf(c.Source.Definition()), 1<<40, func(_ int64, _ *Batch, changes []Change) { state.Apply(changes) }))
			require.Equal(t, state.Digest(), r.Final)
		})
	}
}

func TestTheSameSeedEndsInTheSameState(t *testing.T) {
	run := func(writers, readers int) Digest {
		r, err := Run(t.Context(), Config{Source: load(T1, 10_000, 400, 2, KeysZipf), Dir: t.TempDir(), Writers: writers, Readers: readers, CommitRows: int64(1000 * writers)})
		require.NoError(t, err)
		return r.Final
	}
	require.Equal(t, run(1, 0), run(3, 2))
}

func TestAWrongReadIsReported(t *testing.T) {
	var reads atomic.Int64
	drop := func(b arrow.RecordBatch) arrow.RecordBatch {
		if b.NumCols() == 0 || reads.Add(1) < 5 { // a count has no rows to explain
			return b
		}
		defer b.Release()
		return b.NewSlice(1, b.NumRows())
	}
	alter := func(b arrow.RecordBatch) arrow.RecordBatch {
		if b.NumCols() == 0 || b.NumRows() < 2 {
			return b
		}
		defer b.Release()
		shifted := make([]arrow.Array, b.NumCols())
		short := b.NewSlice(0, b.NumRows()-1)
		defer short.Release()
		for i, c := range short.Columns() {
			shifted[i] = c
		}
		next := b.NewSlice(1, b.NumRows())
		defer next.Release()
		shifted[1] = next.Column(1) // every row has the payload of the next one
		return array.NewRecordBatch(b.Schema(), shifted, b.NumRows()-1)
	}
	for name, tamper := range map[string]func(arrow.RecordBatch) arrow.RecordBatch{"drop": drop, "alter": alter} {
		for _, readers := range []int{0, 2} {
			reads.Store(0)
			if readers == 0 {
				reads.Store(10)
			}
			r, err := Run(t.Context(), Config{Source: load(T1, 20_000, 500, 1, KeysRandom), Dir: t.TempDir(), Seed: 7, Readers: readers, CommitRows: 5000, Tamper: tamper})
			var m *Mismatch
			require.True(t, errors.As(err, &m), "%s: %v", name, err)
			require.False(t, r.Verified)
			require.Equal(t, m, r.Mismatch)
			require.EqualValues(t, 7, m.Seed)
			require.Positive(t, m.Frontier)
			require.NotEmpty(t, m.Diffs)
			require.Contains(t, m.Diffs[0].Key, "k=")
			require.Contains(t, r.String(), "failed")
			if name == "alter" {
				require.Equal(t, "row differs", m.Diffs[0].Problem)
				require.NotEqual(t, m.Diffs[0].Want, m.Diffs[0].Got)
				require.NotEmpty(t, m.Diffs[0].History)
			}
		}
	}
}

func TestAnInterruptedRunVerifiesWhatItWrote(t *testing.T) {
	interrupt, cancel := context.WithCancel(t.Context())
	source := load(T1, 0, 100, 2, KeysRandom) // without end
	r, err := Run(t.Context(), Config{Source: source, Dir: t.TempDir(), Readers: 1, CommitRows: 1000, Interrupt: interrupt, Progress: func(p Progress) {
		if p.Rows > 2000 {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.True(t, r.Interrupted && r.Verified)
	require.Greater(t, r.Rows, int64(2000))
}

func TestADurationEndsTheWriting(t *testing.T) {
	r, err := Run(t.Context(), Config{Source: load(T2, 0, 100, 1, KeysRandom), Dir: t.TempDir(), Readers: 1, CommitInterval: 20 * time.Millisecond, Duration: 200 * time.Millisecond})
	require.NoError(t, err)
	require.True(t, r.Verified && !r.Interrupted)
	require.Positive(t, r.Rows)
}

func TestRunsThatCannotBeginAreRefused(t *testing.T) {
	source := load(T1, 100, 10, 1, KeysRandom)
	for name, c := range map[string]Config{
		"no source":        {Dir: t.TempDir()},
		"no directory":     {Source: source},
		"two ways":         {Source: source, Dir: t.TempDir(), CommitRows: 1, CommitInterval: time.Second},
		"negative readers": {Source: source, Dir: t.TempDir(), Readers: -1},
	} {
		_, err := Run(t.Context(), c)
		require.Error(t, err, name)
	}
	dir := t.TempDir()
	_, err := Run(t.Context(), Config{Source: source, Dir: dir})
	require.NoError(t, err)
	_, err = Run(t.Context(), Config{Source: source, Dir: dir})
	require.ErrorIs(t, err, os.ErrExist, "a table is there already")
}

func TestABatchThatTheTableRefusesEndsTheRun(t *testing.T) {
	source := listed{key: []string{"k"}, batches: []func() *Batch{
		func() *Batch { return &Batch{Record: pairBatch(1, "a")} },
		func() *Batch { return &Batch{Record: pairBatch(1, "a"), Kinds: []tideline.RowKind{9}} },
	}}
	r, err := Run(t.Context(), Config{Source: source, Dir: t.TempDir(), Readers: 1})
	require.ErrorIs(t, err, tideline.ErrInvalid)
	require.EqualValues(t, 1, r.Rows)
}
