package main

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/schema"
)

// converter brings batches of any Arrow schema into the fields' own. Columns are
// matched by name. A column of the right layout is taken as it is, others go through
// their text, which checks every value.
type converter struct {
	fields []schema.Field
	want   *arrow.Schema
	from   []int // column of the input for each field, -1: all NULL
}

func newConverter(fields []schema.Field, in *arrow.Schema, ignoreExtra bool) (*converter, error) {
	c := &converter{fields: fields, want: schema.ArrowSchema(fields)}
	known := map[string]bool{}
	for _, f := range fields {
		known[f.Name] = true
		at := in.FieldIndices(f.Name)
		switch {
		case len(at) > 1:
			return nil, errs.Invalid("the input has %d columns named %s", len(at), f.Name)
		case len(at) == 1:
			c.from = append(c.from, at[0])
		case f.Type.Nullable:
			c.from = append(c.from, -1)
		default:
			return nil, errs.Invalid("the input has no column %s, which is %s", f.Name, f.Type)
		}
	}
	for _, f := range in.Fields() {
		if !known[f.Name] && !ignoreExtra {
			return nil, errs.Invalid("the input has a column %s that the table does not know; --ignore-extra leaves such columns out", f.Name)
		}
	}
	return c, nil
}

// convert returns the batch in the fields' types, and what is wrong with which row;
// those rows have NULL where the value was.
func (c *converter) convert(b arrow.RecordBatch) (arrow.RecordBatch, map[int]error, error) {
	rows := int(b.NumRows())
	cols := make([]arrow.Array, len(c.fields))
	var bad map[int]error
	for i, f := range c.fields {
		want := c.want.Field(i).Type
		if c.from[i] < 0 {
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, want, rows)
			continue
		}
		arr := b.Column(c.from[i])
		switch {
		case sameLayout(arr.DataType(), want):
			cols[i] = array.MakeFromData(retyped(arr.Data(), want))
		case arr.NullN() == rows:
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, want, rows)
		default:
			var err error
			if cols[i], err = throughText(f, arr, &bad); err != nil {
				return nil, nil, err
			}
		}
	}
	return array.NewRecordBatch(c.want, cols, int64(rows)), bad, nil
}

// sameLayout says whether the buffers of one type are those of the other: names,
// ids and nullability inside nested types may differ.
func sameLayout(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	switch a := a.(type) {
	case *arrow.ListType:
		return sameLayout(a.Elem(), b.(*arrow.ListType).Elem())
	case *arrow.MapType:
		return sameLayout(a.KeyType(), b.(*arrow.MapType).KeyType()) && sameLayout(a.ItemType(), b.(*arrow.MapType).ItemType())
	case *arrow.StructType:
		other := b.(*arrow.StructType)
		if a.NumFields() != other.NumFields() {
			return false
		}
		for i, f := range a.Fields() {
			if f.Name != other.Field(i).Name || !sameLayout(f.Type, other.Field(i).Type) {
				return false
			}
		}
		return true
	case *arrow.TimestampType:
		other := b.(*arrow.TimestampType)
		return a.Unit == other.Unit && (a.TimeZone == "") == (other.TimeZone == "")
	}
	return arrow.TypeEqual(a, b)
}

// retyped gives data of the same layout another type.
func retyped(data arrow.ArrayData, want arrow.DataType) arrow.ArrayData {
	if arrow.TypeEqual(data.DataType(), want) {
		return data
	}
	var children []arrow.ArrayData
	for i, child := range data.Children() {
		var t arrow.DataType
		switch w := want.(type) {
		case *arrow.ListType:
			t = w.Elem()
		case *arrow.MapType:
			t = w.Elem()
		case *arrow.StructType:
			t = w.Field(i).Type
		}
		children = append(children, retyped(child, t))
	}
	return array.NewData(want, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}

// throughText writes every value and reads it as the field's type.
func throughText(f schema.Field, arr arrow.Array, bad *map[int]error) (arrow.Array, error) {
	source, err := typeOf(arr.DataType(), true)
	if err != nil {
		return nil, errs.Unsupported("column %s: %v", f.Name, err)
	}
	text, err := plainText(source, arr)
	if err != nil {
		return nil, errs.Unsupported("column %s: %v", f.Name, err)
	}
	placeholder := f
	placeholder.Type.Nullable = true
	d := jsonl.NewDecoder([]schema.Field{placeholder})
	var buf []byte
	for i := range arr.Len() {
		if arr.IsNull(i) {
			err = d.AppendCells([]jsonl.Cell{{Null: true}})
		} else {
			buf = text(buf[:0], i)
			err = d.AppendCells([]jsonl.Cell{{Text: buf}})
		}
		if err == nil {
			continue
		}
		if *bad == nil {
			*bad = map[int]error{}
		}
		if (*bad)[i] == nil {
			(*bad)[i] = err
		}
		if err := d.AppendCells([]jsonl.Cell{{Null: true}}); err != nil {
			return nil, err
		}
	}
	b, err := d.Batch()
	if err != nil {
		return nil, err
	}
	return b.Column(0), nil
}

// plainText is bareText that looks values up in their dictionary.
func plainText(t schema.Type, arr arrow.Array) (func([]byte, int) []byte, error) {
	d, ok := arr.(*array.Dictionary)
	if !ok {
		return bareText(t, arr)
	}
	text, err := bareText(t, d.Dictionary())
	if err != nil {
		return nil, err
	}
	return func(dst []byte, i int) []byte { return text(dst, d.GetValueIndex(i)) }, nil
}

// rowName says where a row stands in a file of records.
func rowName(n int64) string { return "row " + strconv.FormatInt(n, 10) }
