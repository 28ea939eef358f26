package main

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline"
)

// recordSource reads Parquet and Arrow.
type recordSource struct {
	in        records
	layout    layout
	convert   *converter
	rejects   *rejects
	batchRows int
	rows      int64 // read so far
}

func (s *recordSource) size() (int64, bool) { return s.in.total(), false }

func (s *recordSource) close() { s.in.close() }

func (s *recordSource) run(ctx context.Context, emit func(chunk) error) error {
	for ctx.Err() == nil {
		b, err := s.in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for lo := int64(0); lo < b.NumRows() && err == nil; lo += int64(s.batchRows) {
			part := b.NewSlice(lo, min(lo+int64(s.batchRows), b.NumRows()))
			err = s.batch(part, emit)
			part.Release()
		}
		b.Release()
		if err != nil {
			return err
		}
	}
	return errStopped
}

// batch converts a batch and emits the runs between its bad rows. With offsets a
// run also ends where they go back, for instance where another bucket begins.
func (s *recordSource) batch(in arrow.RecordBatch, emit func(chunk) error) error {
	b, bad, err := s.convert.convert(in)
	if err != nil {
		return err
	}
	first := s.rows + 1
	s.rows += b.NumRows()
	var kinds []tideline.RowKind
	var offsets []int64
	begin := 0
	end := func(i int) error {
		if i > begin {
			part := b.NewSlice(int64(begin), int64(i))
			err = emit(chunk{rows: s.layout.split(part), kinds: kinds, offsets: offsets, first: first + int64(begin), noun: "row", done: first + int64(i) - 1})
			part.Release()
		}
		kinds, offsets, begin = nil, nil, i
		return err
	}
	for i := range int(b.NumRows()) {
		kind, offset, err := s.row(b, i, bad)
		if err != nil {
			// Decide first: when the input stops here, nothing of the batch is written.
			if err := s.rejects.bad(rowName(first+int64(i)), err); err != nil {
				return err
			}
			if err := end(i); err != nil {
				return err
			}
			begin = i + 1
			continue
		}
		if n := len(offsets); n > 0 && offset <= offsets[n-1] {
			if err := end(i); err != nil {
				return err
			}
		}
		if s.layout.op >= 0 {
			kinds = append(kinds, kind)
		}
		if s.layout.offset >= 0 {
			offsets = append(offsets, offset)
		}
	}
	return end(int(b.NumRows()))
}

func (s *recordSource) row(b arrow.RecordBatch, i int, bad map[int]error) (kind tideline.RowKind, offset int64, err error) {
	if err := bad[i]; err != nil {
		return 0, 0, err
	}
	if kind, err = s.layout.kind(b, i); err != nil {
		return 0, 0, err
	}
	if s.layout.offset >= 0 {
		offset, err = s.layout.offsetOf(b, i)
	}
	return kind, offset, err
}
