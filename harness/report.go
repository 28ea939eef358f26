package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/snapshot"
)

// Report is what a run did and measured. Times are in nanoseconds in JSON.
type Report struct {
	Table   string `json:"table"`
	Seed    uint64 `json:"seed"`
	Writers int    `json:"writers"`
	Readers int    `json:"readers"`

	Rows          int64         `json:"rows"` // input rows written
	Elapsed       time.Duration `json:"elapsed_ns"`
	RowsPerSecond float64       `json:"rows_per_second"` // written, commits and readers running, last commit included
	Write         Times         `json:"write"`           // one write of a batch
	Freshness     Times         `json:"freshness"`       // before the write until seen by a scan
	Commit        Times         `json:"commit"`          // cut until adopted

	Reads             int64   `json:"reads"` // compared without a difference
	RowsRead          int64   `json:"rows_read"`
	ReadRowsPerSecond float64 `json:"read_rows_per_second"` // per reader

	Snapshots         int       `json:"snapshots"`
	Files             int       `json:"files"` // of the last snapshot
	FileBytes         int64     `json:"file_bytes"`
	FailedCommits     int64     `json:"failed_commits,omitempty"`
	Checkpoints       int64     `json:"checkpoints,omitempty"`
	RetainedBytesARow float64   `json:"retained_bytes_per_row"` // in memory, when it held most
	PeakHeapBytes     uint64    `json:"peak_heap_bytes"`
	PeakResidentBytes int64     `json:"peak_resident_bytes"`
	Final             Digest    `json:"final"`
	EndCheck          string    `json:"end_check,omitempty"`
	Interrupted       bool      `json:"interrupted,omitempty"`
	Verified          bool      `json:"verified"` // every read and the end state were right
	Failure           string    `json:"failure,omitempty"`
	Mismatch          *Mismatch `json:"mismatch,omitempty"`
}

// count fills in what lies on disk.
func (r *run) count(ctx context.Context, t *tideline.Table, report *Report) error {
	ids, err := t.Committed().Snapshots(ctx)
	if err != nil {
		return err
	}
	report.Snapshots = len(ids)
	latest, err := t.Snapshot(ctx)
	if err != nil || latest == nil {
		return err
	}
	buckets, err := t.Committed().Files(ctx, latest, snapshot.Filter{})
	if err != nil {
		return err
	}
	for _, b := range buckets {
		report.Files += len(b.Files)
		for _, f := range b.Files {
			report.FileBytes += f.Size
		}
	}
	return nil
}

// fill completes a report; err is how the run ended.
func (r *run) fill(report *Report, took time.Duration, err error) {
	report.Rows, report.Elapsed = r.written.Load(), took
	report.RowsPerSecond = float64(report.Rows) / took.Seconds()
	report.Write, report.Freshness, report.Commit = r.write.summary(), r.fresh.summary(), r.commit.summary()
	report.Reads, report.RowsRead = r.reads.Load(), r.read.Load()
	if spent := time.Duration(r.reading.Load()); spent > 0 {
		report.ReadRowsPerSecond = float64(report.RowsRead) / spent.Seconds()
	}
	report.FailedCommits, report.Checkpoints = r.failed.Load(), r.checked.Load()
	report.RetainedBytesARow = r.memory.retained()
	report.PeakHeapBytes, report.PeakResidentBytes = r.memory.heap.Load(), peakResident()
	report.Interrupted = r.config.Interrupt.Err() != nil
	report.Verified = err == nil
	if err != nil {
		report.Failure = err.Error()
		errors.As(err, &report.Mismatch)
	}
}

// String is the report as a few lines of text.
func (r *Report) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s  %s\n", name, fmt.Sprintf(format, args...))
	}
	line("written", "%s rows in %s: %s rows/s (%s, seed %d)", thousands(r.Rows), short(r.Elapsed), thousands(int64(r.RowsPerSecond)), count(r.Writers, "writer"), r.Seed)
	line("write", "%s", r.Write)
	line("freshness", "%s", r.Freshness)
	line("commit", "%s", r.Commit)
	line("read", "%s reads verified, %s rows, %s rows/s a reader (%s)", thousands(r.Reads), thousands(r.RowsRead), thousands(int64(r.ReadRowsPerSecond)), count(r.Readers, "reader"))
	retained := "" // of a run too short to be sampled nothing is known
	if r.RetainedBytesARow > 0 {
		retained = fmt.Sprintf("%.1f bytes retained a row, ", r.RetainedBytesARow)
	}
	line("memory", "%speak heap %s MiB, peak resident %s MiB", retained, thousands(int64(r.PeakHeapBytes>>20)), thousands(r.PeakResidentBytes>>20))
	line("disk", "%s, %s in the last one with %s KiB", count(r.Snapshots, "snapshot"), count(r.Files, "file"), thousands((r.FileBytes+1023)>>10))
	if r.Checkpoints > 0 {
		line("checked", "%d checkpoints of the stream", r.Checkpoints)
	}
	if r.EndCheck != "" {
		line("checked", "%s", r.EndCheck)
	}
	if r.FailedCommits > 0 {
		line("failed", "%d background commits", r.FailedCommits)
	}
	switch {
	case r.Verified && r.Interrupted:
		line("verified", "interrupted; every read and the table as reopened until then: %s", r.Final)
	case r.Verified:
		line("verified", "every read, and the table as reopened from disk: %s", r.Final)
	default:
		line("failed", "after %d reads without a difference", r.Reads)
	}
	return b.String()
}

// String prints percentiles.
func (t Times) String() string {
	if t.Count == 0 {
		return "not measured"
	}
	return fmt.Sprintf("p50 %s, p99 %s, p999 %s, max %s (%s)", short(t.P50), short(t.P99), short(t.P999), short(t.Max), count(int(t.Count), "sample"))
}

// count is "1 file" or "2 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", thousands(int64(n)), noun)
}

// short prints a duration with three digits.
func short(d time.Duration) string {
	for unit := time.Duration(1); ; unit *= 10 {
		if d/unit < 1000 {
			return d.Round(unit).String()
		}
	}
}

// thousands prints a number with commas.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0 && s[at-1] != '-'; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}
