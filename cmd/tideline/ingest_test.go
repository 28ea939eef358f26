package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

const everyType = `{"fields":[
	{"name":"id","type":"INT NOT NULL"},
	{"name":"bool","type":"BOOLEAN"}, {"name":"tiny","type":"TINYINT"}, {"name":"small","type":"SMALLINT"}, {"name":"big","type":"BIGINT"},
	{"name":"float","type":"FLOAT"}, {"name":"double","type":"DOUBLE"}, {"name":"dec","type":"DECIMAL(20, 3)"},
	{"name":"char","type":"CHAR(3)"}, {"name":"text","type":"STRING"}, {"name":"bin","type":"BINARY(2)"}, {"name":"bytes","type":"BYTES"},
	{"name":"date","type":"DATE"}, {"name":"time","type":"TIME(3)"},
	{"name":"ts0","type":"TIMESTAMP(0)"}, {"name":"ts3","type":"TIMESTAMP(3)"}, {"name":"ts6","type":"TIMESTAMP(6)"}, {"name":"ts9","type":"TIMESTAMP(9)"},
	{"name":"ltz","type":"TIMESTAMP(6) WITH LOCAL TIME ZONE"},
	{"name":"list","type":{"type":"ARRAY","element":"INT"}},
	{"name":"map","type":{"type":"MAP","key":"STRING NOT NULL","value":"DOUBLE"}},
	{"name":"row","type":{"type":"ROW","fields":[{"name":"a","type":"INT"},{"name":"b","type":{"type":"ARRAY","element":"STRING"}}]}}
]}`

const everyRow = `{"id":1,"bool":true,"tiny":-128,"small":32767,"big":-9223372036854775808,"float":0.1,"double":1e+300,"dec":"-12345678901234567.890","char":"abc","text":"a,\"b\"\n é 'x'","bin":"00ff","bytes":"","date":"1969-12-31","time":"23:59:59.999","ts0":"1969-12-31 23:59:59","ts3":"2024-02-29 01:02:03.004","ts6":"2024-02-29 01:02:03.000004","ts9":"2024-02-29 01:02:03.000000004","ltz":"2024-02-29 01:02:03.500000Z","list":[1,null,3],"map":[["k",1.5],["l",null]],"row":{"a":7,"b":["x",null]}}
{"id":2,"bool":null,"tiny":null,"small":null,"big":null,"float":null,"double":null,"dec":null,"char":null,"text":null,"bin":null,"bytes":null,"date":null,"time":null,"ts0":null,"ts3":null,"ts6":null,"ts9":null,"ltz":null,"list":null,"map":null,"row":null}
{"id":3,"bool":false,"tiny":0,"small":0,"big":0,"float":"NaN","double":"-Infinity","dec":"0.000","char":"","text":"","bin":"0000","bytes":"ab","date":"2000-01-01","time":"00:00:00.000","ts0":"1970-01-01 00:00:00","ts3":"1970-01-01 00:00:00.000","ts6":"1970-01-01 00:00:00.000000","ts9":"1970-01-01 00:00:00.000000000","ltz":"1970-01-01 00:00:00.000000Z","list":[],"map":[],"row":{"a":null,"b":[]}}
`

func typed(t testing.TB, flags ...string) string {
	t.Helper()
	table := filepath.Join(t.TempDir(), "typed")
	must(t, append([]string{"create", table, "--schema", write(t, "every.json", everyType)}, flags...)...)
	return table
}

// Each type goes through each format and comes back as it was.
func TestEveryTypeThroughEveryFormat(t *testing.T) {
	for _, key := range []string{"", "id"} {
		first := typed(t, "--primary-key", key)
		must(t, "ingest", first, write(t, "rows.jsonl", everyRow))
		require.Equal(t, everyRow, must(t, "read", first, "-f", "jsonl"), "key %q", key)
		for _, format := range []string{"jsonl", "csv", "arrow", "parquet", "arrow file"} {
			text := export(t, first, format)
			extension := strings.Fields(format)[0]
			second := typed(t, "--primary-key", key)
			must(t, "ingest", second, write(t, "rows."+extension, text))
			require.Equal(t, everyRow, must(t, "read", second, "-f", "jsonl"), "%s, key %q", format, key)
			third := typed(t, "--primary-key", key)
			r := tlIn(t, text, "ingest", third, "-", "--format", extension, "--batch", "2")
			require.Zero(t, r.code, r.err)
			require.Equal(t, everyRow, must(t, "read", third, "-f", "jsonl"), "%s from a pipe, key %q", format, key)
		}
	}
}

