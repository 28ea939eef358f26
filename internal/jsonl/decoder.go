package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Decoder turns lines into record batches. It serves one goroutine.
//
// Append -> Append -> ... -> Batch -> Append -> ...
type Decoder struct {
	schema  *arrow.Schema
	record  *record
	scanner scanner
	rows    int
	err     error // of NewDecoder
}

// Cell is one value in bare form, as in CSV: strings without quotes, nested values
// as JSON.
type Cell struct {
	Text []byte
	Null bool
}

// NewDecoder makes a decoder for rows of the fields. A type that it cannot read is
// reported by the first Append.
func NewDecoder(fields []schema.Field) *Decoder {
	d := &Decoder{schema: schema.ArrowSchema(fields)}
	for i, f := range fields {
		if d.schema.Field(i).Type.ID() == arrow.NULL {
			d.err = errs.Unsupported("column %s: type %s", f.Name, f.Type.Kind)
			return d
		}
	}
	d.record, d.err = newRecord(fields, func(i int) arrow.DataType { return d.schema.Field(i).Type })
	return d
}

// IgnoreUnknown makes keys that are no column be skipped. Members of a ROW are
// always checked.
func (d *Decoder) IgnoreUnknown() *Decoder {
	if d.err == nil {
		d.record.loose = true
	}
	return d
}

// Schema is the Arrow schema of the batches.
func (d *Decoder) Schema() *arrow.Schema { return d.schema }

// Rows is the number of rows that the next batch will have so far.
func (d *Decoder) Rows() int { return d.rows }

// Append reads one line, which holds one object. On errs.ErrInvalid, which names
// the column, no row was added. The line is not retained.
func (d *Decoder) Append(line []byte) error {
	if d.err != nil {
		return d.err
	}
	d.scanner.s, d.scanner.at = line, 0
	err := d.record.json(&d.scanner)
	if err == nil {
		err = d.scanner.rest()
	}
	return d.end(err)
}

// AppendCells adds one row from the text of its values in the order of the fields.
func (d *Decoder) AppendCells(cells []Cell) error {
	if d.err != nil {
		return d.err
	}
	if len(cells) != len(d.record.cols) {
		return errs.Invalid("%d values for %d columns", len(cells), len(d.record.cols))
	}
	for i, c := range d.record.cols {
		var err error
		if cells[i].Null {
			err = missing(c, &d.record.fields[i].Type)
		} else {
			err = c.text(cells[i].Text)
		}
		if err != nil {
			return d.end(at(d.record.fields[i].Name, err))
		}
	}
	return d.end(nil)
}

func (d *Decoder) end(err error) error {
	if err != nil {
		d.record.cutColumns(d.rows)
		return err
	}
	d.rows++
	return nil
}

// Undo takes back the last row that was added to the next batch.
func (d *Decoder) Undo() {
	if d.rows > 0 {
		d.rows--
		d.record.cutColumns(d.rows)
	}
}

// LastInt is the value that the last row has in a column of an integer type; ok is
// false for NULL.
func (d *Decoder) LastInt(column int) (v int64, ok bool) {
	last, _ := d.record.cols[column].last()
	v, ok = last.(int64)
	return v, ok
}

// LastText is the value that the last row has in a column of strings or bytes; ok
// is false for NULL. It is valid until the next call.
func (d *Decoder) LastText(column int) (v []byte, ok bool) {
	last, _ := d.record.cols[column].last()
	v, ok = last.([]byte)
	return v, ok
}

// Batch hands over the rows added since the last one. The caller releases it.
func (d *Decoder) Batch() (arrow.RecordBatch, error) {
	if d.err != nil {
		return nil, d.err
	}
	cols := make([]arrow.Array, len(d.record.cols))
	for i, c := range d.record.cols {
		cols[i] = array.MakeFromData(c.finish())
	}
	rows := d.rows
	d.rows = 0
	return array.NewRecordBatch(d.schema, cols, int64(rows)), nil
}

// MaxLineBytes bounds one line of Decode and Lines.
const MaxLineBytes = 64 << 20

// Decode reads all lines of r into one batch. Empty lines are skipped; an error
// names the line.
func Decode(fields []schema.Field, r io.Reader) (arrow.RecordBatch, error) {
	d := NewDecoder(fields)
	err := Lines(r, func(n int, line []byte) error {
		if err := d.Append(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.Batch()
}

// Lines calls each for every line that is not empty, with its number from 1.
func Lines(r io.Reader, each func(n int, line []byte) error) error {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for n := 1; ; {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long)+len(part) > MaxLineBytes {
				return errs.Invalid("line %d is longer than %d bytes", n, MaxLineBytes)
			}
			long = append(long, part...)
			continue
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if each := each(n, trimmed); each != nil {
				return each
			}
		}
		if err != nil {
			return nil
		}
		long = long[:0]
		n++
	}
}
