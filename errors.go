package tideline

import "github.com/tideline-db/tideline/internal/errs"

// The errors of the engine. Each answers through errors.Is what happened, whether
// the call may be repeated, and whether it took effect; its text is one sentence
// that says what and where. Errors of the storage (fs.ErrNotExist, fs.ErrExist,
// fs.ErrPermission) and of a context keep their own identity.
var (
	// ErrInvalid: the input was refused, nothing changed, the writer is usable.
	ErrInvalid = errs.ErrInvalid
	// ErrUnsupported: the table uses something that would be answered wrongly;
	// refused by name, nothing changed.
	ErrUnsupported = errs.ErrUnsupported
	// ErrOverloaded: memory is full, nothing was accepted; commit, or try again.
	ErrOverloaded = errs.ErrOverloaded
	// ErrConflict: not published; another commit is in the way.
	ErrConflict = errs.ErrConflict
	// ErrFenced: not published; another writer owns the bucket. Stop.
	ErrFenced = errs.ErrFenced
	// ErrOutcomeUnknown: may or may not be published. Commit the same prepared
	// value again before anything else is decided.
	ErrOutcomeUnknown = errs.ErrOutcomeUnknown
	// ErrCorrupt: bytes of the table are damaged; see CorruptError.
	ErrCorrupt = errs.ErrCorrupt
	// ErrSnapshotExpired: a snapshot, its files or a ticket is gone; plan again.
	ErrSnapshotExpired = errs.ErrSnapshotExpired
	// ErrPoisoned: the session is over. Pinned plans stay readable, committed-only
	// reads go on; reopen the table and replay from its committed offsets.
	ErrPoisoned = errs.ErrPoisoned
	// ErrClosed: the handle was closed.
	ErrClosed = errs.ErrClosed
)

// CorruptError names the damaged file, the position and the expectation.
type CorruptError = errs.CorruptError
