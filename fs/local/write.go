package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
)

// Create implements fs.FileIO.
func (l *FS) Create(ctx context.Context, name string) (fs.Writer, error) {
	path, err := begin(ctx, "create", name)
	if err != nil {
		return nil, err
	}
	tmp, err := l.createTemp(path)
	if err != nil {
		return nil, fs.Fail("create", name, err)
	}
	return &writer{store: l, tmp: tmp, name: name, path: path}, nil
}

// writer is one new file before it has its name. It serves one goroutine.
type writer struct {
	store *FS
	tmp   *os.File // nil once ended
	name  string
	path  string
	err   error // the first failed write; such a file is never committed
}

func (w *writer) Write(p []byte) (int, error) {
	if w.tmp == nil {
		return 0, fs.Fail("write", w.name, os.ErrClosed)
	}
	n, err := fs.WriteAll(w.tmp, p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, fs.Fail("write", w.name, err)
}

func (w *writer) Commit() error {
	if w.tmp == nil {
		return fs.Fail("commit", w.name, os.ErrClosed)
	}
	tmp := w.tmp
	w.tmp = nil
	durable := w.store.level == SyncAll
	err := w.err
	if err == nil && durable {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // an orphan that List hides, at worst
		return fs.Fail("commit", w.name, err)
	}
	if err := w.store.publish(tmp.Name(), w.path); err != nil {
		return fs.Fail("commit", w.name, err)
	}
	if durable {
		return fs.Fail("commit", w.name, w.store.syncEntry(filepath.Dir(w.path)))
	}
	return nil
}

func (w *writer) Abort() error {
	if w.tmp == nil {
		return nil
	}
	tmp := w.tmp
	w.tmp = nil
	return fs.Fail("abort", w.name, errors.Join(tmp.Close(), os.Remove(tmp.Name())))
}

// CreateIfAbsent implements fs.FileIO.
func (l *FS) CreateIfAbsent(ctx context.Context, name string, content []byte) error {
	const op = "create-if-absent"
	path, err := begin(ctx, op, name)
	if err != nil {
		return err
	}
	// Losers of an old race need not write and sync a file first. Only link
	// decides, so a stale answer here costs nothing.
	if _, err := os.Lstat(path); err == nil {
		return fs.Fail(op, name, syscall.EEXIST)
	}
	durable := l.level != SyncNone
	tmp, err := l.writeTemp(path, content, durable)
	if err != nil {
		return fs.Fail(op, name, err)
	}
	if err := l.publish(tmp, path); err != nil {
		return fs.Fail(op, name, err)
	}
	if durable {
		return fs.Fail(op, name, l.syncEntry(filepath.Dir(path)))
	}
	return nil
}

// Overwrite implements fs.FileIO.
func (l *FS) Overwrite(ctx context.Context, name string, content []byte) error {
	path, err := begin(ctx, "overwrite", name)
	if err != nil {
		return err
	}
	durable := l.level == SyncAll
	tmp, err := l.writeTemp(path, content, durable)
	if err != nil {
		return fs.Fail("overwrite", name, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		_ = os.Remove(tmp)
		return fs.Fail("overwrite", name, err)
	}
	l.forgive(path)
	if durable {
		return fs.Fail("overwrite", name, l.syncEntry(filepath.Dir(path)))
	}
	return nil
}

// writeTemp writes content to a temporary file beside path and returns its
// name; after an error nothing is left but, at worst, a hidden orphan.
func (l *FS) writeTemp(path string, content []byte, durable bool) (string, error) {
	f, err := l.createTemp(path)
	if err != nil {
		return "", err
	}
	_, err = fs.WriteAll(f, content)
	if err == nil && durable {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// publish gives a complete temporary file its final name unless the name is
// taken. The temporary name is gone afterwards, or remains as a hidden orphan.
func (l *FS) publish(tmp, path string) error {
	err := os.Link(tmp, path)
	if errors.Is(err, fs.ErrExist) && sameFile(tmp, path) {
		// A network file system may repeat a request whose reply was lost; the
		// name in the way is then our own.
		err = nil
	}
	if noLinks(err) {
		err = renameNoReplace(tmp, path)
		if noLinks(err) || errors.Is(err, syscall.EINVAL) {
			err = errs.Unsupported("the file system has neither hard links nor a rename that refuses to overwrite (%v)", err)
		}
	}
	_ = os.Remove(tmp)
	if err == nil {
		l.forgive(path)
	}
	return err
}

func sameFile(a, b string) bool {
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// noLinks reports the errors by which file systems say that they do not know an
// operation. EPERM is what link(2) answers on FAT.
func noLinks(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) ||
		errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EOPNOTSUPP)
}
