package bucket

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func notNull(k schema.Kind) schema.Type { return schema.Type{Kind: k} }

func nullable(k schema.Kind) schema.Type { return schema.Type{Kind: k, Nullable: true} }

func text(null bool) schema.Type {
	return schema.Type{Kind: schema.VarChar, Length: schema.MaxLength, Nullable: null}
}

func field(name string, t schema.Type) schema.Field { return schema.Field{Name: name, Type: t} }

type tableSpec struct {
	fields    []schema.Field
	partition []string
	key       []string
	options   map[string]string
}

func newTable(t testing.TB, spec tableSpec) *Table {
	t.Helper()
	if spec.options == nil {
		spec.options = map[string]string{"bucket": "1"}
		if len(spec.key) == 0 {
			spec.options = map[string]string{"bucket": "-1"}
		}
	}
	s, err := schema.New(spec.fields, spec.partition, spec.key, spec.options, 0)
	require.NoError(t, err)
	o, err := schema.ParseOptions(s)
	require.NoError(t, err)
	table, err := NewTable(s, o)
	require.NoError(t, err)
	return table
}

// keyed is a table of a BIGINT key and two nullable values.
func keyed(t testing.TB) *Table {
	return newTable(t, tableSpec{
		fields: []schema.Field{field("k", notNull(schema.BigInt)), field("a", nullable(schema.Int)), field("s", text(true))},
		key:    []string{"k"},
	})
}

// plain is the same without a key.
func plain(t testing.TB) *Table {
	return newTable(t, tableSpec{
		fields: []schema.Field{field("k", notNull(schema.BigInt)), field("a", nullable(schema.Int)), field("s", text(true))},
	})
}

func record(t testing.TB, sc *arrow.Schema, json string) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(json))
	require.NoError(t, err)
	return rec
}

func prepare(t testing.TB, table *Table, json string, kinds []int8, offsets []int64) *Prepared {
	t.Helper()
	p, err := NewPreparer(table).Prepare(record(t, table.ArrowSchema(), json), kinds, offsets)
	require.NoError(t, err)
	return p
}

func newState(t *Table) *State {
	return NewState(t, &Part{PartitionRow: unpartitioned.PartitionRow}, Restore{})
}

// lines prints the rows of runs, "seq kind values".
func lines(t testing.TB, runs []*Run) []string {
	t.Helper()
	var out []string
	for _, r := range runs {
		out = append(out, blockLines(t, r.t, r.Block(nil))...)
	}
	return out
}

func blockLines(t testing.TB, table *Table, b *merge.Block) []string {
	t.Helper()
	out := make([]string, b.Rows)
	for i := range out {
		cells := make([]string, len(b.Columns))
		for c, col := range b.Columns {
			require.Equal(t, b.Rows, col.Len())
			cells[c] = col.ValueStr(i)
		}
		kind := merge.KindInsert
		if b.Kinds != nil {
			kind = b.Kinds[i]
		}
		seq := int64(-1)
		if table.IsPrimaryKey() {
			seq = b.Seq.At(i)
		}
		out[i] = fmt.Sprintf("%d %d %s", seq, kind, strings.Join(cells, "|"))
	}
	return out
}

// write prepares JSON rows and appends every part to one bucket.
func write(t testing.TB, s *State, epoch int64, json string, kinds []int8, offsets []int64) {
	t.Helper()
	for _, part := range prepare(t, s.t, json, kinds, offsets).Parts {
		require.NoError(t, s.Append(part, epoch))
	}
}

func visible(t testing.TB, v *View, committedEnd, frontier int64) []string {
	t.Helper()
	runs, err := v.Runs(committedEnd, frontier)
	require.NoError(t, err)
	return lines(t, runs)
}
