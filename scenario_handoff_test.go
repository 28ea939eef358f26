package tideline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

// HND-02: the second writer continues offsets and sequence numbers although
// nothing is committed; both prepares are committed together.
func TestSecondWriterContinues(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, first := w.session()
		_, err := table.Writer(t.Context())
		require.ErrorIs(t, err, tideline.ErrInvalid, "one active writer")
		put(t, first, 0, "a", 1, "b", 2, "c")
		prepare(t, first)
		require.NoError(t, first.Close(t.Context()))
		require.NoError(t, first.Close(t.Context()), "twice is fine")
		second, err := table.Writer(t.Context())
		require.NoError(t, err)
		_, err = first.Write(t.Context(), rows(t, 9, "x"))
		require.ErrorIs(t, err, tideline.ErrClosed)
		put(t, second, 0, "A", 3, "d")
		b := stats(t, table).Buckets[0]
		require.EqualValues(t, 5, b.NextOffset)
		require.EqualValues(t, 5, b.NextSequence)
		publish(t, table, prepare(t, second))
		require.NoError(t, table.Refresh(t.Context()))
		require.Equal(t, []string{"0:3"}, ends(t, table, 1))
		require.Equal(t, []string{"0:5"}, ends(t, table, 2))
		want := []string{"0=A", "1=b", "2=c", "3=d"}
		if len(def.PrimaryKey) == 0 {
			want = []string{"0=a", "1=b", "2=c", "0=A", "3=d"}
		}
		require.Equal(t, want, read(t, committed(table)))
		require.NoError(t, second.Close(t.Context()))
	})
}

// Who gives the offsets is one way for the session, not for the writer.
func TestHandOverKeepsTheKindOfOffsets(t *testing.T) {
	w := newWorld(t, keyed())
	table, first := w.session()
	put(t, first, 1, "a")
	commit(t, first)
	require.NoError(t, first.Close(t.Context()))
	second, err := table.Writer(t.Context())
	require.NoError(t, err)
	_, err = second.Write(t.Context(), rows(t, 2, "b"), tideline.Offsets([]int64{5}))
	require.ErrorIs(t, err, tideline.ErrInvalid)
	require.NoError(t, stats(t, table).Poisoned)
	put(t, second, 2, "b")
	require.Equal(t, []string{"1=a", "2=b"}, read(t, table.Scan()))
}

// HND-03: closing with rows that no prepare took ends the session, with an error;
// Discard does so on purpose.
func TestCloseWithUnpreparedRows(t *testing.T) {
	for _, discard := range []bool{false, true} {
		w := newWorld(t, keyed())
		table, writer := w.session()
		put(t, writer, 1, "a")
		commit(t, writer)
		put(t, writer, 2, "b")
		if discard {
			require.NoError(t, writer.Discard(t.Context()))
		} else {
			require.ErrorIs(t, writer.Close(t.Context()), tideline.ErrInvalid)
		}
		require.ErrorIs(t, stats(t, table).Poisoned, tideline.ErrPoisoned)
		_, err := table.Writer(t.Context())
		require.ErrorIs(t, err, tideline.ErrPoisoned)
		_, err = table.Scan().Read(t.Context())
		require.ErrorIs(t, err, tideline.ErrPoisoned)
		require.Equal(t, []string{"1=a"}, read(t, committed(table)))
		require.NoError(t, table.Close(t.Context()))
		again, writer := w.session()
		put(t, writer, 2, "b")
		commit(t, writer)
		require.Equal(t, []string{"1=a", "2=b"}, read(t, again.Scan()))
	}
}

// What was prepared before the session died may still be committed.
func TestPreparedBeforeTheEndIsCommitted(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	p := prepare(t, writer)
	put(t, writer, 2, "b")
	require.NoError(t, writer.Discard(t.Context()))
	publish(t, table, p)
	require.Equal(t, []string{"1=a"}, read(t, committed(table)))
	require.Equal(t, []string{"0:1"}, ends(t, table, 0))
}
