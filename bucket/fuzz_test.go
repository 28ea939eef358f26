package bucket

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// FuzzPrepare hands in arrays over arbitrary buffers. Either the batch is
// refused, or every row of it can be read back.
func FuzzPrepare(f *testing.F) {
	elem := text(true)
	spec := tableSpec{fields: []schema.Field{
		field("s", text(true)), field("l", schema.Type{Kind: schema.Array, Nullable: true, Elem: &elem}),
	}}
	table := newTable(f, spec)
	f.Add(2, 0, []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, []byte("ab"), []byte{3}, []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0})
	f.Add(1, 1, []byte{0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0}, []byte("ab"), []byte{}, []byte{5, 0, 0, 0})
	f.Fuzz(func(t *testing.T, rows, offset int, positions, data, valid, lists []byte) {
		rec := fuzzRecord(table, rows, offset, positions, data, valid, lists)
		if rec == nil {
			return
		}
		p, err := NewPreparer(table).Prepare(rec, nil, nil)
		if err != nil {
			require.ErrorIs(t, err, errs.ErrInvalid)
			return
		}
		s := newState(table)
		for _, part := range p.Parts {
			require.NoError(t, s.Append(part, 1))
		}
		require.Len(t, visible(t, s.View(), 0, 1), p.Rows)
	})
}

// fuzzRecord builds a record the way a foreign library may: without the checks
// of the builders. nil when Arrow's own constructors refuse it.
func fuzzRecord(table *Table, rows, offset int, positions, data, valid, lists []byte) (rec arrow.RecordBatch) {
	if rows < 0 || rows > 100 || offset < 0 || offset > 100 {
		return nil
	}
	defer func() {
		if recover() != nil {
			rec = nil
		}
	}()
	buffer := func(b []byte) *memory.Buffer {
		aligned := alignedBytes(len(b))
		copy(aligned, b)
		return memory.NewBufferBytes(aligned)
	}
	strs := func(n, off int) *array.Data {
		return array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{buffer(valid), buffer(positions), buffer(data)}, nil, array.UnknownNullCount, off)
	}
	child := strs(max(len(positions)/4-1, 0), 0)
	list := array.NewData(table.ArrowSchema().Field(1).Type, rows, []*memory.Buffer{nil, buffer(lists)}, []arrow.ArrayData{child}, 0, offset)
	return array.NewRecordBatch(table.ArrowSchema(), []arrow.Array{
		array.MakeFromData(strs(rows, offset)), array.MakeFromData(list),
	}, int64(rows))
}
