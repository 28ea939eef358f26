package harness

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/paimon/schema"
)

// repository makes an empty git repository and a function that runs git in it.
func repository(t *testing.T) (dir string, git func(args ...string)) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	git("init", "-q", "-b", "main")
	return dir, git
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
}

// history fills a repository with every kind of change and returns it.
func history(t *testing.T) (dir string, git func(args ...string)) {
	dir, git = repository(t)
	write(t, dir, "a.txt", "a")
	write(t, dir, "dir/ü b.txt", "b")
	write(t, dir, "tab\tname", "x")
	git("add", "-A")
	git("commit", "-qm", "one")
	write(t, dir, "a.txt", "aa")
	require.NoError(t, os.Rename(filepath.Join(dir, "tab\tname"), filepath.Join(dir, "renamed")))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	git("add", "-A")
	git("commit", "-qm", "two")
	git("checkout", "-qb", "side")
	write(t, dir, "side.txt", "s")
	git("add", "-A")
	git("commit", "-qm", "side")
	git("checkout", "-q", "main")
	require.NoError(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o777))
	require.NoError(t, os.Remove(filepath.Join(dir, "renamed")))
	git("add", "-A")
	git("commit", "-qm", "three")
	git("merge", "-q", "--no-ff", "-m", "merge", "side")
	git("commit", "-q", "--allow-empty", "-m", "nothing")
	return dir, git
}

func TestHistoryOfARepositoryEndsInItsTree(t *testing.T) {
	dir, _ := history(t)
	for _, batch := range []int{1, 3, 1000} {
		g, err := OpenGit(dir, batch, 2)
		require.NoError(t, err)
		require.EqualValues(t, 10, g.Rows(), "3 + 4 + 2 + 1 from the merge")
		r, err := Run(t.Context(), Config{Source: g, Dir: t.TempDir(), Readers: 1, CommitRows: 3})
		require.NoError(t, err)
		require.EqualValues(t, 4, r.Final.Rows)
		require.Contains(t, r.EndCheck, "4 files")
	}
}

func TestShallowAndSubdirectoryRepositories(t *testing.T) {
	dir, git := history(t)
	git("reset", "-q", "--hard", "HEAD~1")
	clone := filepath.Join(t.TempDir(), "clone")
	out, err := exec.Command("git", "clone", "-q", "--depth", "1", "file://"+dir, clone).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, from := range []string{clone, filepath.Join(clone, "dir"), filepath.Join(clone, ".git")} {
		g, err := OpenGit(from, 100, 1)
		require.NoError(t, err, from)
		r, err := Run(t.Context(), Config{Source: g, Dir: t.TempDir(), Readers: 1})
		require.NoError(t, err, from)
		require.EqualValues(t, 4, r.Final.Rows)
	}
}

func TestEndStateOfAnotherTreeIsAMismatch(t *testing.T) {
	dir, _ := history(t)
	g, err := OpenGit(dir, 100, 1)
	require.NoError(t, err)
	g.changes[0].blob = strings.Repeat("1", 40)
	g.changes[1].mode = "100755" // dir/ü b.txt, never touched again
	_, err = Run(t.Context(), Config{Source: g, Dir: t.TempDir()})
	require.ErrorContains(t, err, `1 rows differ, the first is "dir/ü b.txt"`)
	require.ErrorAs(t, err, new(*Mismatch))
}

func TestRepositoriesWithoutHistoryAreRefused(t *testing.T) {
	dir, git := repository(t)
	_, err := OpenGit(dir, 1, 1)
	require.ErrorContains(t, err, "has no commits")
	git("commit", "-q", "--allow-empty", "-m", "nothing")
	_, err = OpenGit(dir, 1, 1)
	require.ErrorContains(t, err, "change no file")
	t.Setenv("GIT_CEILING_DIRECTORIES", "/")
	_, err = OpenGit(t.TempDir(), 1, 1)
	require.ErrorContains(t, err, "is no git repository")
}

func zipped(t *testing.T, name, text string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	write(t, filepath.Dir(name), filepath.Base(name), b.String())
}

const stream = `{"seq":1,"commitSeq":1,"op":"I","path":"a","blob":"1","mode":"m","n":1,"ok":true}
{"seq":2,"commitSeq":1,"op":"I","path":"b","blob":"2","mode":"m","n":null}

{"seq":3,"commitSeq":2,"op":"U","path":"a","blob":"3","mode":"m","n":1.5,"late":"x","ok":false}
{"seq":4,"commitSeq":3,"op":"D","path":"b","blob":"2","mode":"m"}
{"seq":5,"commitSeq":3,"op":"I","path":"c","blob":"4","mode":"m"}
`

