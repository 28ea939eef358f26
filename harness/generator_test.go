package harness

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMixIsSplitmix64(t *testing.T) {
	// The first outputs of the published generator with seed 1234567.
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821}
	for i, w := range want {
		require.Equal(t, w, Mix(1234567+uint64(i)*0x9e3779b97f4a7c15))
	}
}

func TestZetaExpansionIsTheSum(t *testing.T) {
	sum := 0.0
	for n := uint64(1); n <= 100_000; n++ {
		sum += math.Pow(float64(n), -zipfTheta)
		if n < 200 || n%9973 == 0 {
			require.InDelta(t, sum, zeta(n), 1e-9, "n=%d", n)
		}
	}
}

func TestZipfRanksHaveTheirFrequencies(t *testing.T) {
	const n, draws = 1000, 400_000
	counts := make([]int, n)
	for i := range uint64(draws) {
		counts[zipfRank(Mix(i), n)]++
	}
	for rank, tolerance := range map[int]float64{0: 0.02, 1: 0.02, 9: 0.15, 99: 0.2} {
		want := draws * math.Pow(float64(rank+1), -zipfTheta) / zeta(n)
		require.InEpsilon(t, want, counts[rank], tolerance, "rank %d", rank)
	}
	for _, small := range []uint64{1, 2, 3} {
		for i := range uint64(1000) {
			require.Less(t, zipfRank(Mix(i), small), small)
		}
	}
}

func TestGeneratorSharesOfKinds(t *testing.T) {
	for _, keys := range []Keys{KeysRandom, KeysZipf, KeysAppend, KeysHot} {
		g := NewGenerator(Profile{Seed: 11, Keys: keys, Updates: 0.2, Deletes: 0.05})
		counts := map[tideline.RowKind]float64{}
		const n = 100_000
		for range n {
			before := g.Distinct()
			number, kind := g.Next()
			counts[kind]++
			if kind == tideline.Insert {
				require.Equal(t, before, number)
			} else {
				require.Less(t, number, before)
			}
		}
		require.InDelta(t, 0.75*n, counts[tideline.Insert], 600, keys)
		require.InDelta(t, 0.20*n, counts[tideline.UpdateAfter], 600, keys)
		require.InDelta(t, 0.05*n, counts[tideline.Delete], 400, keys)
	}
}

func TestHotUpdatesHitTheNewestKeys(t *testing.T) {
	g := NewGenerator(Profile{Seed: 3, Keys: KeysHot, Updates: 0.5})
	hot, updates := 0.0, 0.0
	for range 200_000 {
		d := g.Distinct()
		number, kind := g.Next()
		if kind == tideline.UpdateAfter && d > 10_000 {
			updates++
			if number >= d-d/hotShare {
				hot++
			}
		}
	}
	require.InDelta(t, 0.901, hot/updates, 0.01)
}

func TestSkipStandsWhereDrawingStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Profile{
			Seed: rapid.Uint64().Draw(t, "seed"), Keys: rapid.SampledFrom([]Keys{KeysRandom, KeysZipf, KeysAppend, KeysHot}).Draw(t, "keys"),
			Updates: float64(rapid.IntRange(0, 60).Draw(t, "updates")) / 100, Deletes: float64(rapid.IntRange(0, 40).Draw(t, "deletes")) / 100,
		}
		require.NoError(t, p.Check())
		drawn, skipped := NewGenerator(p), NewGenerator(p)
		n := rapid.IntRange(0, 300).Draw(t, "rows")
		for range n {
			drawn.Next()
		}
		skipped.Skip(n)
		require.Equal(t, drawn, skipped)
	})
}

func TestJobsMakeTheSameRowsInAnyOrder(t *testing.T) {
	for _, kind := range []Kind{T1, T2, T3, AppendTable} {
		l := Load{Kind: kind, Total: 5500, Batch: 700, Buckets: 1, Profile: Profile{Seed: 5, Keys: KeysZipf, Updates: 0.3, Deletes: 0.1}}
		require.NoError(t, l.Check())
		jobs := func() (out []Job) {
			f, err := l.Feed()
			require.NoError(t, err)
			for {
				job, err := f.Next()
				require.NoError(t, err)
				if job == nil {
					return out
				}
				out = append(out, job)
			}
		}
		forward, backward := jobs(), jobs()
		require.Len(t, forward, 8)
		made := make([]*Batch, len(backward))
		for i := len(backward) - 1; i >= 0; i-- {
			var err error
			made[i], err = backward[i]()
			require.NoError(t, err)
		}
		total, markers := int64(0), 0
		for i, job := range forward {
			b, err := job()
			require.NoError(t, err)
			require.True(t, array.RecordEqual(b.Record, made[i].Record), "%s batch %d", kind, i)
			require.Equal(t, b.Kinds, made[i].Kinds)
			total += b.Record.NumRows()
			if b.Watch != nil {
				markers++
			}
		}
		require.EqualValues(t, 5500, total)
		require.Equal(t, 5, markers, "one in each whole thousand")
	}
}

func TestKeysOfTheTables(t *testing.T) {
	fill := func(kind Kind, keys Keys, n uint64) arrow.RecordBatch {
		r := newRows(kind, Profile{Seed: 1, Keys: keys}, int(n))
		defer r.release()
		for i := range n {
			r.add(i, i)
		}
		r.marker(7, n)
		return r.record()
	}
	for _, keys := range []Keys{KeysRandom, KeysAppend} {
		seen := map[string]bool{}
		column := fill(T2, keys, 20_000).Column(0).(*array.String)
		for i := range 20_000 {
			key := column.Value(i)
			require.True(t, len(key) >= 24 && len(key) <= 48, key)
			require.Equal(t, t2Prefix, key[:16])
			require.False(t, seen[key])
			seen[key] = true
			if keys == KeysAppend && i > 0 {
				require.Greater(t, key, column.Value(i-1))
			}
		}
		require.Less(t, column.Value(20_000), t2Prefix, "a marker lies before all keys")
	}
	t1 := fill(T1, KeysRandom, 10).Column(0).(*array.Int64)
	require.EqualValues(t, Mix(3)>>1, t1.Value(3))
	require.EqualValues(t, -8, t1.Value(10))
	t3 := fill(T3, KeysRandom, 1000)
	require.Len(t, t3.Column(1).(*array.String).Value(999), 12)
	require.Less(t, t3.Column(0).(*array.Int32).Value(999), int32(Tenants))
	require.EqualValues(t, -1, t3.Column(0).(*array.Int32).Value(1000))
	require.Greater(t, t2Marker(1), t2Marker(2))
	require.Greater(t, t3Marker(1), t3Marker(2))
}

func TestProfilesThatMakeNoSenseAreRefused(t *testing.T) {
	for _, p := range []Profile{
		{Keys: "sorted"}, {Keys: KeysRandom, Updates: 0.9, Deletes: 0.2}, {Keys: KeysRandom, Updates: -0.1}, {Keys: KeysHot, Deletes: math.NaN()},
	} {
		require.Error(t, p.Check(), "%+v", p)
	}
}
