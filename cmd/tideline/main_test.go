package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what one run of the program left.
type result struct {
	code     int
	out, err string
}

func tl(t testing.TB, args ...string) result { return tlIn(t, "", args...) }

func tlIn(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(args, strings.NewReader(stdin), &out, &err)
	return result{code, out.String(), err.String()}
}

// must runs a command that succeeds and returns its output.
func must(t testing.TB, args ...string) string {
	t.Helper()
	r := tl(t, args...)
	require.Zero(t, r.code, "%v: %s", args, r.err)
	return r.out
}

// sorted are the lines of a text as a multiset.
func sorted(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	slices.Sort(lines)
	return lines
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const ordersSchema = `{"fields":[{"name":"id","type":"BIGINT"},{"name":"city","type":"STRING"},{"name":"n","type":"INT"}],"primaryKeys":["id"]}`

// orders makes a table of orders and returns its path.
func orders(t testing.TB, flags ...string) string {
	t.Helper()
	table := filepath.Join(t.TempDir(), "shop.db", "orders")
	must(t, append([]string{"create", table, "--schema", write(t, "orders.json", ordersSchema)}, flags...)...)
	return table
}

func TestMistakesInTheCommandLineExitWith2(t *testing.T) {
	table := orders(t)
	for _, c := range []struct {
		args string
		want string
	}{
		{"nothing", `there is no command "nothing"; see tideline --help`},
		{"read", "the TABLE is missing; see tideline read --help"},
		{"read a b", `"b" is one argument too many`},
		{"read T --format xml", `--format "xml": want table, jsonl, csv, arrow`},
		{"read T --nothing", "unknown flag: --nothing"},
		{"read T --snapshot x", "invalid argument"},
		{"read T --snapshot 1 --tag x", "exclude each other"},
		{"read T --limit -5", "not negative"},
		{"read T --where id=", "--where: "},
		{"read T --map-path x", "not of the form FROM=TO"},
		{"create T", "give either --schema or --like"},
		{"create T --like x --schema y", "give either --schema or --like"},
		{"create T --like x", "give --format"},
		{"create X --schema S -o bucket", "not of the form KEY=VALUE"},
		{"ingest T", "give --format"},
		{"ingest T - --format jsonl --on-error x", `--on-error "x": want stop, skip`},
		{"ingest T - --format jsonl --batch 0", "--batch 0"},
		{"ingest T - --format jsonl --commit-every 5", "--commit-every"},
		{"ingest T - --format jsonl --commit-every 0rows", "--commit-every"},
		{"ingest T - --format jsonl --op-field n", "--op-field n: the column is of type INT"},
		{"ingest T - --format jsonl --op-field x --offset-field x", "the same field"},
		{"files T --format csv", `--format "csv": want table, jsonl`},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			switch args[i] {
			case "T":
				args[i] = table
			case "X":
				args[i] = filepath.Join(t.TempDir(), "x")
			case "S":
				args[i] = write(t, "s.json", ordersSchema)
			}
		}
		r := tl(t, args...)
		require.Equal(t, exitUsage, r.code, "%s: %s", c.args, r.err)
		require.Contains(t, r.err, c.want, c.args)
		require.True(t, strings.HasPrefix(r.err, "tideline: "), r.err)
		require.Equal(t, 1, strings.Count(r.err, "\n"), "one sentence: %s", r.err)
		require.Empty(t, r.out)
	}
}

func TestFailuresExitWith1(t *testing.T) {
	table := orders(t)
	missing := filepath.Join(t.TempDir(), "missing")
	for _, args := range [][]string{
		{"read", missing},
		{"read", table, "--columns", "nothing"},
		{"read", table, "--where", "nothing = 1"},
		{"read", table, "--snapshot", "7"},
		{"read", table, "--tag", "x"},
		{"read", table, "--branch", "x"},
		{"create", table, "--schema", write(t, "s.json", ordersSchema)},
		{"create", missing, "--schema", filepath.Join(t.TempDir(), "none.json")},
		{"create", missing, "--schema", write(t, "s.json", `{"fields":[{"name":"a","type":"NOTHING"}]}`)},
		{"create", missing, "--schema", write(t, "s.json", `[]`)},
		{"create", missing, "--schema", write(t, "s.json", ordersSchema), "-o", "no.such.option=1"},
		{"create", missing, "--like", write(t, "x.parquet", "PAR1 nothing")},
		{"create", missing, "--like", write(t, "x.arrow", "nothing")},
		{"create", missing, "--like", write(t, "x.csv", "")},
		{"ingest", table, filepath.Join(t.TempDir(), "none.csv")},
		{"ingest", table, write(t, "x.parquet", "nothing")},
		{"ingest", table, write(t, "x.csv", "id,nothing\n")},
		{"files", table, "--snapshot", "7"},
		{"offsets", table, "--snapshot", "7"},
		{"schema", table, "--id", "7"},
	} {
		r := tl(t, args...)
		require.Equal(t, exitFailed, r.code, "%v: %s", args, r.err)
		lines := strings.Split(strings.TrimSuffix(r.err, "\n"), "\n")
		require.True(t, strings.HasPrefix(lines[len(lines)-1], "tideline: "), r.err)
		require.Empty(t, r.out)
	}
	require.NoDirExists(t, missing)
}

