package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/internal/jsonl"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

const (
	readBytes = 256 << 10 // of one read
	// idleFlush is how long rows wait for a full batch when the input pauses.
	idleFlush = 200 * time.Millisecond
)

// textSource reads JSON lines and CSV.
type textSource struct {
	in        io.Reader
	bytes     int64 // size of in, -1 when it is not known
	csv       bool
	extra     bool // unknown columns are left out
	layout    layout
	decoder   *jsonl.Decoder
	rejects   *rejects
	batchRows int

	line   int64 // of the next record
	read   int64 // bytes taken
	header []int // field of each CSV column, -1: left out; nil before the header
	cells  []jsonl.Cell
	row    []jsonl.Cell

	kinds   []tideline.RowKind
	offsets []int64
	lines   []int64
}

func (s *textSource) size() (int64, bool) { return s.bytes, true }

func (s *textSource) close() {}

// errBack is an offset that does not exceed the one before it in the batch.
var errBack = errors.New("the offset goes back")

// block is the answer of one read.
type block struct {
	data []byte
	err  error
}

// run parses what a second goroutine reads, so that a pause of the input does not
// hold back the rows that are there. That goroutine ends with the input or, when
// it is stuck in a read, with the program.
func (s *textSource) run(ctx context.Context, emit func(chunk) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks := make(chan block, 1)
	go readBlocks(ctx, s.in, blocks)
	s.line = 1
	idle := time.NewTimer(idleFlush)
	defer idle.Stop()
	var pending []byte
	for {
		select {
		case <-ctx.Done():
			return errStopped
		case <-idle.C:
			if err := s.flush(emit); err != nil {
				return err
			}
			idle.Reset(idleFlush)
		case b := <-blocks:
			atEnd := errors.Is(b.err, io.EOF)
			if b.err != nil && !atEnd {
				return b.err
			}
			if len(pending) > 0 {
				b.data = append(pending, b.data...)
			}
			n, err := s.parse(b.data, atEnd, emit)
			if err != nil {
				return err
			}
			if atEnd {
				return s.flush(emit)
			}
			if pending = b.data[n:]; len(pending) > jsonl.MaxLineBytes {
				return errs.Invalid("line %d is longer than %d bytes", s.line, jsonl.MaxLineBytes)
			}
			idle.Reset(idleFlush)
		}
	}
}

