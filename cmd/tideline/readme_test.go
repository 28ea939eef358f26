package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeShell runs the README's shell block, with the temporary directory of
// the test for /tmp.
func TestReadmeShell(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, block, ok := strings.Cut(string(readme), "## From the shell\n\n```\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")
	dir := t.TempDir()
	sh := exec.Command("sh", "-e", "-c", strings.ReplaceAll(block, "/tmp/", dir+"/"))
	sh.Dir = "../.."
	bin := filepath.Join(dir, "bin")
	sh.Env = append(os.Environ(), "GOBIN="+bin, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stderr strings.Builder
	sh.Stderr = &stderr
	out, err := sh.Output()
	require.NoError(t, err, stderr.String())
	require.Contains(t, string(out), `{"id":4,"city":"Oslo"}`+"\n")
	require.Contains(t, string(out), "tideline-cli")
	require.Contains(t, stderr.String(), "2 rows written")
}
