package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Config describes a run. Source and Dir are needed; the zero value of the rest
// means what its comment says.
type Config struct {
	Source  Source
	Dir     string // warehouse: the table is Dir/sim.db/<name of the source>
	Seed    uint64 // for reports, and for the order of the kinds of reads
	Writers int    // goroutines that prepare batches; 0: one
	Readers int    // goroutines that verify; 0: only the end state is verified
	// CommitInterval commits in the background, CommitRows after at least so many
	// rows. Both zero: one commit at the end.
	CommitInterval time.Duration
	CommitRows     int64
	Duration       time.Duration // ends the writing early; 0: write the whole source
	MemoryBytesMax int64         // of the table; 0: its default
	// Interrupt, when it is done, ends the writing early. What was written is
	// committed and verified all the same.
	Interrupt context.Context
	// Progress is called about five times a second, from one goroutine.
	Progress func(Progress)
	// Tamper changes what reads return before it is compared, which shows that the
	// comparison works. It owns the batch it gets; the caller owns the result.
	Tamper func(arrow.RecordBatch) arrow.RecordBatch
}

// Progress is how far a run is.
type Progress struct {
	Phase     string // write, verify
	Rows      int64  // written
	Total     int64  // to write, 0: not known
	Reads     int64  // compared without a difference
	Snapshots int64
	Elapsed   time.Duration
}

// progressInterval is the pace of Config.Progress.
const progressInterval = 200 * time.Millisecond

func (c Config) check() (Config, error) {
	if c.Source == nil || c.Dir == "" {
		return c, fmt.Errorf("a run needs a source and a directory")
	}
	if c.Writers < 0 || c.Readers < 0 || c.CommitInterval < 0 || c.CommitRows < 0 || c.Duration < 0 {
		return c, fmt.Errorf("negative number in the configuration of a run")
	}
	if c.CommitInterval > 0 && c.CommitRows > 0 {
		return c, fmt.Errorf("commit either by interval or by rows")
	}
	if c.Interrupt == nil {
		c.Interrupt = context.Background()
	}
	c.Writers = max(1, c.Writers)
	return c, nil
}
