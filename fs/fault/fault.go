package fault

import (
	"context"
	"io"
	"strings"
	"sync"
	"syscall"

	"github.com/tideline-db/tideline/fs"
)

// FS is a store with faults.
type FS struct {
	inner fs.FileIO

	mu       sync.Mutex
	plan     Plan
	matched  []int // per rule: matching operations so far
	log      []Op
	injected []Op
}

var _ fs.FileIO = (*FS)(nil)

// Wrap returns inner with the faults of plan.
func Wrap(inner fs.FileIO, plan Plan) *FS {
	f := &FS{inner: inner}
	f.SetPlan(plan)
	return f
}

// SetPlan replaces the plan; its rules count from now on. Numbers and log go on.
func (f *FS) SetPlan(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.matched = plan, make([]int, len(plan.Rules))
}

// Count returns the number of operations so far.
func (f *FS) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

// Log returns a copy of all operations so far, in order.
func (f *FS) Log() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Op(nil), f.log...)
}

// Injected returns the operations that did not pass, in order. A test whose
// fault never struck has tested nothing.
func (f *FS) Injected() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Op(nil), f.injected...)
}

func (f *FS) decide(kind Kind, name string) Decision {
	f.mu.Lock()
	op := Op{Index: len(f.log), Kind: kind, Name: name}
	f.log = append(f.log, op)
	d := Decision{}
	for i, r := range f.plan.Rules {
		if !r.selects(op) {
			continue
		}
		n := f.matched[i]
		f.matched[i]++
		if d.Action == Pass && (n == r.At || r.Onward && n > r.At) {
			d = r.Do
		}
	}
	readOnly, hook := f.plan.ReadOnly, f.plan.Hook
	f.mu.Unlock()

	switch {
	case readOnly && kind.Mutates():
		d = Decision{Action: Fail, Err: syscall.EROFS}
	case hook != nil:
		if h := hook(op); h.Action != Pass {
			d = h
		}
	}
	if d.Action != Pass {
		f.mu.Lock()
		f.injected = append(f.injected, op)
		f.mu.Unlock()
		if d.Err == nil {
			d.Err = ErrInjected
		}
	}
	return d
}

// do runs one operation under a decision. Half of an operation that has no
// halves is a failure without effect.
func (f *FS) do(ctx context.Context, kind Kind, name string, effect func() error) error {
	d := f.decide(kind, name)
	switch d.Action {
	case Fail:
		return fs.Fail(string(kind), name, d.Err)
	case Short:
		return fs.Fail(string(kind), name, io.ErrShortWrite)
	case Hang:
		<-ctx.Done()
		return fs.Fail(string(kind), name, ctx.Err())
	}
	err := effect()
	if d.Action == FailAfter && err == nil {
		err = fs.Fail(string(kind), name, d.Err)
	}
	return err
}

// Capabilities are those of the plan, or else of the wrapped store.
func (f *FS) Capabilities() fs.Capabilities {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan.Capabilities != nil {
		return *f.plan.Capabilities
	}
	return f.inner.Capabilities()
}

// Open implements fs.FileIO.
func (f *FS) Open(ctx context.Context, name string) (fs.File, error) {
	var opened fs.File
	err := f.do(ctx, Open, name, func() (err error) {
		opened, err = f.inner.Open(ctx, name)
		return err
	})
	if err != nil {
		if opened != nil {
			_ = opened.Close() // the reply is lost, nobody else can close it
		}
		return nil, err
	}
	return &file{File: opened, store: f, ctx: ctx}, nil
}

// Create implements fs.FileIO.
func (f *FS) Create(ctx context.Context, name string) (fs.Writer, error) {
	var created fs.Writer
	err := f.do(ctx, Create, name, func() (err error) {
		created, err = f.inner.Create(ctx, name)
		return err
	})
	if err != nil {
		if created != nil {
			_ = created.Abort() // the reply is lost, nobody else can end it
		}
		return nil, err
	}
	return &writer{inner: created, store: f, ctx: ctx, name: name}, nil
}

