package bucket

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// TestRowsFindTheirPartitionBucket splits random batches and compares with one
// row at a time: partition text, hash of the encoded bucket key, rank as it came.
func TestRowsFindTheirPartitionBucket(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for _, c := range []struct {
		name       string
		partitions int // distinct values, 0: not partitioned
		buckets    int
		key        bool
		rows       int
	}{
		{"one bucket", 0, 1, true, 200}, {"buckets", 0, 3, true, 600}, {"many buckets", 0, 64, true, 600},
		{"partitions", 4, 1, true, 600}, {"both", 3, 2, true, 900}, {"one partition", 1, 2, true, 500},
		{"append by key", 3, 4, false, 700}, {"append", 5, -1, false, 500}, {"small", 2, 2, true, 9},
		{"one row", 2, 2, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := tableSpec{
				fields: []schema.Field{
					field("p", nullable(schema.Int)), field("k", notNull(schema.BigInt)), field("s", text(true)),
				},
				options: map[string]string{"bucket": fmt.Sprint(c.buckets)},
			}
			if c.partitions > 0 {
				spec.partition = []string{"p"}
			}
			if c.key {
				spec.key = []string{"k"}
				spec.fields[0].Type.Nullable = c.partitions == 0
				if c.partitions > 0 {
					spec.key = []string{"p", "k"}
				}
			} else if c.buckets > 0 {
				spec.options["bucket-key"] = "k"
			}
			table := newTable(t, spec)
			var json strings.Builder
			kinds, offsets := make([]int8, c.rows), make([]int64, c.rows)
			want := map[ID][]string{}
			var order []ID
			for i := range c.rows {
				p, k := rng.IntN(max(c.partitions, 1)), rng.IntN(50)
				if c.key {
					kinds[i] = int8(rng.IntN(4))
				}
				offsets[i] = int64(i * 3)
				fmt.Fprintf(&json, `,{"p":%d,"k":%d,"s":"%d"}`, p, k, i)
				encoded, err := row.Encode([]schema.Type{spec.fields[1].Type}, []row.Value{int64(k)})
				require.NoError(t, err)
				id := ID{Bucket: int32(row.BucketOf(row.Hash(encoded), max(c.buckets, 1)))}
				if c.partitions > 0 {
					id.Partition = fmt.Sprintf("p=%d", p)
				}
				if want[id] == nil {
					order = append(order, id)
				}
				seq := int64(len(want[id]))
				if !c.key {
					seq = -1
				}
				want[id] = append(want[id], fmt.Sprintf("%02d %d %d %d|%d|%d", k, seq, kinds[i], p, k, i))
			}
			p := prepare(t, table, "["+json.String()[1:]+"]", kinds, offsets)
			require.Equal(t, c.rows, p.Rows)
			var got []ID
			bytes := int64(0)
			for _, part := range p.Parts {
				got = append(got, part.ID)
				bytes += part.Bytes
				rows := want[part.ID]
				require.Equal(t, part.Rows <= smallRowsMax, part.Small)
				require.Equal(t, len(rows), part.Rows)
				require.Len(t, part.Offsets, part.Rows)
				require.True(t, slices.IsSorted(part.Offsets))
				require.Equal(t, lastNumber(rows[0])*3, part.FirstOffset)
				require.Equal(t, lastNumber(rows[len(rows)-1])*3, part.LastOffset)
				if c.key {
					slices.SortStableFunc(rows, func(a, b string) int { return strings.Compare(a[:2], b[:2]) })
				}
				s := NewState(table, part, Restore{})
				require.NoError(t, s.Append(part, 1))
				for i, line := range visible(t, s.View(), 0, 1) {
					require.Equal(t, rows[i][3:], line)
				}
				require.Equal(t, part.Bytes, s.Describe().BuildingBytes)
			}
			require.Equal(t, order, got, "in order of first appearance")
			require.Equal(t, bytes, p.Bytes)
		})
	}
}

func lastNumber(line string) (n int64) {
	fmt.Sscan(line[strings.LastIndex(line, "|")+1:], &n)
	return n
}

