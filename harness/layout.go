package harness

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline"
)

// layout is how rows of a table are told apart: the hash of the whole row, and
// of the key columns. In an append table the whole row is the key.
type layout struct {
	names []string
	all   []int
	key   []int
}

// newLayout takes the column names and the names of the key columns.
func newLayout(names, key []string) layout {
	l := layout{names: names}
	for i, name := range names {
		l.all = append(l.all, i)
		for _, k := range key {
			if k == name {
				l.key = append(l.key, i)
			}
		}
	}
	return l
}

func layoutOf(d tideline.Definition) layout {
	var names []string
	if d.Columns != nil {
		for _, f := range d.Columns.Fields() {
			names = append(names, f.Name)
		}
	}
	for _, f := range d.Fields {
		names = append(names, f.Name)
	}
	return newLayout(names, d.PrimaryKey)
}

func (l layout) append() bool { return len(l.key) == 0 }

// Change is one row as the model sees it.
type Change struct {
	Key, Row uint64 // hashes
	Delete   bool
}

// changes appends the changes of a batch to dst.
func (l layout) changes(record arrow.RecordBatch, kinds []tideline.RowKind, dst []Change) ([]Change, error) {
	if err := l.fits(record); err != nil {
		return nil, err
	}
	rows, err := hashRows(record, l.all, nil)
	if err != nil {
		return nil, err
	}
	keys := rows
	if !l.append() {
		if keys, err = hashRows(record, l.key, nil); err != nil {
			return nil, err
		}
	}
	for i := range rows {
		c := Change{Key: keys[i], Row: rows[i]}
		if kinds != nil {
			c.Delete = kinds[i] == tideline.Delete || kinds[i] == tideline.UpdateBefore
		}
		dst = append(dst, c)
	}
	return dst, nil
}

// fits refuses a batch with other columns than the table.
func (l layout) fits(record arrow.RecordBatch) error {
	if int(record.NumCols()) != len(l.names) {
		return fmt.Errorf("a batch has %d columns, the table %d", record.NumCols(), len(l.names))
	}
	for i, name := range l.names {
		if record.ColumnName(i) != name {
			return fmt.Errorf("column %d of a batch is %s, not %s", i, record.ColumnName(i), name)
		}
	}
	return nil
}

// text prints row i of a record, columns or all of them when columns is nil.
func (l layout) text(record arrow.RecordBatch, i int, columns []int) string {
	if columns == nil {
		columns = l.all
	}
	var b strings.Builder
	for n, c := range columns {
		if n > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%s", l.names[c], record.Column(c).ValueStr(i))
	}
	return b.String()
}
