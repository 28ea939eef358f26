package fstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/fs"
)

// Open returns the store under test and an empty directory in it.
type Open func(t *testing.T) (store fs.FileIO, root string)

// Run runs every check, each on a store of its own.
func Run(t *testing.T, open Open) {
	for _, check := range []struct {
		name string
		run  func(t *testing.T, store fs.FileIO, root string)
	}{
		{"a committed file reads back", committedFileReadsBack},
		{"nothing shows before Commit", nothingShowsBeforeCommit},
		{"Commit onto a taken name loses", commitOntoTakenNameLoses},
		{"Abort leaves nothing", abortLeavesNothing},
		{"an ended writer refuses", endedWriterRefuses},
		{"one of many creators wins", oneCreatorWins},
		{"one of many committers wins", oneCommitterWins},
		{"Overwrite replaces in one step", overwriteReplacesInOneStep},
		{"List sorts and hides", listSortsAndHides},
		{"missing things", missingThings},
		{"directories are not files", directoriesAreNotFiles},
		{"reads at any position", readsAtAnyPosition},
		{"an open file outlives its name", openFileOutlivesName},
		{"a done context stops everything", doneContextStops},
		{"schemes and unclean names", schemesAndUncleanNames},
		{"Sync", syncNames},
	} {
		t.Run(check.name, func(t *testing.T) {
			store, root := open(t)
			check.run(t, store, root)
		})
	}
}

func put(t *testing.T, store fs.FileIO, name, content string) {
	t.Helper()
	w, err := store.Create(t.Context(), name)
	require.NoError(t, err)
	n, err := fs.WriteAll(w, []byte(content))
	require.NoError(t, err)
	require.Equal(t, len(content), n)
	require.NoError(t, w.Commit())
	require.NoError(t, w.Abort(), "Abort after Commit is a no-op")
}

func get(t *testing.T, store fs.FileIO, name string) string {
	t.Helper()
	data, err := fs.ReadAll(t.Context(), store, name, 1<<20)
	require.NoError(t, err)
	return string(data)
}

func names(t *testing.T, store fs.FileIO, dir string) []string {
	t.Helper()
	infos, err := store.List(t.Context(), dir)
	require.NoError(t, err)
	list := []string{}
	for _, info := range infos {
		list = append(list, info.Name)
	}
	return list
}

func committedFileReadsBack(t *testing.T, store fs.FileIO, root string) {
	name := fs.Join(root, "dt=2024-01-01", "bucket-0", "data-1.parquet")
	put(t, store, name, "PAR1")
	require.Equal(t, "PAR1", get(t, store, name))
	info, err := store.Stat(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, fs.Info{Name: "data-1.parquet", Size: 4}, info)
	put(t, store, fs.Join(root, "empty"), "")
	require.Empty(t, get(t, store, fs.Join(root, "empty")))
}

func nothingShowsBeforeCommit(t *testing.T, store fs.FileIO, root string) {
	name := fs.Join(root, "f")
	w, err := store.Create(t.Context(), name)
	require.NoError(t, err)
	_, err = fs.WriteAll(w, []byte("half"))
	require.NoError(t, err)
	_, err = store.Stat(t.Context(), name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Empty(t, names(t, store, root))
	_, err = fs.WriteAll(w, []byte(" and half"))
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	require.Equal(t, "half and half", get(t, store, name))
}

func commitOntoTakenNameLoses(t *testing.T, store fs.FileIO, root string) {
	name := fs.Join(root, "f")
	w, err := store.Create(t.Context(), name)
	require.NoError(t, err)
	put(t, store, name, "first")
	require.ErrorIs(t, w.Commit(), fs.ErrExist)
	require.NoError(t, w.Abort())
	require.ErrorIs(t, store.CreateIfAbsent(t.Context(), name, []byte("third")), fs.ErrExist)
	require.Equal(t, "first", get(t, store, name))
	require.Equal(t, []string{"f"}, names(t, store, root))
}

func abortLeavesNothing(t *testing.T, store fs.FileIO, root string) {
	w, err := store.Create(t.Context(), fs.Join(root, "f"))
	require.NoError(t, err)
	_, err = fs.WriteAll(w, []byte("gone"))
	require.NoError(t, err)
	require.NoError(t, w.Abort())
	require.NoError(t, w.Abort())
	require.Empty(t, names(t, store, root))
	put(t, store, fs.Join(root, "f"), "the name is free")
}

func endedWriterRefuses(t *testing.T, store fs.FileIO, root string) {
	w, err := store.Create(t.Context(), fs.Join(root, "f"))
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	_, err = w.Write([]byte("late"))
	require.ErrorIs(t, err, iofs.ErrClosed)
	require.ErrorIs(t, w.Commit(), iofs.ErrClosed)
	require.Empty(t, get(t, store, fs.Join(root, "f")))
}

const racers = 16

// race runs try in racers goroutines at once and returns the number that won;
// every other one must have got ErrExist.
func race(t *testing.T, try func(i int) error) (winner int) {
	t.Helper()
	failed := make([]error, racers)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() {
			<-start
			failed[i] = try(i)
		})
	}
	close(start)
	group.Wait()
	winner = -1
	for i, err := range failed {
		if err == nil {
			require.Equal(t, -1, winner, "two winners: %d and %d", winner, i)
			winner = i
			continue
		}
		require.ErrorIs(t, err, fs.ErrExist)
	}
	require.NotEqual(t, -1, winner, "no winner")
	return winner
}

