package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/row"
)

func deleted(e manifest.Entry) manifest.Entry {
	e.Kind = manifest.Delete
	return e
}

func TestLiveIgnoresTheOrderOfAddAndDelete(t *testing.T) {
	a, b := sample(t, 1), sample(t, 2)
	for _, entries := range [][]manifest.Entry{
		{a, b, deleted(a)},
		{deleted(a), a, b},
		{a, deleted(a), deleted(sample(t, 3)), b},
	} {
		live, err := manifest.Live(entries)
		require.NoError(t, err)
		require.Equal(t, []manifest.Entry{b}, live)
	}
	_, err := manifest.Live([]manifest.Entry{a, b, a})
	require.ErrorIs(t, err, errs.ErrCorrupt)
}

func TestLiveKeepsTheFileThatMovedToAnotherLevel(t *testing.T) {
	low := sample(t, 6)
	high := low
	high.File.Level = 5
	require.Zero(t, low.File.Level)
	live, err := manifest.Live([]manifest.Entry{low, deleted(low), high})
	require.NoError(t, err)
	require.Equal(t, []manifest.Entry{high}, live)
}

func TestMergeDropsPairsAndKeepsUnmatchedDeletes(t *testing.T) {
	a, b, c := sample(t, 1), sample(t, 2), sample(t, 3)
	in := [][]manifest.Entry{{a, deleted(c)}, {b, deleted(a)}}
	merged, err := manifest.Merge(in...)
	require.NoError(t, err)
	require.Equal(t, []manifest.Entry{deleted(c), b}, merged)
	require.Equal(t, []manifest.Entry{a, deleted(c)}, in[0], "the input is left alone")
	_, err = manifest.Merge([]manifest.Entry{a}, []manifest.Entry{a})
	require.ErrorIs(t, err, errs.ErrCorrupt)
}

func TestIdentityHasSevenParts(t *testing.T) {
	base := sample(t, 1)
	for name, change := range map[string]func(*manifest.Entry){
		"partition":      func(e *manifest.Entry) { e.Partition = intRow(t, int32(99)) },
		"bucket":         func(e *manifest.Entry) { e.Bucket++ },
		"level":          func(e *manifest.Entry) { e.File.Level++ },
		"file name":      func(e *manifest.Entry) { e.File.Name += "x" },
		"extra files":    func(e *manifest.Entry) { e.File.ExtraFiles = []string{"x"} },
		"embedded index": func(e *manifest.Entry) { e.File.EmbeddedIndex = []byte{} },
		"external path":  func(e *manifest.Entry) { e.File.ExternalPath = ptr("") },
	} {
		other := base
		change(&other)
		require.NotEqual(t, manifest.Identity(base), manifest.Identity(other), name)
	}
	for name, change := range map[string]func(*manifest.Entry){
		"kind": func(e *manifest.Entry) { e.Kind = manifest.Delete },
		"rows": func(e *manifest.Entry) { e.File.Rows++ },
		"nil":  func(e *manifest.Entry) { e.File.ExtraFiles = nil },
	} {
		other := base
		change(&other)
		require.Equal(t, manifest.Identity(base), manifest.Identity(other), name)
	}
}

func TestSummarizeListCoversCountsAndRanges(t *testing.T) {
	a, b, c := sample(t, 1), sample(t, 2), sample(t, 3)
	b.Partition = intRow(t, nil)
	c.File.SchemaID = 7
	a.File.FirstRowID, b.File.FirstRowID, c.File.FirstRowID = ptr(int64(20)), ptr(int64(0)), ptr(int64(10))
	got, err := manifest.SummarizeList("m", 55, []manifest.Entry{a, b, deleted(c)}, intTypes)
	require.NoError(t, err)
	require.Equal(t, manifest.ListEntry{
		Name: "m", Size: 55, Added: 2, Deleted: 1, SchemaID: 7,
		PartitionStats: manifest.Stats{Arity: 1, Min: intRow(t, int32(1)), Max: intRow(t, int32(3)), NullCounts: []int64{1}},
		MinBucket:      ptr(1), MaxBucket: ptr(3), MinLevel: ptr(1), MaxLevel: ptr(3),
		MinRowID: ptr(int64(0)), MaxRowID: ptr(int64(29)),
	}, got)

	c.File.FirstRowID = nil
	got, err = manifest.SummarizeList("m", 55, []manifest.Entry{a, c}, nil)
	require.NoError(t, err)
	require.Nil(t, got.MinRowID)
	require.Equal(t, row.EmptyRow, got.PartitionStats.Max)

	a.Partition = []byte{1}
	_, err = manifest.SummarizeList("m", 55, []manifest.Entry{a}, intTypes)
	require.ErrorIs(t, err, errs.ErrCorrupt)
	_, err = manifest.SummarizeList("m", 55, nil, nil)
	require.ErrorIs(t, err, errs.ErrInvalid)
}