// CreateIfAbsent implements fs.FileIO.
func (f *FS) CreateIfAbsent(ctx context.Context, name string, content []byte) error {
	return f.do(ctx, CreateIfAbsent, name, func() error { return f.inner.CreateIfAbsent(ctx, name, content) })
}

// Overwrite implements fs.FileIO.
func (f *FS) Overwrite(ctx context.Context, name string, content []byte) error {
	return f.do(ctx, Overwrite, name, func() error { return f.inner.Overwrite(ctx, name, content) })
}

// Stat implements fs.FileIO.
func (f *FS) Stat(ctx context.Context, name string) (info fs.Info, err error) {
	err = f.do(ctx, Stat, name, func() (err error) {
		info, err = f.inner.Stat(ctx, name)
		return err
	})
	if err != nil {
		return fs.Info{}, err
	}
	return info, nil
}

// List implements fs.FileIO.
func (f *FS) List(ctx context.Context, dir string) (infos []fs.Info, err error) {
	err = f.do(ctx, List, dir, func() (err error) {
		infos, err = f.inner.List(ctx, dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	return infos, nil
}

// Delete implements fs.FileIO.
func (f *FS) Delete(ctx context.Context, name string) error {
	return f.do(ctx, Delete, name, func() error { return f.inner.Delete(ctx, name) })
}

// Sync implements fs.FileIO; it is one operation however many names it has.
func (f *FS) Sync(ctx context.Context, names ...string) error {
	return f.do(ctx, Sync, strings.Join(names, " "), func() error { return f.inner.Sync(ctx, names...) })
}

// file counts the reads of one open file.
type file struct {
	fs.File
	store *FS
	ctx   context.Context // of Open: ReadAt has none to hang on
}

func (r *file) ReadAt(p []byte, off int64) (int, error) {
	d := r.store.decide(Read, r.Name())
	switch d.Action {
	case Fail:
		return 0, fs.Fail("read", r.Name(), d.Err)
	case Hang:
		<-r.ctx.Done()
		return 0, fs.Fail("read", r.Name(), r.ctx.Err())
	case Short:
		return r.File.ReadAt(p[:len(p)/2], off)
	}
	n, err := r.File.ReadAt(p, off)
	if d.Action == FailAfter {
		return 0, fs.Fail("read", r.Name(), d.Err)
	}
	return n, err
}

// writer counts the calls of one writer.
type writer struct {
	inner fs.Writer
	store *FS
	ctx   context.Context // of Create: the methods have none to hang on
	name  string
	ended bool
}

func (w *writer) Write(p []byte) (int, error) {
	d := w.store.decide(Write, w.name)
	switch d.Action {
	case Fail:
		return 0, fs.Fail("write", w.name, d.Err)
	case Hang:
		<-w.ctx.Done()
		return 0, fs.Fail("write", w.name, w.ctx.Err())
	case Short:
		return w.inner.Write(p[:len(p)/2])
	}
	n, err := w.inner.Write(p)
	if d.Action == FailAfter {
		return 0, fs.Fail("write", w.name, d.Err)
	}
	return n, err
}

// Commit ends the writer whatever the decision, as every store's Commit does: a
// commit that fails before its effect drops the temporary file.
func (w *writer) Commit() error {
	reached := false
	err := w.store.do(w.ctx, Commit, w.name, func() error {
		reached = true
		return w.inner.Commit()
	})
	if !reached {
		_ = w.inner.Abort() // the injected error is the one to report
	}
	w.ended = true
	return err
}

// Abort after the end is a no-op and no operation.
func (w *writer) Abort() error {
	if w.ended {
		return nil
	}
	w.ended = true
	reached := false
	err := w.store.do(w.ctx, Abort, w.name, func() error {
		reached = true
		return w.inner.Abort()
	})
	if !reached {
		_ = w.inner.Abort() // frees the handle; the injected error is reported
	}
	return err
}
