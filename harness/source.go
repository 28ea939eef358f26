package harness

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline"
)

// Source is an input: a table and the batches to write to it. It can be read
// from the start any number of times, and always yields the same: that is how
// a mismatch is explained.
type Source interface {
	// Name is the name of the table directory.
	Name() string
	// Definition is the table to create.
	Definition() tideline.Definition
	// Rows is the number of rows, 0 when it is not known or not bounded.
	Rows() int64
	// Feed starts at the first batch.
	Feed() (Feed, error)
}

// Feed enumerates batches. Next is cheap and serves one goroutine; the jobs it
// returns do the work and may run on any goroutine, several at a time. Next
// returns nil at the end.
type Feed interface {
	Next() (Job, error)
	Close() error
}

// Job makes one batch.
type Job func() (*Batch, error)

// Batch is the input of one write.
type Batch struct {
	Record arrow.RecordBatch  // owned by whoever has the batch
	Kinds  []tideline.RowKind // nil: all rows are inserts
	Watch  *Watch             // nil: freshness is not measured with this batch
	// Checkpoint is what the source knows about the table after this batch; nil
	// when it knows nothing.
	Checkpoint *Checkpoint
}

// Watch tells how to see a row of a batch in a scan.
type Watch struct {
	Where *tideline.Predicate
	Row   int // of the record
}

// Checkpoint checks the whole table at one point.
type Checkpoint struct {
	Name  string
	Check func([]arrow.RecordBatch) error
}

// End is implemented by sources that know the end state from elsewhere than
// their own batches.
type End interface {
	// CheckEnd compares it with the rows of the table and says what it compared.
	CheckEnd(rows []arrow.RecordBatch) (string, error)
}
