package harness

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline"
)

// digestOf is the digest of a naive table.
func digestOf(rows map[uint64]uint64) (d Digest) {
	for _, row := range rows {
		d.add(row)
	}
	return d
}

func TestModelAgreesWithAMapAtEveryBoundary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewModel(false, true)
		naive := map[uint64]uint64{}
		after := map[int64]Digest{0: {}} // by epoch
		rows := map[int64]Digest{0: {}}  // by input rows
		epoch, total := int64(0), int64(0)
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			var changes []Change
			for range rapid.IntRange(1, 8).Draw(t, "rows") {
				c := Change{Key: rapid.Uint64Range(0, 6).Draw(t, "key"), Row: rapid.Uint64().Draw(t, "row"), Delete: rapid.IntRange(0, 3).Draw(t, "kind") == 0}
				changes = append(changes, c)
				if naive[c.Key] = c.Row; c.Delete {
					delete(naive, c.Key)
				}
			}
			gap := rapid.Int64Range(1, 3).Draw(t, "epochs") // cuts take epochs as well
			for e := epoch + 1; e < epoch+gap; e++ {
				after[e] = after[epoch]
			}
			epoch += gap
			m.Begin()
			m.Apply(epoch, changes)
			total += int64(len(changes))
			after[epoch], rows[total] = digestOf(naive), digestOf(naive)
		}
		for e, want := range after {
			got, err := m.At(e)
			require.NoError(t, err)
			require.Equal(t, want, got.digest, "epoch %d", e)
		}
		for n := range total + 2 {
			got, ok, err := m.AtRows(n)
			require.NoError(t, err)
			want, boundary := rows[n]
			require.Equal(t, boundary, ok, "rows %d", n)
			require.Equal(t, want, got.digest)
		}
		require.Equal(t, digestOf(naive), m.Newest().digest)
	})
}

func TestModelWaitsForAWriteThatBegan(t *testing.T) {
	m := NewModel(false, true)
	m.Begin()
	answer := make(chan boundary)
	go func() {
		b, _ := m.At(2) // visible already, not yet acknowledged
		answer <- b
	}()
	m.Apply(2, []Change{{Key: 1, Row: 10}})
	require.EqualValues(t, 1, (<-answer).digest.Rows)

	m.Begin()
	go func() {
		b, _ := m.At(9)
		answer <- b
	}()
	m.Cancel()
	require.EqualValues(t, 1, (<-answer).digest.Rows)

	m.Begin()
	m.Fail(errors.New("poisoned"))
	_, err := m.At(9)
	require.EqualError(t, err, "poisoned")
}

func TestModelForgetsWhatNobodyCanAsk(t *testing.T) {
	m := NewModel(true, true)
	pin := m.Pin()
	for e := int64(1); e <= 2*pruneAt; e++ {
		m.Begin()
		m.Apply(e, []Change{{Key: 1, Row: 1}})
		m.Proven(e - 10)
	}
	_, err := m.At(5)
	require.NoError(t, err, "pinned")
	m.Unpin(pin)
	m.Begin()
	m.Apply(2*pruneAt+1, nil)
	_, err = m.At(5)
	require.ErrorContains(t, err, "older")
	b, err := m.At(2*pruneAt - 3)
	require.NoError(t, err)
	require.EqualValues(t, 2*pruneAt-3, b.digest.Rows)
	require.Less(t, len(m.bounds), 100)
}

func TestModelWithoutReadersKeepsTheNewestBoundary(t *testing.T) {
	m := NewModel(true, false)
	for e := int64(1); e <= 100; e++ {
		m.Begin()
		m.Apply(e, []Change{{Row: uint64(e)}})
	}
	require.Len(t, m.bounds, 1)
	require.EqualValues(t, 100, m.Newest().digest.Rows)
}

var pairs = arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)

func pairBatch(rows ...any) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, pairs)
	defer b.Release()
	for i := 0; i < len(rows); i += 2 {
		b.Field(0).(*array.Int64Builder).Append(int64(rows[i].(int)))
		if v, ok := rows[i+1].(string); ok {
			b.Field(1).(*array.StringBuilder).Append(v)
		} else {
			b.Field(1).AppendNull()
		}
	}
	return b.NewRecordBatch()
}

