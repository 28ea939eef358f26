package mem

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/tideline-db/tideline/fs"
)

// FS implements fs.FileIO in memory. It needs no Close.
type FS struct {
	mu   sync.Mutex
	root *node
	temp int // number of the last temporary name
}

// New returns an empty file system.
func New() *FS { return &FS{root: newDir()} }

var _ fs.FileIO = (*FS)(nil)

// node is a file or a directory, guarded by the mutex of its FS. The bytes of a
// file are only ever appended to, so a slice handed out never changes.
type node struct {
	data   []byte
	synced int // the prefix of data that is durable

	dir  bool
	live map[string]*node
	disk map[string]*node
	// dirty holds the names for which live and disk may differ.
	dirty map[string]struct{}
}

func newDir() *node {
	return &node{dir: true, live: map[string]*node{}, disk: map[string]*node{}, dirty: map[string]struct{}{}}
}

// put binds a name in the directory; nil removes it.
func (d *node) put(base string, n *node) {
	if n == nil {
		delete(d.live, base)
	} else {
		d.live[base] = n
	}
	d.dirty[base] = struct{}{}
}

// syncEntries is the fsync of a directory.
func (d *node) syncEntries() {
	for base := range d.dirty {
		if n := d.live[base]; n != nil {
			d.disk[base] = n
		} else {
			delete(d.disk, base)
		}
	}
	clear(d.dirty)
}

// Capabilities of the store: all.
func (m *FS) Capabilities() fs.Capabilities {
	return fs.Capabilities{AtomicCreate: true, AtomicRename: true, List: true, Sync: true}
}

// begin checks what every operation checks first and splits a name into its
// components; none for the root.
func begin(ctx context.Context, op, name string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, fs.Fail(op, name, err)
	}
	clean, err := fs.LocalPath(name)
	if err != nil {
		return nil, fs.Fail(op, name, err)
	}
	clean = path.Clean("/" + clean)[1:]
	if clean == "" {
		return nil, nil
	}
	return strings.Split(clean, "/"), nil
}

// find walks to a node. The caller holds the mutex.
func (m *FS) find(parts []string) (*node, error) {
	n := m.root
	for _, part := range parts {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		next := n.live[part]
		if next == nil {
			return nil, syscall.ENOENT
		}
		n = next
	}
	return n, nil
}

// parent walks to the directory of a name, making what is missing.
func (m *FS) parent(parts []string) (*node, string, error) {
	if len(parts) == 0 {
		return nil, "", syscall.EISDIR
	}
	n := m.root
	for _, part := range parts[:len(parts)-1] {
		if !n.dir {
			return nil, "", syscall.ENOTDIR
		}
		next := n.live[part]
		if next == nil {
			next = newDir()
			n.put(part, next)
		}
		n = next
	}
	if !n.dir {
		return nil, "", syscall.ENOTDIR
	}
	return n, parts[len(parts)-1], nil
}

// Open implements fs.FileIO.
func (m *FS) Open(ctx context.Context, name string) (fs.File, error) {
	parts, err := begin(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(parts)
	if err == nil && n.dir {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, fs.Fail("open", name, err)
	}
	return &file{name: name, data: n.data}, nil
}

// file is an open file; it keeps its bytes whatever happens to its name.
type file struct {
	name string
	data []byte

	mu     sync.Mutex
	closed bool
}

func (f *file) Name() string { return f.name }
func (f *file) Size() int64  { return int64(len(f.data)) }

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	switch {
	case closed:
		return 0, fs.Fail("read", f.name, iofs.ErrClosed)
	case off < 0:
		return 0, fs.Fail("read", f.name, syscall.EINVAL)
	case off >= int64(len(f.data)):
		return 0, io.EOF
	}
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fs.Fail("close", f.name, iofs.ErrClosed)
	}
	f.closed = true
	return nil
}

// Stat implements fs.FileIO.
func (m *FS) Stat(ctx context.Context, name string) (fs.Info, error) {
	parts, err := begin(ctx, "stat", name)
	if err != nil {
		return fs.Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(parts)
	if err != nil {
		return fs.Info{}, fs.Fail("stat", name, err)
	}
	return describe(path.Base("/"+strings.Join(parts, "/")), n), nil
}

func describe(base string, n *node) fs.Info {
	return fs.Info{Name: base, Size: int64(len(n.data)), IsDir: n.dir}
}

// List implements fs.FileIO.
func (m *FS) List(ctx context.Context, dir string) ([]fs.Info, error) {
	parts, err := begin(ctx, "list", dir)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(parts)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, fs.Fail("list", dir, err)
	}
	infos := make([]fs.Info, 0, len(n.live))
	for _, base := range slices.Sorted(maps.Keys(n.live)) {
		if !fs.IsTemp(base) {
			infos = append(infos, describe(base, n.live[base]))
		}
	}
	return infos, nil
}

// Delete implements fs.FileIO. Directories are refused.
func (m *FS) Delete(ctx context.Context, name string) error {
	parts, err := begin(ctx, "delete", name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(parts)
	switch {
	case err == syscall.ENOENT:
		return nil
	case err == nil && n.dir:
		err = syscall.EISDIR
	}
	if err != nil {
		return fs.Fail("delete", name, err)
	}
	dir, base, err := m.parent(parts)
	if err == nil {
		dir.put(base, nil)
	}
	return fs.Fail("delete", name, err)
}

// Sync implements fs.FileIO.
func (m *FS) Sync(ctx context.Context, names ...string) error {
	for _, name := range names {
		parts, err := begin(ctx, "sync", name)
		if err != nil {
			return err
		}
		m.mu.Lock()
		n, err := m.find(parts)
		if err == nil {
			n.synced = len(n.data)
			m.syncEntry(parts)
		}
		m.mu.Unlock()
		if err != nil {
			return fs.Fail("sync", name, err)
		}
	}
	return nil
}

// syncEntry makes the directory of a name durable, and those ancestors whose
// entry on the way to it is not yet.
func (m *FS) syncEntry(parts []string) {
	n := m.root
	for i, part := range parts {
		if _, dirty := n.dirty[part]; dirty || i == len(parts)-1 {
			n.syncEntries()
		}
		n = n.live[part]
	}
}

// tempName returns the next temporary name beside base.
func (m *FS) tempName(base string) string {
	m.temp++
	return fmt.Sprintf(".%s.%d.tmp", base, m.temp)
}
