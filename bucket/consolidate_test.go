package bucket

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizeClassesAreAFactorOf32Apart(t *testing.T) {
	for class, first := range map[int]int{0: 1, 1: 1024, 2: 32768, 3: 1 << 20} {
		require.Equal(t, class, classOf(first))
		if first > 1 {
			require.Equal(t, class-1, classOf(first-1))
		}
	}
	require.Less(t, classOf(math.MaxInt32), classCount)
}

func TestFanInStaysBounded(t *testing.T) {
	for name, table := range map[string]*Table{"append": plain(t), "pk": keyed(t)} {
		for _, rows := range []int{1, 64, 500} {
			t.Run(fmt.Sprint(name, rows), func(t *testing.T) {
				s := newState(table)
				p := prepare(t, table, bigBatch(0, rows), nil, nil).Parts[0]
				most := 0
				const batches = 1000
				for i := range batches {
					require.NoError(t, s.Append(p, int64(i)))
					consolidate(t, s, int64(i))
					most = max(most, s.Describe().Runs)
				}
				require.LessOrEqual(t, most, 4*FanInMax)
				if !table.IsPrimaryKey() {
					require.Len(t, visible(t, s.View(), 0, batches), batches*rows)
				}
			})
		}
	}
}

func TestConsolidationStaysAtTheFrontier(t *testing.T) {
	s := newState(keyed(t))
	for i := range 50 {
		write(t, s, int64(i), bigBatch(i, 64), nil, nil)
	}
	require.Nil(t, s.Consolidation(31, true), "33 runs would be merged, 32 are not")
	job := s.Consolidation(34, true)
	require.Len(t, job.inputs, 35)
	old := s.View()
	r, err := job.Run(context.Background(), nil)
	require.NoError(t, err)
	require.True(t, s.Consolidated(r))
	require.False(t, s.Consolidated(r), "only once")
	require.Equal(t, 64+34, r.Rows(), "one row a key")
	v := s.View()
	require.EqualValues(t, 34, v.ConsolidatedTo)
	_, err = v.Runs(0, 33)
	require.ErrorIs(t, err, ErrRetryPlan)
	_, err = v.Runs(0, 34)
	require.NoError(t, err)
	runs, err := old.Runs(0, 33)
	require.NoError(t, err)
	require.Len(t, runs, 34)
	require.EqualValues(t, math.MinInt64, old.ConsolidatedTo)
	runs, err = v.Runs(0, -1)
	require.NoError(t, err)
	require.Empty(t, runs)
}

func TestAResultIsIgnoredWhenItsSegmentIsGone(t *testing.T) {
	s := newState(keyed(t))
	for i := range 40 {
		write(t, s, int64(i), bigBatch(0, 64), nil, nil)
	}
	job := s.Consolidation(100, true)
	s.Seal(101)
	s.Reclaim(40 * 64)
	r, err := job.Run(context.Background(), nil)
	require.NoError(t, err)
	require.False(t, s.Consolidated(r))
	require.False(t, s.Consolidated(nil))
	require.Zero(t, s.Describe().Runs)
}

func TestAnAbandonedJobCanBeTakenAgain(t *testing.T) {
	s := newState(keyed(t))
	for i := range 40 {
		write(t, s, int64(i), bigBatch(0, 64), nil, nil)
	}
	job := s.Consolidation(100, true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := job.Run(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, s.Consolidation(100, true))
	s.Abandon(job)
	require.NotNil(t, s.Consolidation(100, true))
}

func TestWhatAPrepareTookIsNotConsolidated(t *testing.T) {
	s := newState(keyed(t))
	for i := range 40 {
		write(t, s, int64(i), bigBatch(0, 64), nil, nil)
	}
	s.Seal(41)
	require.NotNil(t, s.Consolidation(100, true))
	s.Abandon(s.job)
	s.TakePrepare()
	require.Nil(t, s.Consolidation(100, true))
}

func TestAWrittenBucketIsMergedOnlyWhenItMust(t *testing.T) {
	s := newState(keyed(t))
	for i := range FanInMax + 1 {
		require.False(t, s.Crowded())
		write(t, s, int64(i), bigBatch(i, 64), nil, nil)
	}
	require.True(t, s.Crowded())
	require.Nil(t, s.Consolidation(math.MaxInt64, false))
	for i := FanInMax + 1; i <= FanInForced; i++ {
		write(t, s, int64(i), bigBatch(i, 64), nil, nil)
	}
	require.Len(t, s.Consolidation(math.MaxInt64, false).inputs, FanInForced+1)
}

// A segment may be committed alone, so rows of two never meet in one run.
func TestConsolidationStaysInsideASegment(t *testing.T) {
	s := newState(keyed(t))
	for i := range 32 {
		write(t, s, int64(i), bigBatch(0, 64), nil, nil)
	}
	s.Seal(33)
	for i := range 32 {
		write(t, s, int64(i+40), bigBatch(0, 64), nil, nil)
	}
	require.Nil(t, s.Consolidation(100, true))
}

func TestDeletesSurviveConsolidation(t *testing.T) {
	s := newState(keyed(t))
	kinds := make([]int8, 64)
	for i := range kinds {
		kinds[i] = int8(i % 4)
	}
	for i := range FanInMax + 1 {
		write(t, s, int64(i), bigBatch(0, 64), kinds, nil)
	}
	require.Equal(t, 1, consolidate(t, s, 100))
	got := visible(t, s.View(), 0, 100)
	require.Len(t, got, 64)
	require.Equal(t, "2111 3 0|63|s63", got[0])
	require.Equal(t, "2110 2 1|62|s62", got[1])
	require.Equal(t, retained(s), s.Describe().BuildingBytes)
}