func TestStreamOfChangesIsTypedAndVerified(t *testing.T) {
	dir := t.TempDir()
	zipped(t, filepath.Join(dir, "s.jsonl.gz"), stream)
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	checkpoints := func(second string) string {
		return fmt.Sprintf("{\"lastSeq\":2,\"livePaths\":2,\"sha256\":%q}\n{\"lastSeq\":5,\"livePaths\":2,\"sha256\":%q}\n", sum("a\t1\tm\nb\t2\tm\n"), sum(second))
	}
	write(t, dir, "expected/checkpoints.jsonl", checkpoints("a\t3\tm\nc\t4\tm\n"))
	zipped(t, filepath.Join(dir, "expected/final.jsonl.gz"), `{"path":"a","blob":"3","n":1.5}`+"\n"+`{"path":"c","blob":"4","n":null}`+"\n")
	run := func(batch int) (*Report, error) {
		c, err := OpenChanges(filepath.Join(dir, "s.jsonl.gz"), "path", batch, 2)
		require.NoError(t, err)
		types := map[string]schema.Kind{}
		for _, f := range c.fields {
			types[f.Name] = f.Type.Kind
		}
		require.Equal(t, map[string]schema.Kind{
			"seq": schema.BigInt, "commitSeq": schema.BigInt, "path": schema.VarChar, "blob": schema.VarChar, "mode": schema.VarChar,
			"n": schema.Double, "ok": schema.Boolean, "late": schema.VarChar,
		}, types)
		return Run(t.Context(), Config{Source: c, Dir: t.TempDir(), Readers: 1, CommitRows: 2})
	}
	for _, batch := range []int{1, 2, 100} {
		r, err := run(batch)
		require.NoError(t, err)
		require.EqualValues(t, 5, r.Rows)
		require.EqualValues(t, 2, r.Final.Rows)
		require.EqualValues(t, 2, r.Checkpoints)
		require.Contains(t, r.EndCheck, "2 rows")
	}
	write(t, dir, "expected/checkpoints.jsonl", checkpoints("wrong"))
	_, err := run(1)
	require.ErrorContains(t, err, "checkpoint at seq 5")
	write(t, dir, "expected/checkpoints.jsonl", "")
	zipped(t, filepath.Join(dir, "expected/final.jsonl.gz"), `{"path":"a","blob":"3","n":1.5}`+"\n")
	_, err = run(1)
	require.ErrorContains(t, err, `the first is "c"`)
}

func TestRowsOfACommitStayTogether(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "s.jsonl", stream)
	c, err := OpenChanges(filepath.Join(dir, "s.jsonl"), "path", 1, 1)
	require.NoError(t, err)
	var sizes []int
	require.NoError(t, replay(c, layoutOf(c.Definition()), 100, func(_ int64, _ *Batch, changes []Change) { sizes = append(sizes, len(changes)) }))
	require.Equal(t, []int{2, 1, 2}, sizes)
}

func TestStreamsThatCannotBeReadNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":  "holds no changes",
		"[": "line 1: want one JSON object",
		`{"op":"I","k":1}` + "\n" + `{"op":"X","k":1}`:               "line 2: op is X",
		`{"op":"I","k":1}` + "\n" + `{"op":"I"}`:                     "line 2: the key column k is missing",
		`{"op":"I","k":1,"v":"a"}` + "\n" + `{"op":"I","k":2,"v":1}`: "line 2: column v: values of several types",
		`{"op":"I","k":1,"v":[1]}`:                                   "line 1: column v: nested",
		`{"op":"I","k":1`:                                            "line 1: ",
	} {
		dir := t.TempDir()
		write(t, dir, "s.jsonl", text)
		_, err := OpenChanges(filepath.Join(dir, "s.jsonl"), "k", 1, 1)
		require.ErrorContains(t, err, want, text)
	}
	_, err := OpenChanges(filepath.Join(t.TempDir(), "none"), "k", 1, 1)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestGoldenStreamOfChanges(t *testing.T) {
	file := filepath.Join(golden.Dir(t), "changes", "paimon-history.jsonl.gz")
	c, err := OpenChanges(file, "path", 1000, 2)
	require.NoError(t, err)
	r, err := Run(t.Context(), Config{Source: c, Dir: t.TempDir(), Writers: 2, Readers: 1, CommitRows: 20_000})
	require.NoError(t, err)
	require.EqualValues(t, 66_146, r.Rows)
	require.EqualValues(t, 6905, r.Final.Rows)
	require.EqualValues(t, 15, r.Checkpoints)
	require.Contains(t, r.EndCheck, "6905 rows, columns [path blob mode size]")
}