func oneCreatorWins(t *testing.T, store fs.FileIO, root string) {
	for round := range 10 {
		name := fs.Join(root, "snapshot", fmt.Sprintf("snapshot-%d", round))
		winner := race(t, func(i int) error {
			return store.CreateIfAbsent(t.Context(), name, fmt.Appendf(nil, "creator %d", i))
		})
		require.Equal(t, fmt.Sprintf("creator %d", winner), get(t, store, name))
	}
	require.Len(t, names(t, store, fs.Join(root, "snapshot")), 10)
}

func oneCommitterWins(t *testing.T, store fs.FileIO, root string) {
	name := fs.Join(root, "f")
	writers := make([]fs.Writer, racers)
	for i := range writers {
		w, err := store.Create(t.Context(), name)
		require.NoError(t, err)
		_, err = fs.WriteAll(w, fmt.Appendf(nil, "writer %d", i))
		require.NoError(t, err)
		writers[i] = w
	}
	winner := race(t, func(i int) error { return writers[i].Commit() })
	require.Equal(t, fmt.Sprintf("writer %d", winner), get(t, store, name))
}

func overwriteReplacesInOneStep(t *testing.T, store fs.FileIO, root string) {
	name := fs.Join(root, "LATEST")
	long := make([]byte, 64<<10)
	short := []byte("7")
	require.NoError(t, store.Overwrite(t.Context(), name, short))
	var group sync.WaitGroup
	var failed error
	group.Go(func() {
		for i := range 100 {
			content := short
			if i%2 == 0 {
				content = long
			}
			failed = errors.Join(failed, store.Overwrite(t.Context(), name, content))
		}
	})
	for range 100 {
		n := len(get(t, store, name))
		require.True(t, n == len(long) || n == len(short), "read %d bytes, neither old nor new", n)
	}
	group.Wait()
	require.NoError(t, failed)
	require.Equal(t, []string{"LATEST"}, names(t, store, root))
}

func listSortsAndHides(t *testing.T, store fs.FileIO, root string) {
	for _, base := range []string{"b", "a-10", "a-9", "A", ".hidden", "x.tmp", "sub/inner"} {
		put(t, store, fs.Join(root, base), "12345")
	}
	w, err := store.Create(t.Context(), fs.Join(root, "pending"))
	require.NoError(t, err)
	infos, err := store.List(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, []fs.Info{
		{Name: ".hidden", Size: 5}, {Name: "A", Size: 5}, {Name: "a-10", Size: 5}, {Name: "a-9", Size: 5},
		{Name: "b", Size: 5}, {Name: "sub", IsDir: true}, {Name: "x.tmp", Size: 5},
	}, infos)
	require.NoError(t, w.Abort())
}

