// Package errs holds the sentinel errors of the engine. The root package
// re-exports them; every other package wraps them with one sentence that says
// what, where and whether it happened.
//
// # Model
//
// An error answers three questions through errors.Is: what is it, did it happen,
// and what may the caller do?
//
//	sentinel            did it happen?    then
//	ErrInvalid          no                correct the input; the writer is usable
//	ErrUnsupported      no                use another engine, or another option
//	ErrOverloaded       no                the same input again, later
//	ErrConflict         no                writing is closed; commit the same value again, or reopen
//	ErrFenced           no                stop: somebody else owns the bucket
//	ErrOutcomeUnknown   perhaps           commit the same value again: it finds out
//	ErrCorrupt          no rows given     repair or restore the named file
//	ErrSnapshotExpired  no                plan again
//	ErrPoisoned         see its cause     reopen and replay; pinned plans stay readable
//	ErrClosed           no                open again
//
// ErrPoisoned wraps the cause that ended the session, so errors.Is finds both.
//
// # How to make one
//
// Invalid, Unsupported and Wrap put a sentence before a sentinel; Corrupt names
// file and byte. Whoever passes an error on adds where it was with fmt.Errorf and
// %w.
//
// # Caveats
//
// Errors of the store and of a context pass through as they are: a write or a
// commit whose context ended may have gone on.
package errs
