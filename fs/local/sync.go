package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/tideline-db/tideline/fs"
)

// syncParallel bounds the fsyncs in flight of one call: enough that a journal
// groups them, few enough not to starve others of threads.
const syncParallel = 8

// Sync implements fs.FileIO: first all files, then their distinct directories.
func (l *FS) Sync(ctx context.Context, names ...string) error {
	paths := make([]string, len(names))
	dirs := make([]string, 0, 1)
	for i, name := range names {
		path, err := begin(ctx, "sync", name)
		if err != nil {
			return err
		}
		paths[i] = path
		dirs = append(dirs, filepath.Dir(path))
	}
	if l.level == SyncNone {
		return nil
	}
	err := parallel(len(paths), func(i int) error {
		if err := ctx.Err(); err != nil {
			return fs.Fail("sync", names[i], err)
		}
		return fs.Fail("sync", names[i], l.syncFile(paths[i]))
	})
	if err != nil {
		return err
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	return parallel(len(dirs), func(i int) error {
		if err := ctx.Err(); err != nil {
			return fs.Fail("sync", dirs[i], err)
		}
		return fs.Fail("sync", dirs[i], l.syncEntry(dirs[i]))
	})
}

// parallel calls do(0..n-1), at most syncParallel at a time, waits for all and
// returns the error of the lowest index.
func parallel(n int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	failed := make([]error, n)
	slots := make(chan struct{}, syncParallel)
	var group sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			failed[i] = do(i)
			<-slots
		})
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *FS) syncFile(path string) error {
	l.mu.Lock()
	err := l.doubtful[path]
	l.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if err != nil {
		l.mu.Lock()
		l.doubtful[path] = err
		l.mu.Unlock()
	}
	return errors.Join(err, f.Close())
}

// forgive forgets a failed fsync: the name now belongs to a new file.
func (l *FS) forgive(path string) {
	l.mu.Lock()
	delete(l.doubtful, path)
	l.mu.Unlock()
}

// syncEntry makes the entries of dir durable, and those of the ancestors that
// lead to it as far as that is not known of them yet.
func (l *FS) syncEntry(dir string) error {
	if err := syncDir(dir); err != nil {
		return err
	}
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		l.mu.Lock()
		_, known := l.durable[dir]
		l.mu.Unlock()
		if known {
			return nil
		}
		// A directory that we may not read is one that we made nothing in.
		if err := syncDir(parent); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
		l.mu.Lock()
		l.durable[dir] = struct{}{}
		l.mu.Unlock()
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // file systems that keep directories durable by themselves say so
	}
	return errors.Join(err, f.Close())
}

// makeDirs makes dir and its missing ancestors. What was known about a missing
// one belonged to a directory that somebody removed since.
func (l *FS) makeDirs(dir string) error {
	l.mu.Lock()
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		delete(l.durable, d)
	}
	l.mu.Unlock()
	return os.MkdirAll(dir, 0o777)
}