// export prints a table in a format that ingest reads.
func export(t testing.TB, table, format string) string {
	t.Helper()
	if format != "parquet" && format != "arrow file" {
		return must(t, "read", table, "-f", format)
	}
	stream, err := ipc.NewReader(strings.NewReader(must(t, "read", table, "-f", "arrow")))
	require.NoError(t, err)
	defer stream.Release()
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	require.NoError(t, err)
	var w interface {
		Write(arrow.RecordBatch) error
		Close() error
	}
	if format == "parquet" {
		w, err = pqarrow.NewFileWriter(stream.Schema(), out, nil, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	} else {
		w, err = ipc.NewFileWriter(out, ipc.WithSchema(stream.Schema()))
	}
	require.NoError(t, err)
	for stream.Next() {
		require.NoError(t, w.Write(stream.RecordBatch()))
	}
	require.NoError(t, stream.Err())
	require.NoError(t, w.Close())
	_ = out.Close() // the Parquet writer closed it
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// lines makes numbered rows [lo, hi).
func lines(lo, hi int) string {
	var b strings.Builder
	for i := lo; i < hi; i++ {
		fmt.Fprintf(&b, `{"line":%d,"id":%d,"city":"c%d","n":%d}`+"\n", i, i%7, i, i)
	}
	return b.String()
}

// A load that broke off at any line is started again and adds what is missing.
func TestOffsetsMakeALoadRepeatable(t *testing.T) {
	const rows = 40
	whole := write(t, "whole.jsonl", lines(0, rows))
	for _, flags := range [][]string{nil, {"-o", "bucket=3"}, {"--primary-key", ""}} {
		want := orders(t, flags...)
		must(t, "ingest", want, whole, "--offset-field", "line")
		expected := sorted(must(t, "read", want, "-f", "jsonl"))
		for _, cut := range []int{0, 1, 17, rows} {
			table := orders(t, flags...)
			must(t, "ingest", table, write(t, "cut.jsonl", lines(0, cut)), "--offset-field", "line", "--batch", "4", "--commit-every", "8rows")
			r := tl(t, "ingest", table, whole, "--offset-field", "line", "--batch", "5")
			require.Zero(t, r.code, r.err)
			if cut > 0 {
				require.Contains(t, r.err, fmt.Sprintf("%s skipped, below the committed offsets", count(int64(cut), "row")))
			}
			require.Equal(t, expected, sorted(must(t, "read", table, "-f", "jsonl")), "%v cut at %d", flags, cut)
			before := must(t, "snapshots", table, "-f", "jsonl")
			r = tl(t, "ingest", table, whole, "--offset-field", "line")
			require.Zero(t, r.code, r.err)
			require.Contains(t, r.err, "0 rows written")
			require.Equal(t, before, must(t, "snapshots", table, "-f", "jsonl"), "nothing was added")
		}
	}
}

func TestOffsetsOfOtherFormats(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("line,id,city,n\n")
	for i := range 10 {
		fmt.Fprintf(&csv, "%d,%d,c,%d\n", i*10, i, i)
	}
	table := orders(t)
	must(t, "ingest", table, write(t, "a.csv", csv.String()), "--offset-field", "line")
	require.Contains(t, must(t, "offsets", table, "-f", "jsonl"), `"bucket":0,"offset":91}`)
	require.Contains(t, must(t, "offsets", table), "91\n")

	in := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}, {Name: "line", Type: arrow.PrimitiveTypes.Uint16},
		{Name: "op", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(in.Fields()[:2], nil), strings.NewReader(
		`[{"id":0,"line":90},{"id":1,"line":91},{"id":2,"line":95},{"id":50,"line":96}]`))
	require.NoError(t, err)
	words := array.NewDictionaryBuilder(memory.DefaultAllocator, in.Field(2).Type.(*arrow.DictionaryType)).(*array.BinaryDictionaryBuilder)
	for _, w := range []string{"D", "D", "D", "I"} {
		require.NoError(t, words.AppendString(w))
	}
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(in))
	require.NoError(t, w.Write(array.NewRecordBatch(in, append(b.Columns(), words.NewArray()), 4)))
	require.NoError(t, w.Close())
	r := tlIn(t, stream.String(), "ingest", table, "-f", "arrow", "--offset-field", "line", "--op-field", "op")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "3 rows written")
	ids := must(t, "read", table, "-f", "csv", "-c", "id", "-w", "id < 4 OR id > 8")
	require.Equal(t, []string{"0", "3", "50", "9", "id"}, sorted(ids))
}

