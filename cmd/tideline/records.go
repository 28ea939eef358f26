package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tideline-db/tideline/internal/errs"
)

// records is a file of Arrow batches.
type records interface {
	schema() *arrow.Schema
	// next returns a batch, which the caller releases, or io.EOF.
	next() (arrow.RecordBatch, error)
	total() int64 // rows, -1 when not known
	close()
}

// openRecords opens a Parquet file or an Arrow file or stream. Files need random
// access: when in is a pipe they are copied to a temporary file first.
func openRecords(ctx context.Context, in io.Reader, format string, batchRows int) (r records, err error) {
	defer catch(&err) // the decoders panic on some damaged files
	if format == "parquet" {
		f, done, err := seekable(in)
		if err != nil {
			return nil, err
		}
		return openParquet(ctx, f, done, batchRows)
	}
	head := make([]byte, len(ipc.Magic))
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	in = &rewound{head: head[:n], Reader: in}
	if !bytes.Equal(head[:n], ipc.Magic) {
		stream, err := ipc.NewReader(in)
		if err != nil {
			return nil, errs.Invalid("the input is no Arrow stream: %v", err)
		}
		return &arrowStream{stream}, nil
	}
	f, done, err := seekable(in)
	if err != nil {
		return nil, err
	}
	whole, err := ipc.NewFileReader(f)
	if err != nil {
		done()
		return nil, errs.Invalid("the input is no Arrow file: %v", err)
	}
	return &arrowFile{FileReader: whole, done: done}, nil
}

// catch turns a panic of a file decoder into an error.
func catch(err *error) {
	if reason := recover(); reason != nil {
		*err = errs.Invalid("the input is damaged: %v", reason)
	}
}

// rewound gives back the bytes that were read to tell the format.
type rewound struct {
	head []byte
	io.Reader
}

func (r *rewound) Read(p []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(p, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	return r.Reader.Read(p)
}

// seekable is in itself where it is a regular file, else a copy of it.
func seekable(in io.Reader) (f *os.File, done func(), err error) {
	raw := in
	if r, ok := in.(*rewound); ok {
		raw = r.Reader
	}
	if f, ok := raw.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return nil, nil, err
			}
			return f, func() {}, nil
		}
	}
	if f, err = os.CreateTemp("", "tideline-input-"); err != nil {
		return nil, nil, err
	}
	done = func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	if _, err = io.Copy(f, in); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return f, done, nil
}

type parquetFile struct {
	reader  *file.Reader
	batches pqarrow.RecordReader
	done    func()
}

func openParquet(ctx context.Context, f *os.File, done func(), batchRows int) (records, error) {
	// The reader closes its input, which is not ours to close.
	reader, err := file.NewParquetReader(struct{ parquet.ReaderAtSeeker }{f})
	if err != nil {
		done()
		return nil, errs.Invalid("the input is no Parquet file: %v", err)
	}
	arrowReader, err := pqarrow.NewFileReader(reader, pqarrow.ArrowReadProperties{BatchSize: int64(batchRows)}, memory.DefaultAllocator)
	if err == nil {
		var batches pqarrow.RecordReader
		if batches, err = arrowReader.GetRecordReader(ctx, nil, nil); err == nil {
			return &parquetFile{reader, batches, done}, nil
		}
	}
	done()
	return nil, errs.Invalid("the Parquet file cannot be read: %v", err)
}

func (p *parquetFile) schema() *arrow.Schema { return p.batches.Schema() }
func (p *parquetFile) total() int64          { return p.reader.NumRows() }

func (p *parquetFile) next() (b arrow.RecordBatch, err error) {
	defer catch(&err)
	if p.batches.Next() {
		b = p.batches.RecordBatch()
		b.Retain()
		return b, nil
	}
	if err := p.batches.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the Parquet file: %w", err)
	}
	return nil, io.EOF
}

func (p *parquetFile) close() {
	p.batches.Release()
	_ = p.reader.Close()
	p.done()
}

type arrowStream struct{ *ipc.Reader }

func (a *arrowStream) schema() *arrow.Schema { return a.Schema() }
func (a *arrowStream) total() int64          { return -1 }
func (a *arrowStream) close()                { a.Release() }

func (a *arrowStream) next() (b arrow.RecordBatch, err error) {
	defer catch(&err)
	if a.Next() {
		b = a.RecordBatch()
		b.Retain()
		return b, nil
	}
	if err := a.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the Arrow stream: %w", err)
	}
	return nil, io.EOF
}

type arrowFile struct {
	*ipc.FileReader
	done func()
	at   int
}

func (a *arrowFile) schema() *arrow.Schema { return a.Schema() }
func (a *arrowFile) total() int64          { return -1 }

func (a *arrowFile) next() (b arrow.RecordBatch, err error) {
	defer catch(&err)
	if a.at >= a.NumRecords() {
		return nil, io.EOF
	}
	if b, err = a.RecordBatchAt(a.at); err != nil {
		return nil, fmt.Errorf("reading batch %d of the Arrow file: %w", a.at, err)
	}
	a.at++
	return b, nil
}

func (a *arrowFile) close() {
	_ = a.Close()
	a.done()
}