// Values of every flat type go through an open chunk and through runs of their
// own, with nulls, and come out the same.
func TestEveryFlatTypeInBothForms(t *testing.T) {
	types := []schema.Type{
		nullable(schema.Boolean), nullable(schema.TinyInt), nullable(schema.SmallInt), nullable(schema.Int), nullable(schema.BigInt),
		nullable(schema.Float), nullable(schema.Double), nullable(schema.Date), nullable(schema.Time), text(true),
		{Kind: schema.Decimal, Prec: 5, Scale: 2, Nullable: true}, {Kind: schema.Decimal, Prec: 30, Scale: 2, Nullable: true},
		{Kind: schema.Timestamp, Prec: 3, Nullable: true}, {Kind: schema.Timestamp, Prec: 6, Nullable: true}, {Kind: schema.TimestampLTZ, Prec: 9, Nullable: true},
		{Kind: schema.VarBinary, Length: schema.MaxLength, Nullable: true}, {Kind: schema.Binary, Length: 3, Nullable: true}, {Kind: schema.Char, Length: 3, Nullable: true},
	}
	spec := tableSpec{fields: []schema.Field{field("k", notNull(schema.Int))}, key: []string{"k"}}
	for i, typ := range types {
		spec.fields = append(spec.fields, field(fmt.Sprintf("c%d", i), typ))
	}
	table := newTable(t, spec)
	cells := []string{
		"true", "-5", "-300", "70000", "-5000000000", "1.5", "-2.25", `"2024-02-29"`, `"23:59:59.999"`, `"text"`,
		`"-123.45"`, `"1234567890123456789012345678.90"`, `"2024-01-01 00:00:00.123"`, `"1969-12-31 23:59:59.999999"`, `"2024-01-01 00:00:00.123456789"`,
		`"AAEC"`, `"YWJj"`, `"abc"`,
	}
	const rows = 70
	var all strings.Builder
	one := make([]string, rows)
	for i := range rows {
		one[i] = fmt.Sprintf(`{"k":%d`, (i*37)%rows)
		for c, cell := range cells {
			if (i+c)%3 == 0 {
				cell = "null"
			}
			one[i] += fmt.Sprintf(`,"c%d":%s`, c, cell)
		}
		one[i] += "}"
		all.WriteString("," + one[i])
	}
	single, whole := newState(table), newState(table)
	for i := range one {
		write(t, single, int64(i), "["+one[i]+"]", nil, nil)
	}
	write(t, whole, 1, "["+all.String()[1:]+"]", nil, nil)
	want := visible(t, whole.View(), 0, 1)
	require.Equal(t, want, visible(t, single.View(), 0, rows))
	require.Len(t, want, rows)
	rec := record(t, table.ArrowSchema(), "["+all.String()[1:]+"]")
	for i := range rows {
		k := (i * 37) % rows
		for c := range rec.NumCols() {
			require.Contains(t, want[k], rec.Column(int(c)).ValueStr(i))
		}
	}
	single.Seal(rows)
	consolidate(t, single, rows)
	require.Equal(t, want, visible(t, single.View(), 0, rows))
}

// A view of an open chunk keeps its rows while the chunk grows, gets its first
// null and its first delete, and is closed.
func TestPrefixesOfAGrowingChunk(t *testing.T) {
	s := newState(keyed(t))
	type seenAt struct {
		view *View
		rows []string
	}
	var views []seenAt
	for i := range 2 * chunkRows / 3 {
		json := fmt.Sprintf(`[{"k":%d,"a":%d,"s":"%s"},{"k":%d,"a":0,"s":""}]`, (i*7919)%5000, i, strings.Repeat("y", i%11), i%13)
		var kinds []int8
		if i > 700 {
			json = strings.Replace(json, `"a":0`, `"a":null`, 1)
		}
		if i > 900 {
			kinds = []int8{merge.KindInsert, merge.KindDelete}
		}
		write(t, s, int64(i), json, kinds, nil)
		if i%97 == 0 || i == 1 {
			v := s.View()
			views = append(views, seenAt{v, visible(t, v, 0, int64(i))})
			require.Len(t, views[len(views)-1].rows, 2*(i+1))
		}
	}
	require.Equal(t, 1, s.building.chunks, "the first chunk is full")
	for i, v := range views {
		require.Equal(t, v.rows, visible(t, v.view, 0, 1<<40), "view %d", i)
	}
}