// What failures say: what, where, and whether anything happened.
func TestFailuresSayWhy(t *testing.T) {
	table := orders(t)
	file := write(t, "orders.csv", "id,city\n1,Oslo\n")
	must(t, "ingest", table, file)
	missing := filepath.Join(filepath.Dir(table), "missing")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"open table " + missing + ": there is no table, " + missing + "/schema holds no schema", []string{"read", missing}},
		{"there is no table, " + table + "/branch/branch-x/schema holds no schema", []string{"read", table, "--branch", "x"}},
		{"table " + table + " exists already, nothing was changed", []string{"create", table, "--like", file}},
		{"table " + file + "/t was not created: ", []string{"create", file + "/t", "--like", file}},
		{"table " + table + " has no snapshot 7, the newest is 1", []string{"read", table, "--snapshot", "7"}},
		{`the header does not name "line", which --offset-field asks for`, []string{"ingest", table, file, "--offset-field", "line"}},
		{"line 2: column id: \"x\" is no BIGINT NOT NULL\n", []string{"ingest", table, write(t, "x.csv", "id\nx\n")}},
		{"the CSV file has no header\n", []string{"create", missing, "--like", write(t, "x.csv", "")}},
		{"a whole number is expected\n", []string{"create", missing, "--like", file, "-o", "bucket=four"}},
	} {
		r := tl(t, c.args...)
		require.Equal(t, exitFailed, r.code, c.args)
		require.Contains(t, r.err, c.want)
		require.Empty(t, r.out)
	}
	require.Contains(t, tl(t, "raed", table).err, `there is no command "raed" (did you mean read?); see tideline --help`)
}

func TestHelpAndVersion(t *testing.T) {
	require.True(t, strings.HasPrefix(must(t, "--version"), "tideline "))
	require.Contains(t, must(t), "Available Commands")
	for _, command := range []string{"create", "ingest", "read", "schema", "snapshots", "files", "offsets"} {
		help := must(t, command, "--help")
		require.Contains(t, help, "Examples:\n  tideline "+command, "help with an example")
	}
}

func TestAnEmptyTable(t *testing.T) {
	table := orders(t)
	require.Equal(t, "id  city  n\n--  ----  -\n", must(t, "read", table))
	require.Equal(t, "0 rows, there is no snapshot yet\n", tl(t, "read", table).err)
	require.Contains(t, must(t, "offsets", table), "\nno snapshot yet\n")
	require.Empty(t, must(t, "read", table, "-f", "jsonl"))
	require.Equal(t, "id,city,n\n", must(t, "read", table, "-f", "csv"))
	require.Empty(t, must(t, "files", table, "-f", "jsonl"))
	require.Empty(t, must(t, "snapshots", table, "-f", "jsonl"))
	require.Equal(t, `{"snapshot":"snapshot-0","found":false,"position":null}`+"\n", must(t, "offsets", table, "-f", "jsonl"))
	r := tl(t, "ingest", table, write(t, "empty.jsonl", ""))
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "0 rows written")
	require.Contains(t, r.err, "0 commits")
}

func TestReadingParts(t *testing.T) {
	table := orders(t)
	must(t, "ingest", table, write(t, "a.jsonl", `{"id":1,"city":"Oslo","n":3}
{"id":2,"city":"Bergen","n":null}
{"id":3,"city":"a\tlong name","n":-10}
`))
	require.Equal(t, `id  city             n
--  ------------  ----
 1  Oslo             3
 2  Bergen        null
 3  a\tlong name   -10
`, must(t, "read", table))
	require.Equal(t, []string{`{"n":-10,"id":3}`, `{"n":3,"id":1}`}, sorted(must(t, "read", table, "-f", "jsonl", "-c", "n,id", "-w", "n IS NOT NULL")))
	require.Len(t, sorted(must(t, "read", table, "-f", "jsonl", "-n", "2")), 2)
	require.Empty(t, must(t, "read", table, "-f", "jsonl", "-w", "city = 'Rome'"))
	must(t, "ingest", table, write(t, "b.jsonl", `{"id":1,"city":"Oslo","n":4}`))
	require.Equal(t, `{"n":3}`+"\n", must(t, "read", table, "-f", "jsonl", "-c", "n", "-w", "id = 1", "--snapshot", "1"))
	require.Equal(t, `{"n":4}`+"\n", must(t, "read", table, "-f", "jsonl", "-c", "n", "-w", "id = 1"))
}

