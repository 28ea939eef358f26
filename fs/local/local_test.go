package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fstest"
	"github.com/tideline-db/tideline/internal/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	for _, level := range []SyncLevel{SyncNone, SyncCommit, SyncAll} {
		t.Run(level.String(), func(t *testing.T) {
			fstest.Run(t, func(t *testing.T) (fs.FileIO, string) { return New(Options{Sync: level}), t.TempDir() })
		})
	}
}

func TestNoTemporaryFileStays(t *testing.T) {
	dir := t.TempDir()
	l := New(Options{Sync: SyncAll})
	require.NoError(t, l.CreateIfAbsent(t.Context(), filepath.Join(dir, "a"), []byte("x")))
	require.ErrorIs(t, l.CreateIfAbsent(t.Context(), filepath.Join(dir, "a"), []byte("y")), fs.ErrExist)
	require.NoError(t, l.Overwrite(t.Context(), filepath.Join(dir, "a"), []byte("z")))
	for _, end := range []func(fs.Writer) error{fs.Writer.Commit, fs.Writer.Commit, fs.Writer.Abort} {
		w, err := l.Create(t.Context(), filepath.Join(dir, "b"))
		require.NoError(t, err)
		_ = end(w) // the second Commit loses
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

func TestLosingLinkRemovesTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	tmp, final := filepath.Join(dir, ".f.1.tmp"), filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(tmp, []byte("late"), 0o600))
	require.NoError(t, os.WriteFile(final, []byte("first"), 0o600))
	require.ErrorIs(t, New(Options{}).publish(tmp, final), fs.ErrExist)
	_, err := os.Stat(tmp)
	require.ErrorIs(t, err, fs.ErrNotExist)
	data, err := os.ReadFile(final)
	require.NoError(t, err)
	require.Equal(t, "first", string(data))
}

func TestRepeatedLinkOfOwnFileIsSuccess(t *testing.T) {
	dir := t.TempDir()
	tmp, final := filepath.Join(dir, ".f.1.tmp"), filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(tmp, []byte("x"), 0o600))
	require.NoError(t, os.Link(tmp, final))
	require.NoError(t, New(Options{}).publish(tmp, final))
}

func TestRenameNoReplaceLosesToTakenName(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, []byte("a"), 0o600))
	err := renameNoReplace(a, b)
	if noLinks(err) || errors.Is(err, syscall.EINVAL) {
		t.Skip("the file system under the temporary directory knows no such rename")
	}
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(a, []byte("late"), 0o600))
	require.ErrorIs(t, renameNoReplace(a, b), fs.ErrExist)
}

func TestFileWhoseSyncFailedIsNeverCalledDurable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	l := New(Options{})
	require.NoError(t, l.Overwrite(t.Context(), name, []byte("x")))
	require.NoError(t, l.Sync(t.Context(), name))
	l.doubtful[name] = syscall.EIO // as a failed fsync leaves it
	require.ErrorIs(t, l.Sync(t.Context(), name), syscall.EIO)
	require.ErrorIs(t, l.Sync(t.Context(), name), syscall.EIO)
	require.NoError(t, l.Overwrite(t.Context(), name, []byte("a new file")))
	require.NoError(t, l.Sync(t.Context(), name))
}

func TestNewDirectoriesBecomeDurableWithTheirFirstFile(t *testing.T) {
	root := t.TempDir()
	l := New(Options{})
	name := filepath.Join(root, "p=1", "bucket-0", "f")
	require.NoError(t, l.Overwrite(t.Context(), name, nil))
	require.Empty(t, l.durable)
	require.NoError(t, l.Sync(t.Context(), name))
	for d := filepath.Dir(name); len(d) >= len(root); d = filepath.Dir(d) {
		require.Contains(t, l.durable, d)
	}
	// Removed behind our back and made again: what was known no longer holds.
	require.NoError(t, os.RemoveAll(filepath.Join(root, "p=1")))
	require.NoError(t, l.Overwrite(t.Context(), name, nil))
	require.NotContains(t, l.durable, filepath.Dir(name))
	require.NotContains(t, l.durable, filepath.Join(root, "p=1"))
	require.Contains(t, l.durable, root)
}

func TestFullDeviceIsRecognised(t *testing.T) {
	fd, err := syscall.Open("/dev/full", syscall.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	// The file says another name, for Commit removes what it could not complete.
	full := os.NewFile(uintptr(fd), filepath.Join(t.TempDir(), "none"))
	final := filepath.Join(t.TempDir(), "f")
	w := &writer{store: New(Options{}), tmp: full, name: "f", path: final}
	_, err = w.Write([]byte("x"))
	require.True(t, fs.IsNoSpace(err), err)
	require.ErrorContains(t, err, "write f")
	require.True(t, fs.IsNoSpace(w.Commit()))
	_, err = os.Stat(final)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	err := New(Options{}).CreateIfAbsent(t.Context(), filepath.Join(dir, "f"), nil)
	require.True(t, fs.IsReadOnly(err), err)
}

func TestLongNamesAndBadOnes(t *testing.T) {
	dir := t.TempDir()
	l := New(Options{})
	require.NoError(t, l.CreateIfAbsent(t.Context(), filepath.Join(dir, strings.Repeat("n", 255)), nil))
	err := l.CreateIfAbsent(t.Context(), filepath.Join(dir, strings.Repeat("n", 256)), nil)
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	require.NotErrorIs(t, err, errs.ErrUnsupported)
	infos, err := l.List(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, infos, 1)
}

func TestDanglingLinkIsNotListed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "real"), []byte("1234"), 0o600))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "alias")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	infos, err := New(Options{}).List(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []fs.Info{{Name: "alias", Size: 4}, {Name: "real", Size: 4}}, infos)
}
