package messages

import (
	"time"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/snapshot"
)

// OpenWriter asks for the writer lease. Exactly one writer holds it.
type OpenWriter struct {
	Reply func(lease int64, err error)
}

// CloseWriter gives the lease back. With rows that no prepare took, closing is
// an error and poisons the session, unless Discard says that they are given up
// on purpose (the session ends then as well, without an error).
type CloseWriter struct {
	Lease      int64
	Unprepared bool
	Discard    bool
	Reply      func(error)
}

// Spawn asks for the buckets of these parts. On success they are in the
// published registry.
type Spawn struct {
	Lease int64
	Parts []*bucket.Part
	Reply func(error)
}

// Spawned is the answer of the job that restored the counters of new buckets.
type Spawned struct {
	Request  Spawn
	Restored []bucket.Restore
	Seen     int64 // id of the snapshot that they were read from, 0 without
	Err      error
}

// Prepare announces a cut before it is posted to the buckets. Reply gets the
// outcome when every sealed segment is in data files.
type Prepare struct {
	Lease    int64
	Number   int64
	Epoch    int64
	Buckets  int
	Position []byte
	// HasPosition tells an empty position from none.
	HasPosition bool
	Reply       func(Prepared, error)
}

// Prepared describes a finished prepare.
type Prepared struct {
	Number     int64
	Identifier int64
	Rows       int64
	Bytes      int64
	Files      int
	Buckets    int
}

// Sealed reports what a bucket cut off for a prepare. Segments is empty when it
// had nothing new; Begin and End are then both its offset end.
type Sealed struct {
	Prepare  int64
	ID       bucket.ID
	Segments []*bucket.Segment
	Begin    int64
	End      int64
}

// CutVisible says that the frontier covers the cut of a prepare: only now may
// its segments become files, or a plan could see the snapshot before the cut.
type CutVisible struct {
	Prepare int64
}

// Flushed is the result of one flush job.
type Flushed struct {
	Prepare int64
	ID      bucket.ID
	Message snapshot.Message
	Rows    int64
	Bytes   int64
	Err     error
}

// Commit publishes a prepare and every earlier one, in order.
type Commit struct {
	Number int64
	Reply  func(snapshot.CommitResult, error)
}

// Published is the result of one commit job.
type Published struct {
	Number int64
	Result snapshot.CommitResult
	Err    error
}

// Abort gives up the newest prepare, which must surely be unpublished.
// Decided is called at once, Deleted when its files are gone; not after an error
// of Decided.
type Abort struct {
	Number  int64
	Decided func(rejoined []bucket.ID, err error)
	Deleted func(error)
}

// Aborted is the result of the job that deleted the files of a prepare.
type Aborted struct {
	Number int64
	Err    error
	Reply  func(error)
}

// Refresh adopts what was committed since the adopted snapshot.
type Refresh struct {
	Reply func(*manifest.Snapshot, error)
}

// Followed is the result of the job that read the chain of snapshots.
type Followed struct {
	Chain *snapshot.Chain
	Err   error
}

// AwaitCredits waits until Bytes fit into the budget. Ready is called once;
// ErrOverloaded says that nothing in flight can ever free enough.
type AwaitCredits struct {
	ID    int64
	Bytes int64
	Ready func(error)
}

// CancelCredits ends a wait; its Ready is not called any more.
type CancelCredits struct {
	ID    int64
	Bytes int64
}

// CommitFailed says that the background commit that was to free memory failed.
type CommitFailed struct{ Err error }

// CreditsReturned wakes the waits for credits.
type CreditsReturned struct{}

// Pin puts a set of holds under one ticket for a limited time.
type Pin struct {
	Release func()
	TTL     time.Duration
	Payload any
	Reply   func(ticket int64, err error)
}

// Resolve reads the payloads of tickets, all or none, without consuming them.
type Resolve struct {
	Tickets []int64
	Reply   func(payloads []any, err error)
}

// Release consumes tickets. With Strict each must be valid, or none is consumed
// and the answer is an error; without it unknown ones are fine.
type Release struct {
	Tickets []int64
	Strict  bool
	Reply   func(error)
}

// Tick drops expired tickets.
type Tick struct{}

// Shutdown ends the session: new work is refused, running jobs are awaited, the
// buckets are retired. Reply is called when nothing is left.
type Shutdown struct {
	Reply func()
}
