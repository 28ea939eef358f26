package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func fieldOf(name, typ string) Field {
	raw := json.RawMessage(typ)
	if !strings.HasPrefix(typ, "{") {
		raw, _ = json.Marshal(typ)
	}
	return Field{Name: name, Type: raw}
}

func TestDiffComparesMultisets(t *testing.T) {
	s := Schema{Fields: []Field{
		fieldOf("a", "INT"), fieldOf("f", "FLOAT"), fieldOf("m", `{"type":"MAP","key":"STRING NOT NULL","value":"DOUBLE"}`),
		fieldOf("l", `{"type":"ARRAY","element":{"type":"ARRAY","element":"INT"}}`),
	}}
	row := `{"a":1,"f":0.1,"m":[["x",1],["y",2.0]],"l":[[1,2],[3]]}`
	tests := []struct {
		name      string
		want, got []string
		equal     bool
		report    string
	}{
		{"the same row", []string{row}, []string{row}, true, ""},
		{"order of rows and of map entries", []string{row, `{"a":2,"f":null,"m":null,"l":null}`},
			[]string{`{"a":2,"f":null,"m":null,"l":null}`, `{"l":[[1,2],[3]],"m":[["y",2],["x",1.0]],"f":0.10000000149011612,"a":1}`}, true, ""},
		{"an array of pairs is no map", []string{row}, []string{`{"a":1,"f":0.1,"m":[["x",1],["y",2]],"l":[[3],[1,2]]}`}, false, "only in got"},
		{"a duplicate counts", []string{row}, []string{row, row}, false, "want has 1 rows, got has 2"},
		{"the sign of zero counts", []string{`{"a":1,"f":0.0,"m":[],"l":[]}`}, []string{`{"a":1,"f":-0.0,"m":[],"l":[]}`}, false, "f=-0"},
		{"null is not empty", []string{`{"a":1,"f":1,"m":[],"l":[]}`}, []string{`{"a":1,"f":1,"m":null,"l":[]}`}, false, "m=null"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			diff, err := Diff(s, "want", test.want, "got", test.got)
			require.NoError(t, err)
			require.Equal(t, test.equal, diff == "", diff)
			require.Contains(t, diff, test.report)
		})
	}
	_, err := Diff(s, "want", []string{`{"a":1}`}, "got", nil)
	require.ErrorContains(t, err, "column f is missing")
	_, err = Diff(s, "want", nil, "got", []string{`{"a":1,"f":1,"m":[],"l":[],"z":1}`})
	require.ErrorContains(t, err, "column z is not in the schema")
}

// Rows survive the way through Arrow, so a difference seen with an engine that
// takes and gives Arrow is the engine's.
func TestArrowKeepsRows(t *testing.T) {
	for _, c := range Cases(7) {
		t.Run(c.Name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			var want []string
			for _, r := range c.Commits[0] {
				want = append(want, r.JSON)
			}
			batch, kinds, err := Batch(mem, c.Schema, c.Commits[0])
			require.NoError(t, err)
			defer batch.Release()
			require.Len(t, kinds, len(want))
			got, err := Lines(c.Schema, batch)
			require.NoError(t, err)
			requireSameRows(t, c.Schema, "written", want, "read", got)
		})
	}
}

func TestGenerateIsDeterministicAndUpdates(t *testing.T) {
	a, b, other := Cases(3), Cases(3), Cases(4)
	require.Equal(t, a, b)
	require.NotEqual(t, a[0].Commits, other[0].Commits)
	for _, c := range a {
		rows := 0
		for _, commit := range c.Commits {
			rows += len(commit)
		}
		if len(c.Schema.PrimaryKeys) > 0 {
			require.Less(t, len(c.Visible(len(c.Commits))), rows, "%s has no updates", c.Name)
		} else {
			require.Len(t, c.Visible(len(c.Commits)), rows)
		}
		require.NotEmpty(t, c.Visible(1), c.Name)
	}
}

// The last change of a key decides, and a lone delete shows nothing.
func TestVisibleIsTheLastChangeOfAKey(t *testing.T) {
	c := Case{
		Schema: Schema{Fields: []Field{fieldOf("k", "INT NOT NULL"), fieldOf("v", "INT")}, PrimaryKeys: []string{"k"}},
		Commits: [][]Row{
			{{"+I", `{"k":1,"v":1}`}, {"+I", `{"k":2,"v":1}`}, {"-D", `{"k":9,"v":1}`}},
			{{"+U", `{"k":1,"v":2}`}, {"-D", `{"k":2,"v":1}`}, {"+I", `{"k":3,"v":1}`}},
			{{"+I", `{"k":2,"v":7}`}, {"-U", `{"k":3,"v":1}`}},
		},
	}
	require.Equal(t, []string{`{"k":1,"v":1}`, `{"k":2,"v":1}`}, c.Visible(1))
	require.Equal(t, []string{`{"k":1,"v":2}`, `{"k":3,"v":1}`}, c.Visible(2))
	require.Equal(t, []string{`{"k":1,"v":2}`, `{"k":2,"v":7}`}, c.Visible(3))
}
