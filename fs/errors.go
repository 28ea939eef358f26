package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"syscall"
)

// OpError says which operation failed on which file, and why.
type OpError struct {
	Op   string // "open", "create", "sync", ...
	Name string // as the caller gave it
	Err  error
}

func (e *OpError) Error() string { return e.Op + " " + e.Name + ": " + e.Err.Error() }

// Unwrap gives errors.Is the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Fail wraps err as an OpError; nil stays nil. The path that the os package puts
// into its errors is dropped, since it repeats the name or shows a temporary one.
func Fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var pathErr *iofs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		err = &step{pathErr.Op, pathErr.Err}
	case errors.As(err, &linkErr):
		err = &step{linkErr.Op, linkErr.Err}
	}
	return &OpError{Op: op, Name: name, Err: err}
}

// step is the system call inside an operation that failed.
type step struct {
	call string
	err  error
}

func (s *step) Error() string { return s.call + ": " + s.err.Error() }
func (s *step) Unwrap() error { return s.err }

// IsNoSpace reports whether a write failed because the device or the quota is
// full; the same write may succeed later.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsRefused reports whether a store answered for certain that it did not do what it
// was asked: no space, no permission, or no such place.
func IsRefused(err error) bool {
	return IsNoSpace(err) || IsReadOnly(err) || errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// IsReadOnly reports whether a write failed because the caller may not write
// there: a read-only mount or missing permission.
func IsReadOnly(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, iofs.ErrPermission)
}