// Offsets may rise inside each bucket only, as where one file holds the logs of
// several.
func TestOffsetsMayGoBackBetweenBuckets(t *testing.T) {
	table := orders(t, "--primary-key", "city,id", "--partition", "city")
	file := write(t, "a.jsonl", `{"city":"a","id":1,"line":0}
{"city":"a","id":2,"line":1}
{"city":"b","id":1,"line":0}
{"city":"b","id":2,"line":1}
`)
	must(t, "ingest", table, file, "--offset-field", "line")
	require.Contains(t, tl(t, "ingest", table, file, "--offset-field", "line").err, "4 rows skipped, below the committed offsets")
	require.Equal(t, []string{
		`{"snapshot":"snapshot-1","found":true,"position":null}`,
		`{"snapshot":"snapshot-1","partition":{"city":"a"},"bucket":0,"offset":2}`,
		`{"snapshot":"snapshot-1","partition":{"city":"b"},"bucket":0,"offset":2}`,
	}, sorted(must(t, "offsets", table, "-f", "jsonl")))
}

const mixed = `{"id":1}
{"id":2}
{"id":"x"}
{"id":4}
{"id":5,"city":"Oslo"
{"id":6,"zzz":1}
{"id":7}
`

func TestABadLineStopsTheLoad(t *testing.T) {
	table := orders(t)
	r := tl(t, "ingest", table, write(t, "a.jsonl", mixed))
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.err, "tideline: line 3: column id: \"x\" is no BIGINT")
	require.Empty(t, must(t, "read", table, "-f", "jsonl"), "its batch is not written")

	r = tl(t, "ingest", table, write(t, "a.jsonl", mixed), "--batch", "2")
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.err, "tideline: line 3: ")
	require.Len(t, sorted(must(t, "read", table, "-f", "jsonl")), 2, "the batch before stays")
}

func TestBadLinesAreSkippedOnRequest(t *testing.T) {
	table := orders(t)
	r := tl(t, "ingest", table, write(t, "a.jsonl", mixed), "--on-error", "skip", "--batch", "2")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "skipped line 3: column id: \"x\" is no BIGINT")
	require.Contains(t, r.err, "skipped line 5: the line ends")
	require.Contains(t, r.err, "skipped line 6: key \"zzz\" is no column")
	require.Contains(t, r.err, "4 rows written")
	require.Contains(t, r.err, "3 bad rows skipped")
	require.Equal(t, []string{"1", "2", "4", "7", "id"}, sorted(must(t, "read", table, "-f", "csv", "-c", "id")))
	must(t, "ingest", table, write(t, "b.jsonl", `{"id":6,"zzz":1}`), "--ignore-extra")
}

// What only the table can see, here a year that it does not keep, is traced to its
// line as well.
func TestRowsThatTheTableRefuses(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		year := "2024"
		if i%50 == 49 {
			year = "+10000"
		}
		fmt.Fprintf(&b, `{"id":%d,"date":"%s-01-02"}`+"\n", i, year)
	}
	rows := write(t, "a.jsonl", b.String())
	table := typed(t)
	r := tl(t, "ingest", table, rows)
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.err, "tideline: line 50: column date")
	require.Empty(t, must(t, "read", table, "-f", "jsonl"))

	r = tl(t, "ingest", table, rows, "--on-error", "skip")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "skipped line 50: column date")
	require.Contains(t, r.err, "skipped line 100: column date")
	require.Len(t, sorted(must(t, "read", table, "-f", "jsonl")), 98)
}

