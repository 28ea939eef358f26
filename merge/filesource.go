package merge

import (
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tideline-db/tideline/internal/errs"
)

// Names of the system columns of a primary-key data file.
const (
	SequenceColumn = "_SEQUENCE_NUMBER"
	KindColumn     = "_VALUE_KIND"
)

// Batches is an open data file as a stream of record batches. Next hands the
// caller a reference to each batch (the caller releases it) and returns io.EOF at
// the end.
type Batches interface {
	Next(ctx context.Context) (arrow.RecordBatch, error)
	Close() error
}

// NewFileSource makes a Source of one data file. Its batches carry, under their
// field names, the columns of the layout that are wanted (others may be missing
// and become nil columns), and for a table with a key all key columns,
// _SEQUENCE_NUMBER as int64 and _VALUE_KIND as int8. name is what errors call the
// file.
//
// The bytes are not trusted: keys that do not strictly ascend, nulls in system
// or NOT NULL key columns, and row kinds outside of 0..3 are ErrCorrupt with the
// file and the row, and nothing of that batch is handed out. The source owns the
// batches and closes them with Close.
func NewFileSource(layout Layout, batches Batches, name string) Source {
	return &fileSource{layout: layout, batches: batches, name: name}
}

type fileSource struct {
	layout  Layout
	batches Batches
	name    string
	rows    int64 // rows handed out so far
	err     error
	live    [2]arrow.RecordBatch // handed out and still valid, the newest first
	last    *keys                // keys of the newest batch that had rows
	holder  arrow.RecordBatch    // keeps last's memory
}

func (s *fileSource) Next(ctx context.Context) (*Block, error) {
	if s.err != nil {
		return nil, s.err
	}
	b, err := s.next(ctx)
	if err != nil {
		s.err = err
		return nil, err
	}
	return b, nil
}

func (s *fileSource) next(ctx context.Context) (*Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rec, err := s.batches.Next(ctx)
	if err != nil {
		return nil, err
	}
	b, err := s.block(rec)
	if err != nil {
		rec.Release()
		return nil, err
	}
	if s.live[1] != nil {
		s.live[1].Release()
	}
	s.live = [2]arrow.RecordBatch{rec, s.live[0]}
	s.rows += rec.NumRows()
	return b, nil
}

// block checks a batch and views it as a block. On success it becomes the batch
// that the next one is compared with.
func (s *fileSource) block(rec arrow.RecordBatch) (*Block, error) {
	b := &Block{Columns: make([]arrow.Array, len(s.layout.Fields)), Rows: int(rec.NumRows()), Unique: true}
	for i, f := range s.layout.Fields {
		if at := rec.Schema().FieldIndices(f.Name); len(at) == 1 {
			b.Columns[i] = rec.Column(at[0])
		} else if len(at) > 1 {
			return nil, errs.Corrupt(s.name, -1, "column %s occurs %d times", f.Name, len(at))
		}
	}
	if len(s.layout.Key) == 0 {
		b.Unique = false
		return b, nil
	}
	if err := s.system(rec, b); err != nil {
		return nil, err
	}
	return b, s.order(rec, b)
}

// system takes the sequence numbers and kinds out of the batch.
func (s *fileSource) system(rec arrow.RecordBatch, b *Block) error {
	seq, err := systemColumn[*array.Int64](s.name, rec, SequenceColumn)
	if err != nil {
		return err
	}
	kind, err := systemColumn[*array.Int8](s.name, rec, KindColumn)
	if err != nil {
		return err
	}
	b.Seq.Explicit = seq.Int64Values()
	kinds := kind.Int8Values()
	seen := int8(0)
	for _, k := range kinds {
		seen |= k
	}
	if seen&^3 != 0 {
		i := slices.IndexFunc(kinds, func(k int8) bool { return k&^3 != 0 })
		return errs.Corrupt(s.name, -1, "row %d has the row kind %d, known are 0 to 3", s.rows+int64(i), kinds[i])
	}
	if seen != 0 {
		b.Kinds = kinds
	}
	return nil
}

func systemColumn[A arrow.Array](file string, rec arrow.RecordBatch, name string) (A, error) {
	var none A
	at := rec.Schema().FieldIndices(name)
	if len(at) != 1 {
		return none, errs.Corrupt(file, -1, "a primary-key file has %d columns %s", len(at), name)
	}
	a, ok := rec.Column(at[0]).(A)
	if !ok {
		return none, errs.Corrupt(file, -1, "column %s has the type %s", name, rec.Column(at[0]).DataType())
	}
	if a.NullN() > 0 {
		return none, errs.Corrupt(file, -1, "column %s has %d nulls", name, a.NullN())
	}
	return a, nil
}

// order checks that the keys of the batch strictly ascend and follow the last
// key before it.
func (s *fileSource) order(rec arrow.RecordBatch, b *Block) error {
	for _, p := range s.layout.Key {
		if b.Columns[p] == nil {
			return errs.Corrupt(s.name, -1, "key column %s is missing", s.layout.Fields[p].Name)
		}
		if !s.layout.Fields[p].Type.Nullable && b.Columns[p].NullN() > 0 {
			return errs.Corrupt(s.name, -1, "key column %s is NOT NULL and has %d nulls", s.layout.Fields[p].Name, b.Columns[p].NullN())
		}
	}
	k, err := newKeys(s.layout, b.Columns)
	if err != nil {
		return err
	}
	if b.Rows == 0 {
		return nil
	}
	if s.last != nil && compareKeys(s.last, s.lastRow(), &k, 0) >= 0 {
		return s.unordered(0)
	}
	if i := firstDescent(&k, b.Rows); i >= 0 {
		return s.unordered(i)
	}
	rec.Retain()
	if s.holder != nil {
		s.holder.Release()
	}
	s.holder, s.last = rec, &k
	return nil
}

func (s *fileSource) lastRow() int { return int(s.holder.NumRows()) - 1 }

func (s *fileSource) unordered(row int) error {
	return errs.Corrupt(s.name, -1, "the key of row %d is not greater than the one before it", s.rows+int64(row))
}

// firstDescent returns the first row of n whose key is not greater than the one
// before it, -1 when there is none.
func firstDescent(k *keys, n int) int {
	if k.i64 != nil {
		for i := 1; i < n; i++ {
			if k.i64[i-1] >= k.i64[i] {
				return i
			}
		}
		return -1
	}
	for i := 1; i < n; i++ {
		if compareKeys(k, i-1, k, i) >= 0 {
			return i
		}
	}
	return -1
}

func (s *fileSource) Close() error {
	for i, r := range s.live {
		if r != nil {
			r.Release()
			s.live[i] = nil
		}
	}
	if s.holder != nil {
		s.holder.Release()
		s.holder, s.last = nil, nil
	}
	if s.err == nil {
		s.err = io.EOF
	}
	if s.batches == nil {
		return nil
	}
	b := s.batches
	s.batches = nil
	return b.Close()
}
