package mem

import (
	"bytes"
	"context"
	iofs "io/fs"
	"syscall"

	"github.com/tideline-db/tideline/fs"
)

// Create implements fs.FileIO.
func (m *FS) Create(ctx context.Context, name string) (fs.Writer, error) {
	parts, err := begin(ctx, "create", name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(parts)
	if err != nil {
		return nil, fs.Fail("create", name, err)
	}
	w := &writer{store: m, name: name, dir: dir, base: base, temp: m.tempName(base), node: &node{}}
	dir.put(w.temp, w.node)
	return w, nil
}

// writer is one new file before it has its name. It serves one goroutine.
type writer struct {
	store      *FS
	name       string
	dir        *node
	base, temp string
	node       *node // nil once ended
}

func (w *writer) Write(p []byte) (int, error) {
	if w.node == nil {
		return 0, fs.Fail("write", w.name, iofs.ErrClosed)
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.node.data = append(w.node.data, p...)
	return len(p), nil
}

func (w *writer) Commit() error {
	if w.node == nil {
		return fs.Fail("commit", w.name, iofs.ErrClosed)
	}
	n := w.node
	w.node = nil
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.dir.put(w.temp, nil)
	if w.dir.live[w.base] != nil {
		return fs.Fail("commit", w.name, syscall.EEXIST)
	}
	w.dir.put(w.base, n)
	return nil
}

func (w *writer) Abort() error {
	if w.node == nil {
		return nil
	}
	w.node = nil
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.dir.put(w.temp, nil)
	return nil
}

// CreateIfAbsent implements fs.FileIO. File, name and ancestors are durable on
// return.
func (m *FS) CreateIfAbsent(ctx context.Context, name string, content []byte) error {
	const op = "create-if-absent"
	parts, err := begin(ctx, op, name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(parts)
	if err == nil && dir.live[base] != nil {
		err = syscall.EEXIST
	}
	if err != nil {
		return fs.Fail(op, name, err)
	}
	dir.put(base, &node{data: bytes.Clone(content), synced: len(content)})
	m.syncEntry(parts)
	return nil
}

// Overwrite implements fs.FileIO. The new content is not durable before a Sync.
func (m *FS) Overwrite(ctx context.Context, name string, content []byte) error {
	parts, err := begin(ctx, "overwrite", name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(parts)
	if err == nil && dir.live[base] != nil && dir.live[base].dir {
		err = syscall.EISDIR
	}
	if err != nil {
		return fs.Fail("overwrite", name, err)
	}
	dir.put(base, &node{data: bytes.Clone(content)})
	return nil
}
