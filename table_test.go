package tideline_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var people = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// rows makes a batch of people.
func rows(t *testing.T, pairs ...any) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, people)
	defer b.Release()
	for i := 0; i < len(pairs); i += 2 {
		b.Field(0).(*array.Int64Builder).Append(int64(pairs[i].(int)))
		if name, ok := pairs[i+1].(string); ok {
			b.Field(1).(*array.StringBuilder).Append(name)
		} else {
			b.Field(1).AppendNull()
		}
	}
	r := b.NewRecordBatch()
	t.Cleanup(r.Release)
	return r
}

// read returns a scan as "id=name" lines in the order of the reader.
func read(t *testing.T, s tideline.Scan) []string {
	t.Helper()
	r, err := s.Read(t.Context())
	require.NoError(t, err)
	return drain(t, r)
}

func drain(t *testing.T, r *tideline.Reader) []string {
	t.Helper()
	defer r.Release()
	out := []string{}
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			line := ""
			for c := range int(b.NumCols()) {
				if c > 0 {
					line += "="
				}
				line += b.Column(c).ValueStr(i)
			}
			out = append(out, line)
		}
	}
	require.NoError(t, r.Err())
	return out
}

func createPeople(t *testing.T, options map[string]string) *tideline.Table {
	t.Helper()
	table, err := tideline.Create(t.Context(), t.TempDir()+"/people", tideline.Definition{
		Columns: people, PrimaryKey: []string{"id"}, Options: options,
	}, tideline.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, table.Close(context.Background())) })
	return table
}

func TestRowsAreVisibleBeforeAndAfterCommitAndAfterReopen(t *testing.T) {
	for _, buckets := range []string{"1", "3"} {
		t.Run("buckets="+buckets, func(t *testing.T) {
			ctx := t.Context()
			table := createPeople(t, map[string]string{"bucket": buckets})
			w, err := table.Writer(ctx)
			require.NoError(t, err)
			_, err = w.Write(ctx, rows(t, 1, "ada", 2, "bob", 1, "Ada"))
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"1=Ada", "2=bob"}, read(t, table.Scan()))
			c, err := w.Commit(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 1, c.ID)
			require.ElementsMatch(t, []string{"1=Ada", "2=bob"}, read(t, table.Scan()))
			require.ElementsMatch(t, []string{"1=Ada", "2=bob"}, read(t, table.Scan().CommittedOnly()))
			_, err = w.Write(ctx, rows(t, 2, nil, 1, nil, 3, "cyd"), tideline.Kinds([]int8{tideline.Delete, tideline.UpdateAfter, tideline.Insert}))
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"1=(null)", "3=cyd"}, read(t, table.Scan()))
			require.ElementsMatch(t, []string{"1=Ada", "2=bob"}, read(t, table.Scan().CommittedOnly()))
			p, err := w.PrepareCommit(ctx, tideline.Position([]byte("p2")))
			require.NoError(t, err)
			require.EqualValues(t, 3, p.Rows)
			c, err = table.Commit(ctx, p)
			require.NoError(t, err)
			require.EqualValues(t, 2, c.ID)
			require.ElementsMatch(t, []string{"1=(null)", "3=cyd"}, read(t, table.Scan()), "published, not yet adopted")
			require.NoError(t, table.Refresh(ctx))
			stats, err := table.Stats(ctx)
			require.NoError(t, err)
			require.Zero(t, stats.UsedBytes)
			require.NoError(t, w.Close(ctx))
			require.NoError(t, table.Close(ctx))

			again, err := tideline.Open(ctx, table.Path(), tideline.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, again.Close(ctx)) }()
			require.ElementsMatch(t, []string{"1=(null)", "3=cyd"}, read(t, again.Scan()))
			progress, err := again.Progress(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, "p2", string(progress.Position))
			total := int64(0)
			for _, o := range progress.Offsets {
				total += o.Offset
			}
			require.EqualValues(t, 6, total)
		})
	}
}

func TestManyBatchesOfEverySize(t *testing.T) {
	ctx := t.Context()
	for _, size := range []int{1, 10, 63, 64, 500} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			table := createPeople(t, nil)
			w, err := table.Writer(ctx)
			require.NoError(t, err)
			want := map[int]string{}
			for batch := range 40 {
				var pairs []any
				for i := range size {
					id := (batch*7919 + i*31) % 997
					name := fmt.Sprintf("n%d-%d", batch, i)
					pairs = append(pairs, id, name)
					want[id] = name
				}
				_, err := w.Write(ctx, rows(t, pairs...))
				require.NoError(t, err)
			}
			var lines []string
			for id, name := range want {
				lines = append(lines, fmt.Sprintf("%d=%s", id, name))
			}
			require.ElementsMatch(t, lines, read(t, table.Scan()))
			_, err = w.Commit(ctx)
			require.NoError(t, err)
			require.ElementsMatch(t, lines, read(t, table.Scan()))
			require.NoError(t, w.Close(ctx))
		})
	}
}

func TestAPositionIsCommittedEvenWithoutRows(t *testing.T) {
	ctx := t.Context()
	table := createPeople(t, nil)
	w, err := table.Writer(ctx)
	require.NoError(t, err)
	_, err = w.Write(ctx, rows(t, 1, "ada"))
	require.NoError(t, err)
	_, err = w.Commit(ctx, tideline.Position([]byte("a")))
	require.NoError(t, err)
	c, err := w.Commit(ctx, tideline.Position([]byte("b")))
	require.NoError(t, err)
	require.EqualValues(t, 2, c.ID)
	again, err := table.Commit(ctx, tideline.Prepared{Number: 2})
	require.NoError(t, err)
	require.EqualValues(t, 2, again.ID)
	require.True(t, again.AlreadyThere)
	c, err = w.Commit(ctx)
	require.NoError(t, err)
	require.Zero(t, c.ID, "nothing prepared: no snapshot, no error")
	p, err := table.Progress(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, "b", string(p.Position))
	require.ElementsMatch(t, []string{"1=ada"}, read(t, table.Scan()))
	require.NoError(t, w.Close(ctx))
}
