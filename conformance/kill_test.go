package conformance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const killCount = 10

// A load that is killed at any moment, and started again from the beginning of its
// input each time, ends with exactly the rows of the input, for every reader.
func TestKilledIngestEndsWithExactlyTheInput(t *testing.T) {
	oracles := startOracles(t)
	program := filepath.Join(t.TempDir(), "tideline")
	build, err := exec.Command("go", "build", "-o", program, "../cmd/tideline").CombinedOutput()
	require.NoError(t, err, "%s", build)

	for _, c := range []struct {
		name, schema string
		rows         int
		mixed        bool
	}{
		{"keyed", `"primaryKeys":["id"],"options":{"bucket":"4"}`, 300_000, true},
		// Here a row that is taken twice is seen twice.
		{"append", `"options":{"bucket":"3","bucket-key":"id"}`, 100_000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			input, want := killInput(c.rows, c.mixed)
			testKilledIngest(t, oracles, program, "{"+killFields+","+c.schema+"}", input, want)
		})
	}
}

func testKilledIngest(t *testing.T, oracles []*Oracle, program, definition string, input []byte, want []string) {
	warehouse := t.TempDir()
	target := TablePath(warehouse, "default", "killed")
	file := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(file, []byte(definition), 0o600))
	execute(t, program, nil, "create", target, "--schema", file)
	ingest := []string{"ingest", target, "-", "--format", "jsonl", "--op-field", "op", "--offset-field", "n",
		"--batch", "1000", "--commit-every", "4000rows"}

	var committed []int
	for i := range killCount {
		// A random place, later from kill to kill, and a random time after it was
		// read: in the middle of parsing, of a write, or of a commit.
		place := (len(input)*i + rand.IntN(len(input))) / killCount
		killAt(t, program, ingest, input[:place], time.Duration(rand.Int64N(int64(50*time.Millisecond))))
		names, err := filepath.Glob(filepath.Join(target, "snapshot", "snapshot-*"))
		require.NoError(t, err)
		committed = append(committed, len(names))
	}
	t.Logf("snapshots after each kill: %v", committed)
	require.Greater(t, committed[killCount-1], committed[0], "the kills came between commits")

	execute(t, program, input, ingest...)
	snapshots := execute(t, program, nil, "snapshots", target)
	execute(t, program, input, ingest...)
	require.Equal(t, snapshots, execute(t, program, nil, "snapshots", target), "one more run adds nothing")

	s, err := ReadSchema(target)
	require.NoError(t, err)
	got := execute(t, program, nil, "read", target, "--format", "jsonl")
	requireSameRows(t, s, "the input", want, "tideline", strings.Split(strings.TrimSpace(got), "\n"))
	for _, o := range oracles {
		got, err := o.Dump(warehouse, "default.killed", 0)
		require.NoError(t, err)
		requireSameRows(t, s, "the input", want, o.Name(), got)
	}
}

const killFields = `"fields":[
	{"name":"id","type":"BIGINT NOT NULL"},
	{"name":"city","type":"STRING"},
	{"name":"amount","type":"DECIMAL(12, 2)"},
	{"name":"at","type":"TIMESTAMP(3)"}]`

// killInput makes inserts and, when mixed, updates (whole and in two halves) and
// deletes, numbered with gaps, and the rows that they leave.
func killInput(rows int, mixed bool) (input []byte, want []string) {
	rng := rand.New(rand.NewPCG(3, 3))
	var b bytes.Buffer
	live := map[int]string{}
	var keys []int // of live
	n := 0
	line := func(op, row string) {
		n += 1 + rng.IntN(3)
		fmt.Fprintf(&b, `{"n":%d,"op":"%s",%s}`+"\n", n, op, row)
	}
	row := func(id, i int) string {
		return fmt.Sprintf(`"id":%d,"city":"city %d","amount":"%d.%02d","at":"2024-01-02 03:%02d:%02d.%03d"`,
			id, rng.IntN(1000), i, i%100, i/60%60, i%60, i%1000)
	}
	for i := 0; i < rows; i++ {
		at := -1
		if mixed && len(keys) > 0 {
			at = rng.IntN(len(keys))
		}
		switch action := rng.IntN(10); {
		case at < 0 || action < 5:
			id := i
			live[id] = row(id, i)
			keys = append(keys, id)
			line([]string{"I", "+I"}[i%2], live[id])
		case action < 7:
			id := keys[at]
			live[id] = row(id, i)
			line([]string{"U", "+U"}[i%2], live[id])
		case action < 8:
			id := keys[at]
			line("-U", live[id])
			live[id] = row(id, i)
			line("+U", live[id])
			i++
		default:
			id := keys[at]
			line([]string{"D", "-D"}[i%2], live[id])
			delete(live, id)
			keys = slices.Delete(keys, at, at+1)
		}
	}
	for _, r := range live {
		want = append(want, "{"+r+"}")
	}
	return b.Bytes(), want
}

// killAt feeds a part of the input to a program that waits for more, and kills it
// some time after that part was read.
func killAt(t *testing.T, program string, args []string, part []byte, after time.Duration) {
	t.Helper()
	c := exec.Command(program, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = in.Write(part)
	require.NoError(t, err, "the program ended before it was killed: %s", &out)
	time.AfterFunc(after, func() { _ = c.Process.Kill() }) // Wait tells how it ended
	require.ErrorContains(t, c.Wait(), "killed", "%s", &out)
}

func execute(t *testing.T, program string, input []byte, args ...string) string {
	t.Helper()
	c := exec.Command(program, args...)
	var out, trouble bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), &out, &trouble
	require.NoError(t, c.Run(), "%v: %s", args, &trouble)
	return out.String()
}
