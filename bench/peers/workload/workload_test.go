package workload

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
)

// TestHashesAgreeWithTheOtherGenerators compares with what the generators in Java,
// Python and the control kernel computed for the last version of each key.
func TestHashesAgreeWithTheOtherGenerators(t *testing.T) {
	for _, c := range []struct {
		table string
		rows  int
		keys  int64
		hash  string
	}{
		{"T1", 200_000, 160303, "5cc045fed2e4b703"},
		{"T1", 1_000_000, 800697, "71f2df1261d74000"},
		{"T4", 1_000_000, 800697, "bdf20e4dff26d118"},
	} {
		table, err := Named(c.table)
		require.NoError(t, err)
		g := NewGenerator(table, 7)
		last := map[int64]uint64{}
		for range c.rows / 1000 {
			b := g.Batch(1000)
			for i := range 1000 {
				k, h := table.row(b, i)
				last[k] = h
			}
		}
		var sum uint64
		for k, h := range last {
			sum += Mix(uint64(k)) ^ Mix(h)
		}
		require.Equal(t, c.hash, fmt.Sprintf("%016x", sum))
		require.EqualValues(t, c.keys, len(last))
	}
}

func TestHashTellsOrder(t *testing.T) {
	table, err := Named("T1")
	require.NoError(t, err)
	b := NewGenerator(table, 7).Batch(2)
	up := b.Column(0).(*array.Int64)
	first, second := b.NewSlice(0, 1), b.NewSlice(1, 2)
	if up.Value(0) > up.Value(1) {
		first, second = second, first
	}
	require.True(t, table.Hash([]arrow.RecordBatch{first, second}).Ordered)
	require.False(t, table.Hash([]arrow.RecordBatch{second, first}).Ordered)
}
