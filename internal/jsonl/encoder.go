package jsonl

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// flushBytes is how much text is collected before it goes to the writer.
const flushBytes = 64 << 10

// Encoder writes record batches as lines. It serves one goroutine.
type Encoder struct {
	// SortMaps writes the entries of a MAP or MULTISET in the order of their text,
	// so that equal maps have equal lines.
	SortMaps bool

	w      io.Writer
	fields []schema.Field
	keys   [][]byte // `{"a":`, `,"b":`
	cells  []cell
	buf    []byte
}

// cell appends the text of value i, which may be null.
type cell func(dst []byte, i int) []byte

// NewEncoder makes an encoder for batches whose columns are the fields, in order.
func NewEncoder(w io.Writer, fields []schema.Field) *Encoder {
	e := &Encoder{w: w, fields: fields, cells: make([]cell, len(fields))}
	for i, f := range fields {
		e.keys = append(e.keys, memberKey(i, f.Name))
	}
	return e
}

func memberKey(i int, name string) []byte {
	key := []byte{','}
	if i == 0 {
		key[0] = '{'
	}
	return append(AppendString(key, name), ':')
}

// Write writes one line for each row. The batch is not retained. Errors are those
// of the writer, and errs.ErrInvalid where a column has another type than its
// field.
func (e *Encoder) Write(b arrow.RecordBatch) error {
	if int(b.NumCols()) != len(e.fields) {
		return errs.Invalid("a batch of %d columns for %d fields", b.NumCols(), len(e.fields))
	}
	var err error
	for c, f := range e.fields {
		if e.cells[c], err = bind(f.Type, b.Column(c), e.SortMaps); err != nil {
			return errs.Invalid("column %s: %v", f.Name, err)
		}
	}
	buf := e.buf[:0]
	for i := range int(b.NumRows()) {
		buf = e.row(buf, i)
		if len(buf) >= flushBytes {
			if _, err := e.w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	e.buf = buf
	if len(buf) == 0 {
		return nil
	}
	_, err = e.w.Write(buf)
	return err
}

func (e *Encoder) row(buf []byte, i int) []byte {
	if len(e.cells) == 0 {
		return append(buf, "{}\n"...)
	}
	for c, cell := range e.cells {
		buf = cell(append(buf, e.keys[c]...), i)
	}
	return append(buf, '}', '\n')
}

// Column returns a function that appends the JSON text of value i of an array. It
// is valid as long as the array.
func Column(t schema.Type, arr arrow.Array) (func(dst []byte, i int) []byte, error) {
	c, err := bind(t, arr, false)
	if err != nil {
		return nil, errs.Invalid("%v", err)
	}
	return c, nil
}
