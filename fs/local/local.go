package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/google/uuid"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
)

// SyncLevel says what is made durable, and when; the table is in the package
// comment.
type SyncLevel int

const (
	// SyncCommit is the default: what a snapshot needs is durable before the
	// snapshot is, and nothing waits earlier than that.
	SyncCommit SyncLevel = iota
	// SyncNone leaves everything to the operating system: a power loss may take
	// committed snapshots with it. For tests and throw-away tables.
	SyncNone
	// SyncAll makes every file durable when it gets its name.
	SyncAll
)

// String returns the name of the level as it is written in options.
func (l SyncLevel) String() string {
	switch l {
	case SyncCommit:
		return "commit"
	case SyncNone:
		return "none"
	case SyncAll:
		return "all"
	}
	return "invalid"
}

// Options of a local store; the zero value is the default.
type Options struct {
	Sync SyncLevel
}

// FS implements fs.FileIO on the operating system's files. It holds no open
// files itself and needs no Close.
type FS struct {
	level SyncLevel

	mu sync.Mutex
	// durable holds the absolute directories whose entry in their parent
	// survived a fsync of the parent. Grows with the directories of a table.
	durable map[string]struct{}
	// doubtful holds the files whose fsync failed, with the error.
	doubtful map[string]error
}

// New returns a store with the given options. An unknown level counts as SyncAll.
func New(o Options) *FS {
	if o.Sync < SyncCommit || o.Sync > SyncAll {
		o.Sync = SyncAll
	}
	return &FS{level: o.Sync, durable: map[string]struct{}{}, doubtful: map[string]error{}}
}

var _ fs.FileIO = (*FS)(nil)

// Capabilities of a POSIX file system; Sync is false at SyncNone.
func (l *FS) Capabilities() fs.Capabilities {
	return fs.Capabilities{AtomicCreate: true, AtomicRename: true, List: true, Sync: l.level != SyncNone}
}

// begin checks what every operation checks first and returns the absolute path.
func begin(ctx context.Context, op, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fs.Fail(op, name, err)
	}
	if runtime.GOOS == "windows" {
		return "", fs.Fail(op, name, errs.Unsupported("tables on Windows file systems are not supported, use Linux or macOS"))
	}
	clean, err := fs.LocalPath(name)
	if err != nil {
		return "", fs.Fail(op, name, err)
	}
	abs, err := filepath.Abs(clean)
	return abs, fs.Fail(op, name, err)
}

// Open implements fs.FileIO.
func (l *FS) Open(ctx context.Context, name string) (fs.File, error) {
	path, err := begin(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fs.Fail("open", name, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		_ = f.Close() // nothing was written through it
		return nil, fs.Fail("open", name, err)
	}
	return &file{File: f, name: name, size: info.Size()}, nil
}

type file struct {
	*os.File
	name string
	size int64
}

func (f *file) Name() string { return f.name }
func (f *file) Size() int64  { return f.size }

// Stat implements fs.FileIO.
func (l *FS) Stat(ctx context.Context, name string) (fs.Info, error) {
	path, err := begin(ctx, "stat", name)
	if err != nil {
		return fs.Info{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fs.Info{}, fs.Fail("stat", name, err)
	}
	return describe(filepath.Base(path), info), nil
}

func describe(base string, info os.FileInfo) fs.Info {
	if info.IsDir() {
		return fs.Info{Name: base, IsDir: true}
	}
	return fs.Info{Name: base, Size: info.Size()}
}

// List implements fs.FileIO. Entries that vanish while it runs, and symbolic
// links that lead nowhere, are left out.
func (l *FS) List(ctx context.Context, dir string) ([]fs.Info, error) {
	path, err := begin(ctx, "list", dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fs.Fail("list", dir, err)
	}
	infos := make([]fs.Info, 0, len(entries))
	for i, e := range entries {
		if fs.IsTemp(e.Name()) {
			continue
		}
		if i%1024 == 1023 && ctx.Err() != nil {
			return nil, fs.Fail("list", dir, ctx.Err())
		}
		info, err := e.Info()
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			info, err = os.Stat(filepath.Join(path, e.Name()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fs.Fail("list", fs.Join(dir, e.Name()), err)
		}
		infos = append(infos, describe(e.Name(), info))
	}
	slices.SortFunc(infos, func(a, b fs.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

// Delete implements fs.FileIO. Directories are refused.
func (l *FS) Delete(ctx context.Context, name string) error {
	path, err := begin(ctx, "delete", name)
	if err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		return fs.Fail("delete", name, syscall.EISDIR)
	}
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fs.Fail("delete", name, err)
}

// createTemp opens a fresh temporary file beside path, making missing parents.
func (l *FS) createTemp(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	const baseMax = 200 // leaves room for the id within a component's 255 bytes
	if len(base) > baseMax {
		base = base[:baseMax]
	}
	tmp := filepath.Join(dir, "."+base+"."+uuid.NewString()+".tmp")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := l.makeDirs(filepath.Clean(dir)); err != nil {
		return nil, err
	}
	return os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
}
