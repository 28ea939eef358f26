package harness

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline"
)

// keepRowsMax bounds the rows that a read keeps to explain a difference; of a
// larger result only the digest is compared.
const keepRowsMax = 16 << 20

// verifier reads a table and compares with the model at the boundary that the
// read reports.
type verifier struct {
	config Config
	layout layout
	table  *tideline.Table
	model  *Model
	acked  *atomic.Int64 // epoch of the newest write that returned
	reads  *atomic.Int64
	rows   *atomic.Int64
	time   *atomic.Int64 // nanoseconds inside reads
}

// result is what a read returned.
type result struct {
	digest   Digest
	batches  []arrow.RecordBatch // nil when there were too many rows to keep
	frontier int64
	snapshot int64
}

func (r *result) release() {
	for _, b := range r.batches {
		b.Release()
	}
}

// The kinds of reads, drawn in turn by every reader.
const (
	readUnion     = "union read"
	readSplits    = "union read by splits"
	readCommitted = "read of the newest snapshot"
	readCount     = "count"
)

var readKinds = [...]string{readUnion, readUnion, readSplits, readCommitted, readUnion, readCount, readSplits, readCommitted}

// run verifies until stop is closed and then once more.
func (v *verifier) run(ctx context.Context, number int, stop <-chan struct{}) error {
	for i := uint64(0); ; i++ {
		last := false
		select {
		case <-stop:
			last = true
		case <-ctx.Done():
			return nil
		default:
		}
		kind := readKinds[Mix(v.config.Seed<<20|uint64(number)<<40|i)%uint64(len(readKinds))]
		if last {
			kind = readUnion
		}
		if err := v.read(ctx, kind); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if last {
			return nil
		}
	}
}

// read reads once and compares.
func (v *verifier) read(ctx context.Context, kind string) error {
	pin := v.model.Pin()
	defer v.model.Unpin(pin)
	least := v.acked.Load()
	begun := time.Now()
	r, err := v.open(ctx, kind)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	got, err := v.drain(r)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	defer got.release()
	v.time.Add(int64(time.Since(begun)))
	v.rows.Add(got.digest.Rows)
	if kind == readCommitted {
		return v.committed(ctx, kind, got)
	}
	want, err := v.model.At(got.frontier)
	if err != nil {
		return err
	}
	if got.frontier < least {
		return &Mismatch{Seed: v.config.Seed, Read: kind, Frontier: got.frontier, Snapshot: got.snapshot, Writes: want.writes, Want: want.digest, Got: got.digest,
			Reason: fmt.Sprintf("epoch %d had been acknowledged before the read began", least)}
	}
	if kind == readCount {
		got.digest.A, got.digest.B = want.digest.A, want.digest.B
	}
	return v.compare(kind, got, want)
}

func (v *verifier) open(ctx context.Context, kind string) (*tideline.Reader, error) {
	switch scan := v.table.Scan(); kind {
	case readCommitted:
		return scan.CommittedOnly().Read(ctx)
	case readCount:
		return scan.Select().Read(ctx)
	case readSplits:
		plan, err := scan.Plan(ctx)
		if err != nil {
			return nil, err
		}
		if len(plan.Splits) == 0 {
			return scan.Read(ctx)
		}
		defer plan.Close(ctx)
		slices.Reverse(plan.Splits)
		return v.table.ReadSplits(ctx, plan.Splits...)
	default:
		return scan.Read(ctx)
	}
}

// drain reads to the end.
func (v *verifier) drain(r *tideline.Reader) (result, error) {
	defer r.Release()
	got := result{frontier: r.Frontier(), snapshot: r.Snapshot()}
	kept := true
	var hashes []uint64
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		if v.config.Tamper != nil {
			b = v.config.Tamper(b)
		}
		if b.NumCols() == 0 { // a count
			got.digest.Rows += b.NumRows()
			b.Release()
			continue
		}
		err := v.layout.fits(b)
		if err == nil {
			hashes, err = hashRows(b, v.layout.all, hashes)
		}
		if err != nil {
			b.Release()
			got.release()
			return result{}, err
		}
		for _, h := range hashes {
			got.digest.add(h)
		}
		if kept = kept && got.digest.Rows <= keepRowsMax; !kept {
			b.Release()
			got.release()
			got.batches = nil
			continue
		}
		got.batches = append(got.batches, b)
	}
	if err := r.Err(); err != nil {
		got.release()
		return result{}, err
	}
	return got, nil
}

// committed compares a read of a snapshot with the boundary that the snapshot's
// progress names: the sum of the committed offsets is the number of input rows.
func (v *verifier) committed(ctx context.Context, kind string, got result) error {
	rows := int64(0)
	if got.snapshot > 0 {
		p, err := v.table.Progress(ctx, got.snapshot)
		if err != nil {
			return err
		}
		for _, o := range p.Offsets {
			rows += o.Offset
		}
	}
	want, ok, err := v.model.AtRows(rows)
	if err != nil {
		return err
	}
	if !ok {
		return &Mismatch{Seed: v.config.Seed, Read: kind, Snapshot: got.snapshot, Got: got.digest,
			Reason: fmt.Sprintf("its offsets add up to %d input rows, which is between two writes", rows)}
	}
	got.frontier = want.epoch
	if err := v.compare(kind, got, want); err != nil {
		return err
	}
	v.model.Proven(want.epoch)
	return nil
}

func (v *verifier) compare(kind string, got result, want boundary) error {
	if got.digest == want.digest {
		v.reads.Add(1)
		return nil
	}
	m := &Mismatch{Seed: v.config.Seed, Read: kind, Frontier: got.frontier, Snapshot: got.snapshot, Writes: want.writes, Want: want.digest, Got: got.digest}
	if kind == readCount || got.batches == nil && got.digest.Rows > 0 {
		m.Reason = "single rows are not known"
		return m
	}
	if err := explain(v.config.Source, v.layout, want.writes, got.batches, m); err != nil {
		return fmt.Errorf("%w; it could not be explained: %w", m, err)
	}
	return m
}