// Columns of other widths and kinds are converted value by value.
func TestArrowColumnsAreConverted(t *testing.T) {
	in := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Uint64, Nullable: true}, {Name: "id", Type: arrow.BinaryTypes.String},
		{Name: "city", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, in, strings.NewReader(
		`[{"n":5,"id":"1"},{"n":5000000000,"id":"2"},{"n":null,"id":"three"},{"n":7,"id":"4","city":"2024-01-02"}]`))
	require.NoError(t, err)
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(in))
	require.NoError(t, w.Write(b))
	require.NoError(t, w.Close())
	table := orders(t)
	r := tlIn(t, stream.String(), "ingest", table, "-f", "arrow")
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.err, `tideline: row 2: column n: "5000000000" is out of the range of INT`)
	require.Empty(t, must(t, "read", table, "-f", "jsonl"))
	r = tlIn(t, stream.String(), "ingest", table, "-f", "arrow", "--on-error", "skip")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, `skipped row 3: column id: "three" is no BIGINT`)
	require.Equal(t, `{"id":1,"city":null,"n":5}`+"\n"+`{"id":4,"city":"2024-01-02","n":7}`+"\n", must(t, "read", table, "-f", "jsonl"))
}

func TestCSVForms(t *testing.T) {
	table := orders(t)
	must(t, "ingest", table, write(t, "a.csv", "\xef\xbb\xbfcity,id\r\n\"two\nlines, \"\"quoted\"\"\",1\r\n,2\r\n\r\n\"\",3"))
	require.Equal(t, []string{
		`{"id":1,"city":"two\nlines, \"quoted\"","n":null}`, `{"id":2,"city":null,"n":null}`, `{"id":3,"city":"","n":null}`,
	}, sorted(must(t, "read", table, "-f", "jsonl")))
	for text, want := range map[string]string{
		"id,city\n1,a\n2\n":              "line 3: 1 cells where the header has 2",
		"id,city\n\"1\n\",a\n2,a\n":      "line 2: column id",
		"id,city\n1,\"a\nb\"\n2,b\"b\n":  "line 4: a quote stands inside a cell",
		"id,city\n1,\"a\"b\n":            "line 2: 'b' follows a closing quote",
		"id,city\n1,\"a\n\n":             "line 2: a quoted cell has no end",
		"id,id\n1,1\n":                   `the header names the column "id" twice`,
		"id,\"ci\"ty\n1,1\n":             "follows a closing quote",
		"id,city\n1," + "\"\"\"\",3\n":   "line 2: 3 cells",
		"id,unknown\n1,1\n":              `the header names the column "unknown"`,
		"city,n\nOslo,1\n":               "line 2: column id: NULL where BIGINT NOT NULL asks for a value",
		"id,n\n1,99999999999999999999\n": "out of the range of INT",
	} {
		r := tl(t, "ingest", orders(t), write(t, "b.csv", text))
		require.Equal(t, exitFailed, r.code, text)
		require.Contains(t, r.err, want, text)
	}
}

// A record has the same cells however its bytes arrive.
func FuzzCSV(f *testing.F) {
	f.Add("a,b\n", 1)
	f.Add("\"a\"\"b\",\r\n\n,x", 3)
	f.Add("\"\r\n\"\r\n", 4)
	f.Add("0\"000\n", 4)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		whole, n, err := parseCSV([]byte(text), true, nil)
		require.LessOrEqual(t, n, len(text))
		require.True(t, n > 0 || text == "", "it makes progress")
		if cut < 0 || cut >= len(text) {
			return
		}
		part, m, partErr := parseCSV([]byte(text)[:cut], false, nil)
		if m == 0 {
			require.NoError(t, partErr)
			return
		}
		require.Equal(t, err == nil, partErr == nil)
		require.Equal(t, n, m)
		if err == nil {
			require.Equal(t, whole, part)
			again := []byte{}
			for i, c := range whole {
				if i > 0 {
					again = append(again, ',')
				}
				if !c.Null {
					again = appendCSV(again, c.Text)
				}
			}
			back, _, err := parseCSV(append(again, '\n'), true, nil)
			require.NoError(t, err)
			require.Len(t, back, len(whole))
			for i := range whole {
				require.Equal(t, whole[i].Null, back[i].Null)
				require.Equal(t, string(whole[i].Text), string(back[i].Text))
			}
		}
	})
}
