package main

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// operation is the row kind that a word of the --op-field means.
func operation(word []byte) (tideline.RowKind, error) {
	switch strings.ToLower(string(word)) {
	case "", "i", "+i", "insert", "c", "create", "r", "read":
		return tideline.Insert, nil
	case "u", "+u", "update", "update_after", "upsert":
		return tideline.UpdateAfter, nil
	case "-u", "update_before":
		return tideline.UpdateBefore, nil
	case "d", "-d", "delete":
		return tideline.Delete, nil
	}
	return 0, errs.Invalid("%q is no operation; want I, U, D, +I, -U, +U, -D, insert, update or delete", word)
}

// layout says which columns an input has: those of the table, then the fields for
// operations and offsets where they are no columns themselves.
type layout struct {
	fields     []schema.Field
	table      int // the first ones are the table's
	op, offset int // -1: none
}

func newLayout(s *schema.Schema, opField, offsetField string) (layout, error) {
	l := layout{fields: append([]schema.Field(nil), s.Fields...), table: len(s.Fields), op: -1, offset: -1}
	var err error
	if opField != "" {
		t := schema.Type{Kind: schema.VarChar, Length: schema.MaxLength, Nullable: true}
		if l.op, err = l.add(opField, t, "--op-field", schema.VarChar, schema.Char); err != nil {
			return l, err
		}
	}
	if offsetField != "" {
		l.offset, err = l.add(offsetField, schema.Type{Kind: schema.BigInt}, "--offset-field", schema.BigInt, schema.Int)
	}
	return l, err
}

func (l *layout) add(name string, t schema.Type, flag string, kinds ...schema.Kind) (int, error) {
	for i, f := range l.fields {
		if f.Name != name {
			continue
		}
		for _, k := range kinds {
			if f.Type.Kind == k {
				return i, nil
			}
		}
		return 0, usage("%s %s: the column is of type %s", flag, name, f.Type)
	}
	l.fields = append(l.fields, schema.Field{ID: len(l.fields), Name: name, Type: t})
	return len(l.fields) - 1, nil
}

// split takes the table's columns of a batch.
func (l *layout) split(b arrow.RecordBatch) arrow.RecordBatch {
	if len(l.fields) == l.table {
		b.Retain()
		return b
	}
	return array.NewRecordBatch(arrow.NewSchema(b.Schema().Fields()[:l.table], nil), b.Columns()[:l.table], b.NumRows())
}

// kind is the operation of a row of a converted batch.
func (l *layout) kind(b arrow.RecordBatch, i int) (tideline.RowKind, error) {
	if l.op < 0 || b.Column(l.op).IsNull(i) {
		return tideline.Insert, nil
	}
	return operation([]byte(b.Column(l.op).(*array.String).Value(i)))
}

// offsetOf is the offset of a row of a converted batch.
func (l *layout) offsetOf(b arrow.RecordBatch, i int) (int64, error) {
	arr := b.Column(l.offset)
	if arr.IsNull(i) {
		return 0, errs.Invalid("column %s: no offset", l.fields[l.offset].Name)
	}
	if small, ok := arr.(*array.Int32); ok {
		return checkOffset(int64(small.Value(i)))
	}
	return checkOffset(arr.(*array.Int64).Value(i))
}

func checkOffset(n int64) (int64, error) {
	if n < 0 {
		return 0, errs.Invalid("the offset %d is negative", n)
	}
	return n, nil
}
