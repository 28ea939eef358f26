package fs

import (
	"context"
	"io"
	iofs "io/fs"
)

// ErrExist and ErrNotExist are the two answers callers branch on; every
// implementation returns errors that match them through errors.Is.
var (
	ErrExist    = iofs.ErrExist
	ErrNotExist = iofs.ErrNotExist
)

// Capabilities says what a store guarantees. An engine that needs a missing one
// refuses to open the table for writing, by name.
type Capabilities struct {
	AtomicCreate bool // CreateIfAbsent can have exactly one winner
	AtomicRename bool // Overwrite replaces in one step
	List         bool // List sees what was written before it
	Sync         bool // Sync makes bytes and names survive a power loss
}

// FileIO is the only way the engine touches storage. Names are slash-separated;
// implementations are safe for concurrent use. A file under its final name is
// always complete: Create publishes it on Commit, never earlier.
type FileIO interface {
	Capabilities() Capabilities
	// Open reads an existing file; ErrNotExist when there is none.
	Open(ctx context.Context, name string) (File, error)
	// Create starts a new file under a temporary name, making missing parent
	// directories. Commit gives it its final name and fails with ErrExist if
	// that name is taken.
	Create(ctx context.Context, name string) (Writer, error)
	// CreateIfAbsent publishes content under name so that exactly one caller
	// wins; the others get ErrExist. Content and name are durable on return
	// unless the store was told not to sync. Any other error means: unknown.
	CreateIfAbsent(ctx context.Context, name string, content []byte) error
	// Overwrite replaces name (hint files). Readers see the old or the new content.
	Overwrite(ctx context.Context, name string, content []byte) error
	// Stat returns the size; ErrNotExist when there is none.
	Stat(ctx context.Context, name string) (Info, error)
	// List returns the entries of one directory sorted by name, not recursive,
	// temporary files left out; ErrNotExist when there is no such directory.
	List(ctx context.Context, dir string) ([]Info, error)
	// Delete removes a file; a missing file is not an error.
	Delete(ctx context.Context, name string) error
	// Sync makes the named committed files and their directory entries durable,
	// in one go so that a stage of a commit waits once. A no-op where the store
	// was opened without sync.
	Sync(ctx context.Context, names ...string) error
}

// File is an open, immutable file.
type File interface {
	io.ReaderAt
	io.Closer
	Name() string
	Size() int64
}

// Writer fills one new file. Exactly one of Commit and Abort ends it; Abort
// after Commit is a no-op.
type Writer interface {
	io.Writer
	Commit() error
	Abort() error
}

// Info describes one directory entry. Name is the base name.
type Info struct {
	Name  string
	Size  int64
	IsDir bool
}
