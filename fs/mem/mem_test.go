package mem

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	fstest.Run(t, func(*testing.T) (fs.FileIO, string) {
		m := New()
		m.root.put("w", newDir())
		return m, "/w"
	})
}

func commit(t *testing.T, m *FS, name string, content []byte) {
	t.Helper()
	w, err := m.Create(t.Context(), name)
	require.NoError(t, err)
	_, err = w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Commit())
}

// show lists what a file system holds, one "name=content" each.
func show(t *testing.T, m *FS) []string {
	t.Helper()
	all := []string{}
	var walk func(dir string)
	walk = func(dir string) {
		infos, err := m.List(t.Context(), dir)
		require.NoError(t, err)
		for _, info := range infos {
			name := fs.Join(dir, info.Name)
			if info.IsDir {
				walk(name)
				continue
			}
			data, err := fs.ReadAll(t.Context(), m, name, 1<<20)
			require.NoError(t, err)
			all = append(all, fmt.Sprintf("%s=%s", name[1:], data))
		}
	}
	walk("/")
	return all
}

func TestCrashLosesWhatWasNotSynced(t *testing.T) {
	m := New()
	commit(t, m, "t/loose", []byte("l"))
	require.NoError(t, m.CreateIfAbsent(t.Context(), "t/snapshot/snapshot-1", []byte("s")))
	// Syncing the snapshot made the entry of its directory in t durable, and
	// with it every other entry of t; the bytes of those files are another matter.
	require.Equal(t, []string{"t/loose=", "t/snapshot/snapshot-1=s"}, show(t, m.CrashClone(KeepNone)))

	commit(t, m, "t/later", []byte("x"))
	commit(t, m, "u/first", []byte("y"))
	require.Equal(t, []string{"t/loose=", "t/snapshot/snapshot-1=s"}, show(t, m.CrashClone(KeepNone)))
	require.Equal(t, []string{"t/later=x", "t/loose=l", "t/snapshot/snapshot-1=s", "u/first=y"}, show(t, m.CrashClone(KeepAll)))

	require.NoError(t, m.Sync(t.Context(), "u/first", "t/loose"))
	require.Equal(t, []string{"t/later=", "t/loose=l", "t/snapshot/snapshot-1=s", "u/first=y"}, show(t, m.CrashClone(KeepNone)))
}

func TestCrashBringsBackOldEntries(t *testing.T) {
	m := New()
	require.NoError(t, m.CreateIfAbsent(t.Context(), "gone", []byte("g")))
	require.NoError(t, m.CreateIfAbsent(t.Context(), "hint", []byte("1")))
	require.NoError(t, m.Delete(t.Context(), "gone"))
	require.NoError(t, m.Overwrite(t.Context(), "hint", []byte("2")))
	require.Equal(t, []string{"hint=2"}, show(t, m))
	require.Equal(t, []string{"gone=g", "hint=1"}, show(t, m.CrashClone(KeepNone)))

	kinds := map[string]string{}
	torn := m.CrashClone(func(kind, name string) bool {
		kinds[kind] = name
		return kind != KindBytes
	})
	require.Equal(t, map[string]string{KindDelete: "gone", KindReplace: "hint", KindBytes: "hint"}, kinds)
	require.Equal(t, []string{"hint="}, show(t, torn), "the new name with none of the new bytes")
}

func TestCrashLosesPages(t *testing.T) {
	m := New()
	content := bytes.Repeat([]byte("x"), 3*pageSize+10)
	commit(t, m, "f", content)
	page := 0
	got := m.CrashClone(func(kind, _ string) bool {
		if kind != KindBytes {
			return true
		}
		page++
		return page == 2
	})
	data, err := fs.ReadAll(t.Context(), got, "f", 1<<20)
	require.NoError(t, err)
	want := append(make([]byte, pageSize), content[:pageSize]...)
	require.Equal(t, want, data)
}

func TestCrashDuringWriteLeavesOnlyHiddenFile(t *testing.T) {
	m := New()
	w, err := m.Create(t.Context(), "d/f")
	require.NoError(t, err)
	_, err = w.Write([]byte("half"))
	require.NoError(t, err)
	c := m.CrashClone(KeepAll)
	require.Empty(t, show(t, c))
	require.Len(t, c.root.live["d"].live, 1, "the temporary file is there")

	// The original goes on; the clone does not see it.
	_, err = w.Write([]byte(" more"))
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	require.Equal(t, []string{"d/f=half more"}, show(t, m))
	require.Empty(t, show(t, c))
	commit(t, c, "d/f", []byte("mine"))
	require.Equal(t, []string{"d/f=half more"}, show(t, m))
}

func TestCloneIsDurable(t *testing.T) {
	m := New()
	commit(t, m, "a/b/f", []byte("x"))
	c := m.CrashClone(KeepAll)
	require.Equal(t, []string{"a/b/f=x"}, show(t, c.CrashClone(KeepNone)))
}

func TestKeepFractionRepeats(t *testing.T) {
	m := New()
	for i := range 100 {
		commit(t, m, fmt.Sprintf("f-%02d", i), []byte("x"))
	}
	a, b := show(t, m.CrashClone(KeepFraction(7, 50))), show(t, m.CrashClone(KeepFraction(7, 50)))
	require.Equal(t, a, b)
	require.Greater(t, len(a), 20)
	require.Less(t, len(a), 80)
	require.NotEqual(t, a, show(t, m.CrashClone(KeepFraction(8, 50))))
	require.Empty(t, show(t, m.CrashClone(KeepFraction(7, 0))))
	require.Len(t, show(t, m.CrashClone(KeepFraction(7, 100))), 100)
}

func TestCrashDoesNotTouchTheOriginal(t *testing.T) {
	m := New()
	w, err := m.Create(t.Context(), "f")
	require.NoError(t, err)
	page := bytes.Repeat([]byte("x"), pageSize)
	_, err = w.Write(page)
	require.NoError(t, err)
	require.NoError(t, m.Sync(t.Context(), ".f.1.tmp"))
	_, err = w.Write(append(page, page...))
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	asked := 0
	m.CrashClone(func(kind, _ string) bool {
		if kind == KindBytes {
			asked++
		}
		return kind != KindBytes || asked == 2 // the page between becomes zeros, in the clone
	})
	require.Equal(t, 2, asked)
	data, err := fs.ReadAll(t.Context(), m, "f", 1<<20)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte("x"), 3*pageSize), data)
}
