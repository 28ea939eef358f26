package datafile

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

func evolved(t *testing.T, data []byte, file, table []schema.Field) []arrow.RecordBatch {
	t.Helper()
	ctx := context.Background()
	m, err := Evolve(&schema.Schema{Fields: file}, table)
	require.NoError(t, err)
	r, err := Open(ctx, newMemFile(data), ReaderOptions{Alloc: checked(t)})
	require.NoError(t, err)
	b, err := r.ReadAs(ctx, m, ReadOptions{})
	require.NoError(t, err)
	defer b.Close()
	var out []arrow.RecordBatch
	t.Cleanup(func() { releaseAll(out) })
	for {
		rec, err := b.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		require.True(t, rec.Schema().Equal(schema.ArrowSchema(table)))
		out = append(out, rec)
	}
}

func TestEvolveRenamesReordersWidensAndFills(t *testing.T) {
	row := func(fields ...schema.Field) schema.Type {
		return schema.Type{Kind: schema.Row, Nullable: true, Fields: fields}
	}
	listOf := func(e schema.Type) schema.Type { return schema.Type{Kind: schema.Array, Nullable: true, Elem: &e} }
	mapOf := func(e schema.Type) schema.Type {
		return schema.Type{Kind: schema.Map, Nullable: true, Key: ref(text()), Elem: &e}
	}
	short := schema.Type{Kind: schema.VarChar, Length: 5, Nullable: true}
	file := []schema.Field{
		schema.SequenceField(), schema.ValueKindField(),
		{ID: 0, Name: "a", Type: typ(schema.Int)},
		{ID: 1, Name: "b", Type: short},
		{ID: 2, Name: "gone", Type: typ(schema.Int)},
		{ID: 3, Name: "d", Type: decimalType(8, 2)},
		{ID: 4, Name: "r", Type: row(schema.Field{ID: 5, Name: "x", Type: typ(schema.Float)}, schema.Field{ID: 6, Name: "y", Type: text()})},
		{ID: 7, Name: "l", Type: listOf(row(schema.Field{ID: 8, Name: "p", Type: typ(schema.TinyInt)}))},
		{ID: 9, Name: "m", Type: mapOf(row(schema.Field{ID: 10, Name: "q", Type: typ(schema.Int)}))},
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema.ArrowSchema(file))
	for _, line := range []string{
		`{"_SEQUENCE_NUMBER":5,"_VALUE_KIND":3,"a":1,"b":"one","gone":9,"d":"1.25","r":{"x":0.5,"y":"yy"},"l":[{"p":7},null],"m":[{"key":"k","value":{"q":4}}]}`,
		`{"_SEQUENCE_NUMBER":6,"_VALUE_KIND":0,"a":null,"b":null,"gone":9,"d":null,"r":null,"l":null,"m":null}`,
	} {
		require.NoError(t, b.UnmarshalJSON([]byte(line)))
	}
	data, _ := encode(t, file, WriterOptions{}, b.NewRecordBatch())

	table := []schema.Field{
		{ID: 4, Name: "rr", Type: row(schema.Field{ID: 11, Name: "new", Type: typ(schema.Int)}, schema.Field{ID: 5, Name: "xx", Type: typ(schema.Double)})},
		{ID: 1, Name: "bb", Type: text()},
		{ID: 12, Name: "added", Type: text()},
		{ID: 0, Name: "a", Type: typ(schema.BigInt)},
		{ID: 3, Name: "d", Type: decimalType(25, 2)},
		{ID: 7, Name: "l", Type: listOf(row(schema.Field{ID: 13, Name: "n", Type: text()}, schema.Field{ID: 8, Name: "pp", Type: typ(schema.BigInt)}))},
		{ID: 9, Name: "m", Type: mapOf(row(schema.Field{ID: 10, Name: "q2", Type: typ(schema.BigInt)}))},
		schema.ValueKindField(), schema.SequenceField(),
	}
	recs := evolved(t, data, file, table)
	require.Len(t, recs, 1)
	got, err := recs[0].MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `[{"rr":{"new":null,"xx":0.5},"bb":"one","added":null,"a":1,"d":"1.25","l":[{"n":null,"pp":7},null],
		"m":[{"key":"k","value":{"q2":4}}],"_VALUE_KIND":3,"_SEQUENCE_NUMBER":5},
		{"rr":null,"bb":null,"added":null,"a":null,"d":null,"l":null,"m":null,"_VALUE_KIND":0,"_SEQUENCE_NUMBER":6}]`, string(got))

	// A ROW none of whose members the file had keeps its null rows.
	only := []schema.Field{{ID: 4, Name: "r", Type: row(schema.Field{ID: 99, Name: "z", Type: typ(schema.Int)})}}
	got, err = evolved(t, data, file, only)[0].MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `[{"r":{"z":null}},{"r":null}]`, string(got))

	// No column of the file at all still counts rows.
	absent := []schema.Field{{ID: 50, Name: "z", Type: typ(schema.Int)}}
	require.EqualValues(t, 2, evolved(t, data, file, absent)[0].NumRows())
}

func TestEvolveRefusesUnsafeCasts(t *testing.T) {
	col := func(t schema.Type) []schema.Field { return []schema.Field{{ID: 1, Name: "x", Type: t}} }
	for _, tc := range []struct{ from, to schema.Type }{
		{typ(schema.Int), text()},
		{typ(schema.BigInt), typ(schema.Int)},
		{typ(schema.Int), typ(schema.Double)},
		{typ(schema.Double), typ(schema.Float)},
		{decimalType(10, 2), decimalType(12, 3)},
		{decimalType(10, 2), decimalType(9, 2)},
		{text(), schema.Type{Kind: schema.VarChar, Length: 5, Nullable: true}},
		{schema.Type{Kind: schema.VarChar, Length: 3, Nullable: true}, schema.Type{Kind: schema.Char, Length: 5, Nullable: true}},
		{stamp(schema.Timestamp, 3), stamp(schema.Timestamp, 6)},
		{stamp(schema.Timestamp, 3), stamp(schema.TimestampLTZ, 3)},
		{schema.Type{Kind: schema.Array, Nullable: true, Elem: ref(text())}, text()},
	} {
		_, err := Evolve(&schema.Schema{Fields: col(tc.from)}, col(tc.to))
		require.ErrorIs(t, err, errs.ErrUnsupported, "%s to %s", tc.from, tc.to)
		require.ErrorContains(t, err, "cast of column x from "+tc.from.String()+" to "+tc.to.String())
	}
}
