package datafile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

const (
	// DefaultBatchRows is the batch size where ReadOptions has none.
	DefaultBatchRows = 32 << 10
	// maxBatchBytes shrinks batches of wide rows, by the sizes of the footer.
	maxBatchBytes = 256 << 20
)

// ReaderOptions shapes a Reader.
type ReaderOptions struct {
	// Alloc serves the returned batches and the decoder's buffers; nil is
	// Arrow's default allocator. See Pool.
	Alloc memory.Allocator
}

// Column is one top-level column as the file names it.
type Column struct {
	Name string
	ID   int // field id, -1 when the writer gave none
}

// Reader reads one Parquet data file. The footer is decoded and checked at
// Open; values are decoded batch by batch. Readers share nothing, and one
// Reader serves one goroutine. It does not close the file.
type Reader struct {
	f    fs.File
	meta *metadata.FileMetaData
	mem  memory.Allocator
	pool sync.Pool // buffers of the library's decoders
}

// Open reads the footer. A file that is cut, damaged, or claims more than it
// can hold is refused with ErrCorrupt, one that needs a feature which is not
// there (encryption, codecs) with ErrUnsupported.
func Open(ctx context.Context, f fs.File, o ReaderOptions) (*Reader, error) {
	meta, err := readFooter(ctx, f)
	if err != nil {
		return nil, err
	}
	r := &Reader{f: f, meta: meta, mem: o.Alloc}
	if r.mem == nil {
		r.mem = memory.DefaultAllocator
	}
	r.pool.New = func() any { return memory.NewResizableBuffer(memory.NewGoAllocator()) }
	return r, nil
}

// Rows is the number of rows in the file.
func (r *Reader) Rows() int64 { return r.meta.NumRows }

// Columns lists the top-level columns in file order.
func (r *Reader) Columns() []Column { return columnNames(r.meta.Schema) }

// ReadOptions selects what Read decodes.
type ReadOptions struct {
	// BatchRows is the largest number of rows in a batch, DefaultBatchRows when
	// zero. Batches end with their row group and shrink where rows are wide.
	BatchRows int
	// Keep, when set, is asked for each row group in order; false skips it.
	Keep func(RowGroup) bool
}

// Read prepares to decode the wanted columns, named as the file's own schema
// version names them (a ROW with fewer fields reads only those). A column that
// the file does not have is ErrInvalid with its name; one whose stored layout
// cannot hold the wanted type is ErrUnsupported. Without wanted columns, batches
// carry row counts only.
func (r *Reader) Read(ctx context.Context, want []schema.Field, o ReadOptions) (*Batches, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := &Batches{r: r, schema: schema.ArrowSchema(want), rows: o.BatchRows}
	if b.rows <= 0 {
		b.rows = DefaultBatchRows
	}
	err := guard("resolve columns", func() error {
		res := resolver{sc: r.meta.Schema, file: r.f.Name()}
		for _, f := range want {
			c, err := res.column(f)
			if err != nil {
				return err
			}
			b.columns = append(b.columns, c)
		}
		return nil
	})
	if err != nil {
		return nil, r.damage(err)
	}
	for i := range r.meta.RowGroups {
		if o.Keep == nil || o.Keep(RowGroup{r: r, Index: i}) {
			b.groups = append(b.groups, i)
		}
	}
	return b, nil
}

// damage gives errors of unknown origin, which come out of decoding, the
// sentinel of damaged bytes.
func (r *Reader) damage(err error) error {
	switch {
	case err == nil, errors.Is(err, errs.ErrCorrupt), errors.Is(err, errs.ErrUnsupported), errors.Is(err, errs.ErrInvalid):
		return err
	case errors.Is(err, errTimestampRange), errors.Is(err, errBlockFull):
		return errs.Unsupported("data file %s: %v", r.f.Name(), err)
	}
	return errs.Corrupt(r.f.Name(), -1, "%v", err)
}

// Batches decodes the selected row groups in order. It serves one goroutine;
// Close may be called at any time and more than once.
type Batches struct {
	r       *Reader
	schema  *arrow.Schema
	columns []*column
	groups  []int
	rows    int
	mapping *Mapping // nil: batches as they are read

	left    int64 // rows of the open row group that are still to come
	batch   int   // rows a batch of the open row group
	leaves  []*leafCursor
	blocks  map[int]*leafBlock
	failure error
}

// Schema is the Arrow schema of the batches, schema.ArrowSchema of the wanted
// fields or the one of the mapping.
func (b *Batches) Schema() *arrow.Schema {
	if b.mapping != nil {
		return b.mapping.out
	}
	return b.schema
}

// Next returns the next batch, which the caller releases, or io.EOF. After any
// other error the same error comes again.
func (b *Batches) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if b.failure != nil {
		return nil, b.failure
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out arrow.RecordBatch
	err := guard("decode", func() (err error) {
		if out, err = b.next(); err == nil && b.mapping != nil {
			out = b.mapping.apply(b.r.mem, out)
		}
		return err
	})
	if err != nil {
		b.fail(err)
		return nil, b.failure
	}
	return out, nil
}

func (b *Batches) next() (arrow.RecordBatch, error) {
	for b.left == 0 {
		if err := b.openGroup(); err != nil {
			return nil, err
		}
	}
	n := int(min(b.left, int64(b.batch)))
	for _, l := range b.leaves {
		if err := l.fill(n); err != nil {
			return nil, fmt.Errorf("column %s, row group %d: %w", l.c.name, b.groups[0], err)
		}
	}
	arrays := make([]arrow.Array, 0, len(b.columns))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	for _, c := range b.columns {
		arr, err := assembler{mem: b.r.mem, blocks: b.blocks}.build(c)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, arr)
		if arr.Len() != n {
			return nil, fmt.Errorf("column %s has %d rows where %d were expected", c.name, arr.Len(), n)
		}
	}
	for _, l := range b.leaves {
		l.consume()
	}
	b.left -= int64(n)
	if b.left == 0 {
		b.closeGroup()
	}
	return array.NewRecordBatch(b.schema, arrays, int64(n)), nil
}

// Close releases what is decoded but not returned.
func (b *Batches) Close() {
	b.closeGroup()
	b.groups, b.left = nil, 0
	if b.failure == nil {
		b.failure = errs.Wrap(errs.ErrClosed, "read on from data file %s", b.r.f.Name())
	}
}