func TestHashesTellRowsApart(t *testing.T) {
	r := pairBatch(1, "a", 1, "b", 2, "a", 1, nil, 1, "", 1, "a", 1, "abcdefgh", 1, "abcdefghi", 1, "abcdefgi")
	hashes, err := hashRows(r, []int{0, 1}, nil)
	require.NoError(t, err)
	require.Equal(t, hashes[0], hashes[5])
	seen := map[uint64]int{}
	for i, h := range hashes {
		if i != 5 {
			seen[h]++
		}
	}
	require.Len(t, seen, 8)
	sliced, err := hashRows(r.NewSlice(2, 6), []int{0, 1}, nil)
	require.NoError(t, err)
	require.Equal(t, hashes[2:6], sliced)
	_, err = hashRows(array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.FixedWidthTypes.Date32}}, nil),
		[]arrow.Array{array.NewDate32Data(array.NewData(arrow.FixedWidthTypes.Date32, 0, []*memory.Buffer{nil, nil}, nil, 0, 0))}, 0), []int{0}, nil)
	require.ErrorContains(t, err, "column x")
}

// listed is a source of batches that are written out.
type listed struct {
	key     []string
	batches []func() *Batch
}

func (l listed) Name() string { return "listed" }
func (l listed) Definition() tideline.Definition {
	return tideline.Definition{Columns: pairs, PrimaryKey: l.key}
}
func (l listed) Rows() int64         { return 0 }
func (l listed) Feed() (Feed, error) { return &listedFeed{batches: l.batches}, nil }

type listedFeed struct{ batches []func() *Batch }

func (f *listedFeed) Next() (Job, error) {
	if len(f.batches) == 0 {
		return nil, nil
	}
	next := f.batches[0]
	f.batches = f.batches[1:]
	return func() (*Batch, error) { return next(), nil }, nil
}
func (f *listedFeed) Close() error { return nil }

func TestExplainNamesTheFirstDifferingRows(t *testing.T) {
	upsert, remove := tideline.UpdateAfter, tideline.Delete
	source := listed{key: []string{"k"}, batches: []func() *Batch{
		func() *Batch { return &Batch{Record: pairBatch(1, "a", 2, "b", 3, "c")} },
		func() *Batch {
			return &Batch{Record: pairBatch(2, "B", 3, nil, 4, "d"), Kinds: []tideline.RowKind{upsert, remove, upsert}}
		},
		func() *Batch { return &Batch{Record: pairBatch(1, "later")} },
	}}
	explained := func(rows ...any) *Mismatch {
		m := &Mismatch{}
		require.NoError(t, explain(source, layoutOf(source.Definition()), 2, []arrow.RecordBatch{pairBatch(rows...)}, m))
		return m
	}
	require.Empty(t, explained(1, "a", 2, "B", 4, "d").Diffs)
	require.Equal(t, []Diff{{Problem: "row differs", Key: "k=2", Want: "k=2 v=B", Got: "k=2 v=b", History: []string{
		"write 1 row 1 upsert k=2 v=b", "write 2 row 0 upsert k=2 v=B",
	}}}, explained(1, "a", 2, "b", 4, "d").Diffs)
	require.Equal(t, []Diff{{Problem: "missing row", Key: "k=4", Want: "k=4 v=d", History: []string{"write 2 row 2 upsert k=4 v=d"}}}, explained(1, "a", 2, "B").Diffs)
	require.Equal(t, []Diff{{Problem: "extra row", Key: "k=3", Got: "k=3 v=c", History: []string{
		"write 1 row 2 upsert k=3 v=c", "write 2 row 1 delete k=3 v=(null)",
	}}}, explained(1, "a", 2, "B", 3, "c", 4, "d").Diffs)
	require.Equal(t, "duplicate row", explained(1, "a", 2, "B", 4, "d", 1, "a").Diffs[0].Problem)
	require.EqualValues(t, 1, explained(11, "a", 12, "a", 13, "a", 14, "a", 4, "d").More, "four extra and two missing rows, five shown")

	source.key = nil
	m := explained(1, "a", 2, "b", 2, "B", 4, "d", 4, "d")
	require.Len(t, m.Diffs, 2)
	require.Equal(t, "duplicate row", m.Diffs[0].Problem)
	require.Equal(t, "missing row", m.Diffs[1].Problem)
}