func missingThings(t *testing.T, store fs.FileIO, root string) {
	name := fs.Join(root, "no", "such")
	_, err := store.Open(t.Context(), name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "open "+name)
	_, err = store.Stat(t.Context(), name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = store.List(t.Context(), name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, store.Delete(t.Context(), name))
	require.ErrorIs(t, store.CreateIfAbsent(t.Context(), root, nil), fs.ErrExist)

	put(t, store, fs.Join(root, "f"), "x")
	require.NoError(t, store.Delete(t.Context(), fs.Join(root, "f")))
	require.NoError(t, store.Delete(t.Context(), fs.Join(root, "f")))
	_, err = store.Open(t.Context(), fs.Join(root, "f"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func directoriesAreNotFiles(t *testing.T, store fs.FileIO, root string) {
	put(t, store, fs.Join(root, "d", "f"), "x")
	dir := fs.Join(root, "d")
	info, err := store.Stat(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, fs.Info{Name: "d", IsDir: true}, info)
	_, err = store.Open(t.Context(), dir)
	require.Error(t, err)
	require.Error(t, store.Delete(t.Context(), dir))
	require.Error(t, store.Overwrite(t.Context(), dir, nil))
	_, err = store.List(t.Context(), fs.Join(dir, "f"))
	require.Error(t, err)
	_, err = store.Create(t.Context(), fs.Join(dir, "f", "below a file"))
	require.Error(t, err)
	require.Equal(t, "x", get(t, store, fs.Join(dir, "f")))
}

func readsAtAnyPosition(t *testing.T, store fs.FileIO, root string) {
	put(t, store, fs.Join(root, "f"), "0123456789")
	f, err := store.Open(t.Context(), fs.Join(root, "f"))
	require.NoError(t, err)
	require.EqualValues(t, 10, f.Size())
	require.Equal(t, fs.Join(root, "f"), f.Name())
	buf := make([]byte, 4)
	for _, c := range []struct {
		off  int64
		want string
		err  error
	}{{0, "0123", nil}, {3, "3456", nil}, {8, "89", io.EOF}, {10, "", io.EOF}, {99, "", io.EOF}} {
		n, err := f.ReadAt(buf, c.off)
		require.Equal(t, c.want, string(buf[:n]))
		require.Equal(t, c.err, err)
	}
	_, err = f.ReadAt(buf, -1)
	require.Error(t, err)
	require.NoError(t, f.Close())
	_, err = f.ReadAt(buf, 0)
	require.ErrorIs(t, err, iofs.ErrClosed)
}

func openFileOutlivesName(t *testing.T, store fs.FileIO, root string) {
	name := fs.Join(root, "f")
	put(t, store, name, "old")
	f, err := store.Open(t.Context(), name)
	require.NoError(t, err)
	require.NoError(t, store.Delete(t.Context(), name))
	put(t, store, name, "new content")
	buf := make([]byte, 3)
	_, err = f.ReadAt(buf, 0)
	require.NoError(t, err)
	require.Equal(t, "old", string(buf))
	require.NoError(t, f.Close())
}

func doneContextStops(t *testing.T, store fs.FileIO, root string) {
	put(t, store, fs.Join(root, "f"), "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	name := fs.Join(root, "f")
	_, err := store.Open(ctx, name)
	require.ErrorIs(t, err, context.Canceled)
	_, err = store.Create(ctx, name)
	require.ErrorIs(t, err, context.Canceled)
	_, err = store.Stat(ctx, name)
	require.ErrorIs(t, err, context.Canceled)
	_, err = store.List(ctx, root)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, store.CreateIfAbsent(ctx, fs.Join(root, "g"), nil), context.Canceled)
	require.ErrorIs(t, store.Overwrite(ctx, name, nil), context.Canceled)
	require.ErrorIs(t, store.Delete(ctx, name), context.Canceled)
	require.ErrorIs(t, store.Sync(ctx, name), context.Canceled)
	require.Equal(t, []string{"f"}, names(t, store, root))
	require.Equal(t, "x", get(t, store, name))
}

func schemesAndUncleanNames(t *testing.T, store fs.FileIO, root string) {
	put(t, store, fs.Join(root, "a b", "k=x%2Fy"), "x")
	for _, name := range []string{
		root + "/a b/k=x%2Fy", "file:" + root + "/a b/k=x%2Fy", "file://" + root + "/a b/k=x%2Fy",
		"file://localhost" + root + "//a b/./z/../k=x%2Fy",
	} {
		require.Equal(t, "x", get(t, store, name), name)
	}
	for _, name := range []string{"", "file:", "a\x00b", "s3://bucket/key", "file://elsewhere/a"} {
		_, err := store.Open(t.Context(), name)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, fs.ErrNotExist, name)
	}
}

func syncNames(t *testing.T, store fs.FileIO, root string) {
	require.NoError(t, store.Sync(t.Context()))
	list := []string{}
	for i := range 20 {
		name := fs.Join(root, fmt.Sprintf("p=%d", i%3), fmt.Sprintf("f-%d", i))
		put(t, store, name, "x")
		list = append(list, name)
	}
	require.NoError(t, store.Sync(t.Context(), list...))
	require.NoError(t, store.Sync(t.Context(), list[0], list[0]))
	if store.Capabilities().Sync {
		require.ErrorIs(t, store.Sync(t.Context(), list[0], fs.Join(root, "none")), fs.ErrNotExist)
	}
}
