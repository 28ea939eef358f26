package tideline

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/actors"
	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/local"
	"github.com/tideline-db/tideline/internal/errs"
)

// Options configure a table handle. The zero value is a good default; they are
// checked once, when the table is opened.
type Options struct {
	// CommitUser names this writing job in snapshots; it must stay the same when
	// the job restarts. Default "tideline".
	CommitUser string
	// IO is the storage; default the local file system.
	IO fs.FileIO
	// Branch works on a branch instead of main.
	Branch string
	// Runtime runs the actors; default one of the table's own. Pass
	// actors.NewRuntime(system) to live in an existing actor system; the caller
	// closes it after the table.
	Runtime actors.Runtime
	// MemoryBytesMax bounds the rows in memory: building, sealed and pinned.
	// Default 1 GiB. A write waits when it is used up.
	MemoryBytesMax int64
	// TicketTTL is how long a planned split may wait for its reader; default the
	// table's realtime.read-view-ttl, else 5 minutes.
	TicketTTL time.Duration
	// AutoCommit prepares, commits and refreshes in the background.
	AutoCommit AutoCommit
	// ReadBatchRows bounds the rows of one batch of a reader; default the table's
	// read.batch-size, at least 8192.
	ReadBatchRows int
	// Allocator serves the batches that readers return; default the Go heap.
	Allocator memory.Allocator
	// MapPath replaces a prefix of the recorded URI of data files outside the
	// table; such files are refused when no prefix fits.
	MapPath map[string]string
	// RecoveryOffsets opens a table whose progress is gone: the committed end per
	// bucket, as the caller knows it. Buckets that are missing begin at 0.
	RecoveryOffsets []BucketOffset
	// Logger gets what an operator should see; default none.
	Logger *slog.Logger
}

// AutoCommit says when rows in memory become a snapshot without a call. Zero
// values switch a trigger off.
type AutoCommit struct {
	Interval time.Duration // time since the last commit, when rows are waiting
	Bytes    int64         // bytes in memory that no prepare took
	// Done is told how each of these commits ended and how long it took, from
	// before its cut until it was adopted. It must not block.
	Done func(c Commit, took time.Duration, err error)
}

func (a AutoCommit) enabled() bool { return a.Interval > 0 || a.Bytes > 0 }

const (
	defaultCommitUser     = "tideline"
	defaultMemoryBytesMax = 1 << 30
	defaultReadBatchRows  = 8192
)

// userName is what fits into a consumer file's name.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (o Options) withDefaults() (Options, error) {
	if o.CommitUser == "" {
		o.CommitUser = defaultCommitUser
	}
	if !userName.MatchString(o.CommitUser) {
		return o, errs.Invalid("commit user %q: want 1 to 128 letters, digits, dots, dashes or underscores, beginning with a letter or digit", o.CommitUser)
	}
	if o.IO == nil {
		o.IO = local.New(local.Options{})
	}
	if o.MemoryBytesMax == 0 {
		o.MemoryBytesMax = defaultMemoryBytesMax
	}
	if o.MemoryBytesMax < 0 || o.TicketTTL < 0 || o.ReadBatchRows < 0 || o.AutoCommit.Interval < 0 || o.AutoCommit.Bytes < 0 {
		return o, errs.Invalid("negative limit in options %s", o)
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// String prints the options that matter to a reader of a log.
func (o Options) String() string {
	return fmt.Sprintf("{user %s, branch %q, memory %d bytes, ticket ttl %s, auto commit every %s or %d bytes, read batch %d rows}",
		o.CommitUser, o.Branch, o.MemoryBytesMax, o.TicketTTL, o.AutoCommit.Interval, o.AutoCommit.Bytes, o.ReadBatchRows)
}
