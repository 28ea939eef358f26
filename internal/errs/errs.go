package errs

import (
	"errors"
	"fmt"
)

// The sentinels; the table in doc.go says what a caller may do after each.
var (
	// ErrInvalid: the input was refused, nothing changed, the writer is usable.
	ErrInvalid = errors.New("invalid")
	// ErrUnsupported: an option, engine, version or feature that would be
	// answered wrongly; nothing changed.
	ErrUnsupported = errors.New("unsupported")
	// ErrOverloaded: nothing was accepted, retry later with the same input.
	ErrOverloaded = errors.New("overloaded")
	// ErrConflict: not published; somebody else's commit is in the way.
	ErrConflict = errors.New("conflict")
	// ErrFenced: not published; a newer writer owns the bucket, stop.
	ErrFenced = errors.New("fenced")
	// ErrOutcomeUnknown: may or may not be published; ask again with the same
	// prepared value before anything is deleted or retried differently.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrCorrupt: bytes of the table are damaged; no partial result was passed on.
	ErrCorrupt = errors.New("corrupt")
	// ErrSnapshotExpired: a snapshot or its files disappeared; plan again.
	ErrSnapshotExpired = errors.New("snapshot expired")
	// ErrPoisoned: the session is terminal; pinned plans stay readable; reopen
	// and replay.
	ErrPoisoned = errors.New("poisoned")
	// ErrClosed: the handle was closed.
	ErrClosed = errors.New("closed")
)

// CorruptError says which file is damaged, where, and what was expected.
type CorruptError struct {
	File   string // table-relative or full name, as known to the reader
	Offset int64  // byte position, -1 when it is not known
	Reason string
}

func (e *CorruptError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("corrupt: %s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("corrupt: %s at byte %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// Corrupt builds a CorruptError; offset -1 means not known.
func Corrupt(file string, offset int64, format string, args ...any) error {
	return &CorruptError{File: file, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// Invalid wraps ErrInvalid with a sentence.
func Invalid(format string, args ...any) error { return wrap(ErrInvalid, format, args...) }

// Unsupported wraps ErrUnsupported with a sentence that names the feature.
func Unsupported(format string, args ...any) error { return wrap(ErrUnsupported, format, args...) }

// Wrap puts a sentence in front of a sentinel: "<sentence>: <sentinel>".
func Wrap(sentinel error, format string, args ...any) error { return wrap(sentinel, format, args...) }

func wrap(sentinel error, format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), sentinel)
}
