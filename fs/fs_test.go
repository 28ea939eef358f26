package fs_test

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/mem"
	"github.com/tideline-db/tideline/internal/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNames(t *testing.T) {
	for _, c := range []struct {
		elem            []string
		join, base, dir string
	}{
		{[]string{"w", "a.db", "t"}, "w/a.db/t", "t", "w/a.db"},
		{[]string{"/w/", "/a"}, "/w/a", "a", "/w"},
		{[]string{"", "a", "", "b"}, "a/b", "b", "a"},
		{[]string{"file:///w", "a"}, "file:///w/a", "a", "file:///w"},
		{[]string{"file:///w"}, "file:///w", "w", "file:///"},
		{[]string{"file:/w", "a"}, "file:/w/a", "a", "file:/w"},
		{[]string{"s3://bucket", "key", "x"}, "s3://bucket/key/x", "x", "s3://bucket/key"},
		{[]string{"s3://bucket", "key"}, "s3://bucket/key", "key", "s3://bucket"},
		{[]string{"s3://bucket/"}, "s3://bucket", "bucket", "s3://bucket"},
		{[]string{"ts=10:30://x", "f"}, "ts=10:30:/x/f", "f", "ts=10:30:/x"},
		{[]string{"f"}, "f", "f", "."},
	} {
		joined := fs.Join(c.elem...)
		require.Equal(t, c.join, joined)
		require.Equal(t, c.base, fs.Base(joined), joined)
		require.Equal(t, c.dir, fs.Dir(joined), joined)
	}
	require.Empty(t, fs.Join())
	require.Empty(t, fs.Join("", ""))
}

func TestTemporaryNames(t *testing.T) {
	require.True(t, fs.IsTemp(".snapshot-7.5b6e.tmp"))
	for _, base := range []string{"", ".tmp2", "a.tmp", ".hidden", "snapshot-7"} {
		require.False(t, fs.IsTemp(base), base)
	}
}

func TestErrorsSayWhatWhereAndWhy(t *testing.T) {
	require.NoError(t, fs.Fail("open", "f", nil))
	err := fs.Fail("create", "t/f", &os.PathError{Op: "write", Path: "/w/t/.f.1.tmp", Err: syscall.ENOSPC})
	require.EqualError(t, err, "create t/f: write: no space left on device")
	require.True(t, fs.IsNoSpace(err))
	require.False(t, fs.IsReadOnly(err))
	err = fs.Fail("commit", "t/f", &os.LinkError{Op: "link", Old: "a", New: "b", Err: syscall.EEXIST})
	require.EqualError(t, err, "commit t/f: link: file exists")
	require.ErrorIs(t, err, fs.ErrExist)
	var op *fs.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "t/f", op.Name)
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.EACCES, syscall.EPERM} {
		require.True(t, fs.IsReadOnly(fs.Fail("create", "f", errno)))
	}
}

func TestReadAllRefusesMoreThanItsLimit(t *testing.T) {
	store := mem.New()
	require.NoError(t, store.CreateIfAbsent(t.Context(), "f", make([]byte, 100)))
	data, err := fs.ReadAll(t.Context(), store, "f", 100)
	require.NoError(t, err)
	require.Len(t, data, 100)
	_, err = fs.ReadAll(t.Context(), store, "f", 99)
	require.ErrorIs(t, err, errs.ErrCorrupt)
	var corrupt *errs.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, "f", corrupt.File)
}

// odd is a store with one file that reads as told.
type odd struct {
	fs.FileIO
	size int64
	read func(p []byte, off int64) (int, error)
}

func (o odd) Open(context.Context, string) (fs.File, error) { return o, nil }
func (o odd) Name() string                                  { return "f" }
func (o odd) Size() int64                                   { return o.size }
func (o odd) Close() error                                  { return nil }
func (o odd) ReadAt(p []byte, off int64) (n int, err error) { return o.read(p, off) }

func TestReadAllNeverReturnsAPart(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		size int64
		read func(p []byte, off int64) (int, error)
		want error
	}{
		{"two bytes at a time", 5, func(p []byte, _ int64) (int, error) { return min(2, len(p)), nil }, nil},
		{"end with the last byte", 5, func(p []byte, _ int64) (int, error) { return len(p), io.EOF }, nil},
		{"early end", 5, func([]byte, int64) (int, error) { return 3, io.EOF }, io.ErrUnexpectedEOF},
		{"nothing and no error", 5, func([]byte, int64) (int, error) { return 0, nil }, io.ErrUnexpectedEOF},
		{"failure", 5, func([]byte, int64) (int, error) { return 1, broken }, broken},
		{"negative size", -1, nil, errs.ErrCorrupt},
	} {
		data, err := fs.ReadAll(t.Context(), odd{size: c.size, read: c.read}, "f", 10)
		require.ErrorIs(t, err, c.want, c.name)
		if c.want == nil {
			require.Len(t, data, 5, c.name)
		} else {
			require.Nil(t, data, c.name)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestWriteAllLoopsOverShortWrites(t *testing.T) {
	var got []byte
	n, err := fs.WriteAll(writerFunc(func(p []byte) (int, error) {
		got = append(got, p[:min(3, len(p))]...)
		return min(3, len(p)), nil
	}), []byte("0123456789"))
	require.NoError(t, err)
	require.Equal(t, 10, n)
	require.Equal(t, "0123456789", string(got))

	n, err = fs.WriteAll(writerFunc(func([]byte) (int, error) { return 0, nil }), []byte("x"))
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Zero(t, n)
	n, err = fs.WriteAll(writerFunc(func([]byte) (int, error) { return 2, syscall.ENOSPC }), []byte("xyz"))
	require.True(t, fs.IsNoSpace(err))
	require.Equal(t, 2, n)
	_, err = fs.WriteAll(writerFunc(func([]byte) (int, error) { return 9, nil }), []byte("x"))
	require.Error(t, err)
}
