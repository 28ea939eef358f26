package tideline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

// PRD-01: projection and predicate, exact, over memory and the union.
func TestExactFilter(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a", 2, "b")
		scan := table.Scan().Select("name", "id").Where(tideline.Gt("id", int64(1)))
		require.Equal(t, []string{"b=2"}, read(t, scan))
		commit(t, writer)
		put(t, writer, 3, "c", 4, "d", 0, "z", 5, nil)
		require.ElementsMatch(t, []string{"b=2", "c=3", "d=4", "(null)=5"}, read(t, scan))
		require.ElementsMatch(t, []string{"c=3"}, read(t, scan.Where(tideline.Eq("name", "c"))), "joined by And")
		require.ElementsMatch(t, []string{"b=2", "d=4"}, read(t, scan.Where(tideline.Ne("name", "c"))), "NULL is not different")
		p, err := tideline.ParsePredicate("id in (1, 4) or name is null")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"1", "4", "5"}, read(t, table.Scan().Select("id").Where(p)))
		require.Empty(t, read(t, table.Scan().Where(tideline.And(tideline.Gt("id", int64(3)), tideline.Lt("id", int64(3))))))
	})
}

// PRD-03, PRD-11: candidates of an append table show what statistics prune.
func TestStatisticsPruneMemoryOfAppendTables(t *testing.T) {
	w := newWorld(t, listed())
	table, writer := w.session()
	batch := func(from int) {
		var pairs []any
		for i := range 300 { // large enough not to share a chunk
			pairs = append(pairs, from+i, "x")
		}
		put(t, writer, pairs...)
		require.NoError(t, writer.Seal(t.Context()))
	}
	batch(0)
	batch(1000)
	batch(2000)
	count := func(p *tideline.Predicate) int { return len(read(t, table.Scan().Candidates().Where(p))) }
	require.Equal(t, 900, count(tideline.Ge("id", int64(0))))
	require.Zero(t, count(tideline.Gt("id", int64(5000))))
	require.Equal(t, 600, count(tideline.Gt("id", int64(500))))
	require.Equal(t, 300, count(tideline.Eq("id", int64(1005))))
	require.Zero(t, count(tideline.IsNull("name")))
	require.Equal(t, 900, count(tideline.Eq("name", "x")))
	require.Zero(t, count(tideline.Eq("name", "y")))
	require.NoError(t, writer.Discard(t.Context()))
}

// PK-03, PRD-08, B20: key conditions prune memory and files of a primary-key
// table, value conditions never, so nothing old is uncovered.
func TestKeyConditionsPruneValueConditionsDoNot(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "match", 2, "match", 3, "match", 4, "match")
	commit(t, writer)
	put(t, writer, 1, "newer")
	require.NoError(t, writer.Seal(t.Context()))
	remove(t, writer, 2)
	require.NoError(t, writer.Seal(t.Context()))
	put(t, writer, 3, "newest")
	candidates := func(p *tideline.Predicate) []string { return read(t, table.Scan().Candidates().Where(p)) }
	require.Equal(t, []string{"1=newer", "3=newest", "4=match"}, candidates(tideline.Eq("name", "match")), "a superset without uncovered rows")
	require.Equal(t, []string{"4=match"}, read(t, table.Scan().Where(tideline.Eq("name", "match"))))
	require.Empty(t, read(t, table.Scan().Where(tideline.And(tideline.Eq("id", int64(2)), tideline.Eq("name", "match")))))
	require.Empty(t, candidates(tideline.Eq("id", int64(9))), "no file and no run holds the key")
	require.Equal(t, []string{"3=newest"}, read(t, table.Scan().Where(tideline.Eq("id", int64(3)))))
	require.Empty(t, read(t, table.Scan().Where(tideline.Eq("id", int64(2)))))
	plan, err := table.Scan().Where(tideline.Gt("id", int64(100))).Plan(t.Context())
	require.NoError(t, err)
	for _, s := range plan.Splits {
		require.Empty(t, s.Files, "the file is pruned by its key range")
	}
	plan.Close(t.Context())
	require.NoError(t, writer.Discard(t.Context()))
}

// PRD-14: an explicit snapshot is read without memory; none is an error.
func TestExplicitSnapshot(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	_, err := table.Scan().AtSnapshot(1).Read(t.Context())
	require.Error(t, err)
	commit(t, writer)
	put(t, writer, 1, "b")
	commit(t, writer)
	put(t, writer, 1, "c")
	require.Equal(t, []string{"1=a"}, read(t, table.Scan().AtSnapshot(1)))
	require.Equal(t, []string{"1=b"}, read(t, table.Scan().AtSnapshot(2)))
	require.Equal(t, []string{"1=b"}, read(t, committed(table)))
	require.Equal(t, []string{"1=c"}, read(t, table.Scan()))
	require.Empty(t, read(t, table.Scan().AtSnapshot(1).Where(tideline.Eq("name", "b"))))
}

// PRD-13: the window of memory begins inside a plan's newer snapshot.
func TestCommittedButNotAdoptedRowsAreReadOnce(t *testing.T) {
	w := newWorld(t, listed())
	table, writer := w.session()
	put(t, writer, 1, "a", 2, "b")
	p := prepare(t, writer)
	put(t, writer, 3, "c")
	publish(t, table, p)
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, plan.Splits[0].Committed)
	require.EqualValues(t, 3, plan.Splits[0].Visible)
	require.Equal(t, []string{"1=a", "2=b", "3=c"}, readSplits(t, table, plan.Splits...))
}

// Limit counts rows of the answer, exactly, with and without a filter.
func TestLimit(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		for i := range 10 {
			put(t, writer, i, "x")
			if i == 5 {
				commit(t, writer)
			}
		}
		for _, n := range []int64{0, 1, 3, 9, 10, 11} {
			require.Len(t, read(t, table.Scan().Limit(n)), int(min(n, 10)))
			require.Len(t, read(t, table.Scan().Limit(n).BatchRows(2)), int(min(n, 10)))
			require.Len(t, read(t, table.Scan().Limit(n).Where(tideline.Ge("id", int64(4)))), int(min(n, 6)))
		}
		require.NoError(t, writer.Discard(t.Context()))
	})
}
