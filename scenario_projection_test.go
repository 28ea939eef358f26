package tideline_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/paimon/schema"
)

var nestedColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "s", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "in", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int64, Nullable: true})},
	)},
	{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
}, nil)

// PRJ-01, PRJ-02, PRJ-04, PK-27: members of rows by field id over all three tiers.
func TestNestedProjectionOverThreeTiers(t *testing.T) {
	for _, key := range [][]string{{"id"}, nil} {
		w := newWorld(t, tideline.Definition{Columns: nestedColumns, PrimaryKey: key, Options: map[string]string{"bucket": "1", "bucket-key": "id"}})
		table, writer := w.session()
		write := func(text string) {
			_, err := writer.Write(t.Context(), fromJSON(t, nestedColumns, text))
			require.NoError(t, err)
		}
		write(`[{"id":1,"s":{"a":"a1","b":"b1","in":{"x":1,"y":10}},"l":[1,2]},{"id":2,"s":null,"l":null}]`)
		commit(t, writer)
		write(`[{"id":3,"s":{"a":"a3","b":null,"in":null},"l":[]}]`)
		require.NoError(t, writer.Seal(t.Context()))
		write(`[{"id":4,"s":{"a":null,"b":"b4","in":{"x":null,"y":40}},"l":[null]}]`)
		for _, stage := range []string{"three tiers", "committed"} {
			scan := table.Scan()
			require.Equal(t, []string{`{"b":"b1"}=1`, `(null)=2`, `{"b":null}=3`, `{"b":"b4"}=4`}, read(t, scan.Select("s.b", "id")), stage)
			require.Equal(t, []string{`{"in":{"y":10}}`, `(null)`, `{"in":null}`, `{"in":{"y":40}}`}, read(t, scan.Select("s.in.y")), stage)
			require.Equal(t, []string{`{"a":"a1","in":{"x":1}}`, `(null)`, `{"a":"a3","in":null}`, `{"a":null,"in":{"x":null}}`}, read(t, scan.Select("s.a", "s.in.x")), stage)
			require.Equal(t, []string{"[1,2]", "(null)", "[]", "[null]"}, read(t, scan.Select("l")), stage)
			require.Equal(t, []string{`{"a":null}`}, read(t, scan.Select("s.a").Where(tideline.Eq("s.b", "b4"))), stage)
			require.Equal(t, []string{`{"a":"a1"}`}, read(t, scan.Select("s.a").Where(tideline.Eq("s.in.y", int64(10)))), stage)
			r, err := scan.Select().Read(t.Context())
			require.NoError(t, err)
			n := int64(0)
			for r.Next() {
				n += r.RecordBatch().NumRows()
				require.Zero(t, r.RecordBatch().NumCols())
			}
			require.NoError(t, r.Err())
			r.Release()
			require.EqualValues(t, 4, n, "counted without columns")
			if stage == "three tiers" {
				commit(t, writer)
			}
		}
		require.NoError(t, writer.Close(t.Context()))
	}
}

// APP-09, VAL-16: columns renamed and added between sessions.
func TestColumnsRenamedBetweenSessions(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		_, writer := w.session()
		put(t, writer, 1, "a", 2, "b")
		commit(t, writer)
		w.alter(func(s *schema.Schema) {
			s.Fields[1].Name = "label"
			s.Fields = append(s.Fields, schema.Field{ID: 2, Name: "name", Type: schema.Type{Kind: schema.BigInt, Nullable: true}})
			s.HighestFieldID = 2
		})
		table, writer := w.session()
		now := arrow.NewSchema([]arrow.Field{
			{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "label", Type: arrow.BinaryTypes.String, Nullable: true},
			{Name: "name", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		}, nil)
		_, err := writer.Write(t.Context(), fromJSON(t, now, `[{"id":3,"label":"c","name":7}]`))
		require.NoError(t, err)
		require.Equal(t, []string{"1=a=(null)", "2=b=(null)", "3=c=7"}, read(t, table.Scan()))
		commit(t, writer)
		require.Equal(t, []string{"a", "b", "c"}, read(t, committed(table).Select("label")))
		require.Equal(t, []string{"3=7"}, read(t, table.Scan().Select("id", "name").Where(tideline.IsNotNull("name"))))
		require.Equal(t, []string{"1=a", "2=b"}, read(t, table.Scan().AtSnapshot(1)), "in the schema of the snapshot")
		require.EqualValues(t, 1, w.latest().SchemaID)
	})
}

// The asked order, every subset, with and without the key.
func TestProjectionOrder(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 2, "b", 1, "a")
	commit(t, writer)
	put(t, writer, 1, "A")
	require.Equal(t, []string{"A=1", "b=2"}, read(t, table.Scan().Select("name", "id")))
	require.Equal(t, []string{"A", "b"}, read(t, table.Scan().Select("name")))
	r, err := table.Scan().Select("name").Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "name", r.Schema().Field(0).Name)
	require.EqualValues(t, 1, r.Snapshot())
	require.EqualValues(t, 3, r.Frontier(), "two writes and a cut")
	r.Release()
}