func TestMembersOfRowsKeepTheirNesting(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t")
	must(t, "create", table, "--schema", write(t, "s.json", `{"fields":[{"name":"a","type":"INT"},
		{"name":"b","type":{"type":"ROW","fields":[{"name":"c","type":"TIMESTAMP(0)"},{"name":"d","type":"CHAR(2)"}]}}]}`))
	must(t, "ingest", table, write(t, "x.jsonl", `{"a":1,"b":{"c":"2024-01-02T03:04:05","d":"xy"}}`))
	require.Equal(t, `{"b":{"c":"2024-01-02 03:04:05"}}`+"\n", must(t, "read", table, "-f", "jsonl", "-c", "b.c"))
}

func TestOperations(t *testing.T) {
	table := orders(t)
	must(t, "ingest", table, "--op-field", "op", write(t, "a.jsonl", `{"id":1,"city":"a"}
{"id":2,"city":"b","op":"I"}
{"id":3,"city":"c","op":"+I"}
{"id":4,"city":"d","op":"insert"}
{"id":5,"city":"e","op":null}
`))
	must(t, "ingest", table, "--op-field", "op", write(t, "b.csv", "op,id,city\nU,1,A\n-D,2,\nDELETE,3,\n-U,4,d\n+U,4,D\nd,5,\n"))
	require.Equal(t, []string{`{"id":1,"city":"A","n":null}`, `{"id":4,"city":"D","n":null}`}, sorted(must(t, "read", table, "-f", "jsonl")))
	r := tl(t, "ingest", table, "--op-field", "op", write(t, "c.jsonl", "\n{\"id\":9,\"op\":\"upser\"}"))
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.err, `tideline: line 2: "upser" is no operation`)
}

func TestAppendTablesTakeInsertsOnly(t *testing.T) {
	table := orders(t, "--primary-key", "")
	r := tl(t, "ingest", table, "--op-field", "op", write(t, "c.jsonl", "{\"id\":1}\n{\"id\":1,\"op\":\"D\"}"))
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.err, "tideline: line 2: ")
	require.Empty(t, must(t, "read", table, "-f", "jsonl"))
}

// An interrupt commits what was written and says so; the input may be stuck.
func TestInterrupt(t *testing.T) {
	table := orders(t)
	in, feed := io.Pipe()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	var errOut bytes.Buffer
	done := make(chan int)
	go func() {
		done <- execute(ctx, []string{"ingest", table, "-f", "jsonl", "--commit-every", "1rows"}, streams{in, io.Discard, &errOut})
	}()
	_, err := io.WriteString(feed, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":")
	require.NoError(t, err)
	for !strings.Contains(must(t, "offsets", table, "-f", "jsonl"), `"snapshot":"snapshot-3"`) {
		require.NoError(t, ctx.Err())
	}
	interrupt()
	require.Equal(t, exitFailed, <-done)
	require.NoError(t, feed.Close())
	require.Contains(t, errOut.String(), "3 rows written")
	require.Contains(t, errOut.String(), "tideline: interrupted; the input was taken up to line 3, a second run would write those rows again\n")
	require.Len(t, sorted(must(t, "read", table, "-f", "jsonl")), 3)
}

// Rows do not wait for a full batch or for the end of the input.
func TestCommitsByTimeWhileTheInputPauses(t *testing.T) {
	table := orders(t)
	in, feed := io.Pipe()
	var errOut bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run([]string{"ingest", table, "-f", "jsonl", "--commit-every", "20ms"}, in, io.Discard, &errOut)
	}()
	_, err := io.WriteString(feed, "{\"id\":1}\n{\"id\":2")
	require.NoError(t, err)
	for must(t, "read", table, "-f", "jsonl") == "" {
	}
	_, err = io.WriteString(feed, "}\n")
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	require.Zero(t, <-done, errOut.String())
	require.Contains(t, errOut.String(), "2 rows written")
	require.Contains(t, errOut.String(), "2 commits, last snapshot 2")
}
