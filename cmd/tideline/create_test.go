package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// columns are name and type of each column of a table.
func columns(t testing.TB, table string) map[string]string {
	t.Helper()
	var s struct {
		Fields []struct {
			Name string
			Type any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, "schema", table, "-f", "jsonl")), &s))
	out := map[string]string{}
	for _, f := range s.Fields {
		text, ok := f.Type.(string)
		if !ok {
			raw, err := json.Marshal(f.Type)
			require.NoError(t, err)
			text = string(raw)
		}
		out[f.Name] = text
	}
	return out
}

func TestCSVColumnsAreGuessed(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t")
	must(t, "create", table, "--primary-key", "i", "--like", write(t, "x.csv", `b,i,f,d,ts,s,empty,mixed
true,1,1,2024-01-02,2024-01-02 03:04:05,x,,1
FALSE,-2,1.5,,2024-01-02T03:04:05.123456Z,,,a
`))
	require.Equal(t, map[string]string{
		"b": "BOOLEAN", "i": "BIGINT NOT NULL", "f": "DOUBLE", "d": "DATE", "ts": "TIMESTAMP(6)", "s": "STRING", "empty": "STRING", "mixed": "STRING",
	}, columns(t, table))
}

func TestColumnsOfArrowAndParquet(t *testing.T) {
	first := typed(t)
	want := columns(t, first)
	want["char"] = "STRING" // what Arrow does not tell apart
	want["bin"] = "BYTES"
	want["ts0"] = "TIMESTAMP(3)"
	for _, format := range []string{"arrow", "parquet"} {
		table := filepath.Join(t.TempDir(), "t")
		like := write(t, "x."+format, export(t, first, format))
		must(t, "create", table, "--like", like)
		got := columns(t, table)
		for name, text := range want {
			if text[0] != '{' {
				require.Equal(t, text, got[name], "%s %s", format, name)
			}
			require.Contains(t, got, name)
		}
		must(t, "ingest", table, like)
	}
}

// A printed schema makes the same table again.
func TestSchemaOfATableMakesAnother(t *testing.T) {
	first := orders(t, "--partition", "city", "--primary-key", "city,id", "-o", "bucket=4", "--comment", "all orders")
	text := must(t, "schema", first, "-f", "jsonl")
	second := filepath.Join(t.TempDir(), "second")
	must(t, "create", second, "--schema", write(t, "s.json", text))
	var a, b map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &a))
	require.NoError(t, json.Unmarshal([]byte(must(t, "schema", second, "-f", "jsonl")), &b))
	delete(a, "timeMillis")
	delete(b, "timeMillis")
	require.Equal(t, a, b)
	require.Equal(t, `column  id  type             key                comment
------  --  ---------------  -----------------  -------
id       0  BIGINT NOT NULL  primary
city     1  STRING NOT NULL  primary partition
n        2  INT

schema 0: all orders
bucket = 4
data-file.thin-mode = true
`, must(t, "schema", second))
}

func TestFieldIdsAreGivenDepthFirst(t *testing.T) {
	d, err := definition([]byte(`{"fields":[{"name":"a","type":{"type":"ROW","fields":[{"name":"x","type":"INT"}]}},{"name":"b","type":"INT"}]}`), "s.json")
	require.NoError(t, err)
	require.Equal(t, 0, d.Fields[0].ID)
	require.Equal(t, 1, d.Fields[0].Type.Fields[0].ID)
	require.Equal(t, 2, d.Fields[1].ID)
}
