package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sim runs a command line.
func sim(t *testing.T, adjust func(*harness.Config), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var out, err bytes.Buffer
	if adjust == nil {
		adjust = func(*harness.Config) {}
	}
	code = execute(t.Context(), args, &out, &err, adjust)
	return code, out.String(), err.String()
}

func TestRunReportsAndCleansUp(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.json")
	code, out, stderr := sim(t, nil, "run", "--rows", "5000", "--batch", "100", "--readers", "1", "--commit-every", "2000", "--buckets", "2", "--json", report)
	require.Equal(t, exitRight, code, stderr)
	require.Contains(t, out, "written     5,000 rows")
	require.Contains(t, out, "(1 writer, seed 7)")
	require.Contains(t, out, "verified    every read, and the table as reopened from disk: ")
	require.Contains(t, out, "verified")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
	data, err := os.ReadFile(report)
	require.NoError(t, err)
	var r harness.Report
	require.NoError(t, json.Unmarshal(data, &r))
	require.True(t, r.Verified)
	require.EqualValues(t, 5000, r.Rows)
}

func TestRunKeepsTheTableWhenAsked(t *testing.T) {
	dir := t.TempDir()
	args := []string{"run", "--rows", "500", "--table", "append", "--commit-every", "10ms", "--dir", dir}
	code, out, stderr := sim(t, nil, args...)
	require.Equal(t, exitRight, code, stderr)
	require.Contains(t, out, filepath.Join(dir, "sim.db", "load"))
	require.FileExists(t, filepath.Join(dir, "sim.db", "load", "snapshot", "snapshot-1"))
	code, _, stderr = sim(t, nil, args...)
	require.Equal(t, exitWrong, code, "there is a table already")
	require.Contains(t, stderr, "exist")
	code, _, _ = sim(t, nil, "run", "--rows", "500", "--keep")
	require.Equal(t, exitRight, code)
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*", "sim.db", "load", "snapshot", "snapshot-1"))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestAWrongReadExitsWithOne(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.json")
	drop := func(c *harness.Config) {
		c.Tamper = func(b arrow.RecordBatch) arrow.RecordBatch {
			if b.NumCols() == 0 { // a count has no rows to explain
				return b
			}
			defer b.Release()
			return b.NewSlice(0, max(0, b.NumRows()-1))
		}
	}
	code, out, stderr := sim(t, drop, "run", "--rows", "5000", "--readers", "1", "--commit-every", "2000", "--seed", "13", "--json", report)
	require.Equal(t, exitWrong, code)
	require.Contains(t, stderr, "(seed 13)")
	require.Contains(t, stderr, "at frontier")
	require.Contains(t, stderr, "missing row: k=")
	require.Contains(t, out, "failed")
	data, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Contains(t, string(data), `"problem": "missing row"`)
}

func TestAnInterruptEndsCleanly(t *testing.T) {
	interrupt, cancel := context.WithCancel(t.Context())
	cancel()
	var out, stderr bytes.Buffer
	code := execute(interrupt, []string{"run", "--rows", "100000", "--dir", t.TempDir()}, &out, &stderr, func(*harness.Config) {})
	require.Equal(t, exitRight, code, stderr.String())
	require.Contains(t, out.String(), "interrupted")
}

func TestMistakesInTheCommandLineExitWithTwo(t *testing.T) {
	for _, args := range [][]string{
		{}, {"walk"}, {"run", "now"}, {"run", "--rows", "many"}, {"run", "--rows", "0"}, {"run", "--batch", "0"}, {"run", "--buckets", "-1"},
		{"run", "--nope"}, {"run", "--keys", "sorted"}, {"run", "--table", "t9"}, {"run", "--updates", "2"}, {"run", "--writers", "0"},
		{"run", "--commit-every", "often"}, {"run", "--commit-every", "0"}, {"run", "--commit-every", "-1s"},
		{"run", "--changes", "x"}, {"run", "--key", "k"}, {"run", "--git", ".", "--changes", "x", "--key", "k"}, {"run", "--git", ".", "--rows", "5"},
	} {
		code, _, stderr := sim(t, nil, args...)
		require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, "sim: ")
	}
}

func TestMissingInputExitsWithOne(t *testing.T) {
	code, _, stderr := sim(t, nil, "run", "--git", t.TempDir())
	require.Equal(t, exitWrong, code)
	require.Contains(t, stderr, "git repository")
	code, _, stderr = sim(t, nil, "run", "--changes", filepath.Join(t.TempDir(), "none"), "--key", "k")
	require.Equal(t, exitWrong, code)
	require.Contains(t, stderr, "no such file")
}