// readBlocks sends what it reads, each time in a buffer of its own.
func readBlocks(ctx context.Context, in io.Reader, blocks chan<- block) {
	for {
		buf := make([]byte, readBytes)
		n, err := in.Read(buf)
		select {
		case blocks <- block{buf[:n], err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// parse takes the complete records of data and says how many bytes they have.
func (s *textSource) parse(data []byte, atEnd bool, emit func(chunk) error) (int, error) {
	at := 0
	if s.read == 0 {
		if bytes.HasPrefix(data, byteOrderMark) {
			at = len(byteOrderMark)
		} else if !atEnd && len(data) < len(byteOrderMark) {
			return 0, nil
		}
	}
	begin := at
	for at < len(data) {
		n, err := s.record(data[at:], atEnd)
		if errors.Is(err, errBack) { // for instance another bucket's rows: a batch of their own
			if err := s.flush(emit); err != nil {
				return at, err
			}
			continue
		}
		if err != nil {
			return at, err
		}
		if n == 0 {
			break
		}
		at += n
		s.read += int64(n)
		if s.decoder.Rows() >= s.batchRows {
			if err := s.flush(emit); err != nil {
				return at, err
			}
		}
	}
	if at == begin {
		return 0, nil // keep a byte order mark until there is something behind it
	}
	return at, nil
}

// record takes one record; 0 when it is not complete.
func (s *textSource) record(data []byte, atEnd bool) (n int, err error) {
	line := s.line
	if s.csv {
		n, err = s.csvRecord(data, atEnd)
	} else {
		n, err = s.jsonRecord(data, atEnd)
	}
	if n == 0 || errors.Is(err, errBack) {
		return 0, err
	}
	s.line += int64(bytes.Count(data[:n], []byte{'\n'}))
	if err == nil {
		return n, nil
	}
	if s.csv && s.header == nil {
		return n, err // no row can be read without it
	}
	return n, s.rejects.bad((&chunk{first: line, noun: "line"}).where(0), err)
}

func (s *textSource) jsonRecord(data []byte, atEnd bool) (int, error) {
	n := bytes.IndexByte(data, '\n') + 1
	if n == 0 {
		if !atEnd {
			return 0, nil
		}
		n = len(data)
	}
	record := bytes.TrimSpace(data[:n])
	if len(record) == 0 {
		return n, nil
	}
	if err := s.decoder.Append(record); err != nil {
		return n, err
	}
	return n, s.accept()
}

func (s *textSource) csvRecord(data []byte, atEnd bool) (int, error) {
	cells, n, err := parseCSV(data, atEnd, s.cells[:0])
	s.cells = cells
	if n == 0 || err != nil {
		return n, err
	}
	if s.header == nil {
		return n, s.columns(cells)
	}
	if len(cells) == 1 && cells[0].Null && len(s.header) > 1 {
		return n, nil // an empty line
	}
	if len(cells) != len(s.header) {
		return n, errs.Invalid("%d cells where the header has %d", len(cells), len(s.header))
	}
	for i := range s.row {
		s.row[i] = jsonl.Cell{Null: true}
	}
	for i, field := range s.header {
		if field >= 0 {
			s.row[field] = cells[i]
		}
	}
	if err := s.decoder.AppendCells(s.row); err != nil {
		return n, err
	}
	return n, s.accept()
}

// columns reads the header of a CSV file.
func (s *textSource) columns(names []jsonl.Cell) error {
	s.row = make([]jsonl.Cell, len(s.layout.fields))
	header, taken := make([]int, len(names)), map[int]bool{}
	for i, cell := range names {
		header[i] = -1
		for at, f := range s.layout.fields {
			if f.Name == string(cell.Text) {
				header[i] = at
			}
		}
		switch at := header[i]; {
		case at < 0 && !s.extra:
			return errs.Invalid("the header names the column %q, which the table does not know; --ignore-extra leaves such columns out", cell.Text)
		case at >= 0 && taken[at]:
			return errs.Invalid("the header names the column %q twice", cell.Text)
		case at >= 0:
			taken[at] = true
		}
	}
	if at := s.layout.offset; at >= 0 && !taken[at] {
		return errs.Invalid("the header does not name %q, which --offset-field asks for", s.layout.fields[at].Name)
	}
	s.header = header
	return nil
}

// accept reads operation and offset of the row that was just added.
func (s *textSource) accept() error {
	kind, offset, err := s.marks()
	if last := len(s.offsets) - 1; err == nil && last >= 0 && offset <= s.offsets[last] {
		err = errBack
	}
	if err != nil {
		s.decoder.Undo()
		return err
	}
	if s.layout.op >= 0 {
		s.kinds = append(s.kinds, kind)
	}
	if s.layout.offset >= 0 {
		s.offsets = append(s.offsets, offset)
	}
	s.lines = append(s.lines, s.line)
	return nil
}

func (s *textSource) marks() (kind tideline.RowKind, offset int64, err error) {
	if s.layout.op >= 0 {
		word, _ := s.decoder.LastText(s.layout.op)
		if kind, err = operation(word); err != nil {
			return 0, 0, err
		}
	}
	if s.layout.offset >= 0 {
		n, ok := s.decoder.LastInt(s.layout.offset)
		if !ok {
			return 0, 0, errs.Invalid("column %s: no offset", s.layout.fields[s.layout.offset].Name)
		}
		offset, err = checkOffset(n)
	}
	return kind, offset, err
}

// flush emits the rows that were accepted.
func (s *textSource) flush(emit func(chunk) error) error {
	if s.decoder.Rows() == 0 {
		return nil
	}
	b, err := s.decoder.Batch()
	if err != nil {
		return err
	}
	defer b.Release()
	c := chunk{rows: s.layout.split(b), kinds: s.kinds, offsets: s.offsets, lines: s.lines, noun: "line", done: s.read}
	s.kinds, s.offsets, s.lines = nil, nil, nil
	return emit(c)
}
