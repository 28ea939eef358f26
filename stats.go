package tideline

import (
	"context"
	"slices"
	"strings"
)

// Stats are the gauges of a table handle. Rows are physical: superseded versions
// and deletes count. Bytes are what the rows really retain.
type Stats struct {
	BuildingRows, BuildingBytes int64 // not yet sealed
	SealedRows, SealedBytes     int64 // sealed, not yet covered by an adopted snapshot
	PinnedBytes                 int64 // reclaimed, but held by readers or tickets
	UsedBytes, LimitBytes       int64 // of the memory budget
	Frontier                    int64 // write epoch up to which everything is visible
	AdoptedSnapshot             int64 // 0: none
	Buckets                     []BucketStats
	// Poisoned is why the session is over; nil while it lives.
	Poisoned error
}

// BucketStats are the gauges of one partition-bucket.
type BucketStats struct {
	Partition    string // directory text, "" when unpartitioned
	Bucket       int
	Rows, Bytes  int64
	Runs         int   // sorted runs that a read merges
	Segments     int   // building and sealed
	NextOffset   int64 // offset of the next row
	NextSequence int64
	CommittedEnd int64 // offsets below are in the adopted snapshot
	Lag          int64 // NextOffset - CommittedEnd: what a crash would replay
}

// Stats asks every bucket for its counters. Without a session everything is zero.
func (t *Table) Stats(ctx context.Context) (Stats, error) {
	s := t.session.Load()
	if s == nil || t.closed.Load() {
		return Stats{LimitBytes: t.options.MemoryBytesMax}, nil
	}
	out := Stats{Frontier: s.Frontier(), AdoptedSnapshot: s.Adopted().ID(), Poisoned: s.Poisoned()}
	buckets, err := s.Buckets(ctx)
	if err != nil {
		return Stats{}, err
	}
	out.UsedBytes, out.PinnedBytes, out.LimitBytes = s.Memory() // after the buckets handled what was posted before
	for id, b := range buckets {
		out.BuildingRows += b.BuildingRows
		out.BuildingBytes += b.BuildingBytes
		out.SealedRows += b.SealedRows
		out.SealedBytes += b.SealedBytes
		out.Buckets = append(out.Buckets, BucketStats{
			Partition: id.Partition, Bucket: int(id.Bucket),
			Rows: b.BuildingRows + b.SealedRows, Bytes: b.BuildingBytes + b.SealedBytes,
			Runs: b.Runs, Segments: b.Segments, NextOffset: b.NextOffset, NextSequence: b.NextSeq,
			CommittedEnd: b.CommittedEnd, Lag: b.NextOffset - b.CommittedEnd,
		})
	}
	slices.SortFunc(out.Buckets, func(a, b BucketStats) int {
		if c := strings.Compare(a.Partition, b.Partition); c != 0 {
			return c
		}
		return a.Bucket - b.Bucket
	})
	return out, nil
}

// Frontier is the write epoch up to which everything is visible, 0 before the
// first writer: one atomic load. A reader that begins when it covers Ack.Epoch
// sees that write.
func (t *Table) Frontier() int64 {
	if s := t.session.Load(); s != nil {
		return s.Frontier()
	}
	return 0
}
