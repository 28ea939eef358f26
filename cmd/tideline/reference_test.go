package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/internal/golden"
	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/schema"
)

// canonical are lines in one form, maps as sets, as a multiset.
func canonical(t *testing.T, fields []schema.Field, text string) []string {
	b, err := jsonl.Decode(fields, strings.NewReader(text))
	require.NoError(t, err)
	defer b.Release()
	var out bytes.Buffer
	e := jsonl.NewEncoder(&out, fields)
	e.SortMaps = true
	require.NoError(t, e.Write(b))
	return sorted(out.String())
}

// lyingCounts are expectations of other engines that show deleted rows: the writer
// recorded _DELETE_ROW_COUNT 0 for files with -U and -D, and they read a lone file
// without looking at the kinds. Here the kinds count.
var lyingCounts = map[string]bool{"py21-dedup-pq-rowkind/snapshot-1": true}

var expectedName = regexp.MustCompile(`^(?:branch-(.+)\.)?(?:(latest)|snapshot-(\d+)|tag-(.+))\.jsonl$`)

// Each table that the engine does not refuse reads as expected, at every snapshot,
// tag and branch.
func TestReferenceTablesReadAsExpected(t *testing.T) {
	compared := 0
	for _, dir := range golden.Tables(t) {
		files, err := filepath.Glob(filepath.Join(dir, "expected", "*.jsonl"))
		require.NoError(t, err)
		for _, file := range files {
			name := expectedName.FindStringSubmatch(filepath.Base(file))
			if name == nil || strings.Contains(filepath.Base(file), ".merged") || strings.Contains(filepath.Base(file), ".changes") {
				continue
			}
			if lyingCounts[filepath.Base(dir)+"/"+strings.TrimSuffix(filepath.Base(file), ".jsonl")] {
				continue
			}
			if compareReference(t, dir, file, name[1], name[3], name[4]) {
				compared++
			}
		}
	}
	require.Greater(t, compared, 5, "expectations compared")
	t.Logf("%d expectations compared", compared)
}

func compareReference(t *testing.T, dir, file, branch, id, tag string) bool {
	table := filepath.Join(dir, "table")
	args := []string{"read", table, "-f", "jsonl", "--map-path", "FILE:/tmp/external=" + filepath.Join(dir, "external")}
	if branch != "" {
		args = append(args, "--branch", branch)
	}
	if id != "" {
		args = append(args, "--snapshot", id)
	}
	if tag != "" {
		args = append(args, "--tag", tag)
	}
	r := tl(t, args...)
	if r.code == exitFailed && strings.HasSuffix(r.err, ": unsupported\n") {
		return false
	}
	require.Zero(t, r.code, "%v: %s", args, r.err)
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	fields := referenceFields(t, table, branch, id, tag)
	require.Equal(t, canonical(t, fields, string(want)), canonical(t, fields, r.out), file)
	return true
}

func referenceFields(t *testing.T, path, branch, id, tag string) []schema.Field {
	ctx := context.Background()
	table, err := tideline.Open(ctx, path, tideline.Options{Branch: branch})
	require.NoError(t, err)
	defer table.Close(ctx)
	f := &readFlags{tag: tag}
	if id != "" {
		require.NoError(t, json.Unmarshal([]byte(id), &f.snapshot))
	}
	scan := table.Scan()
	s, err := f.at(ctx, table, &scan)
	require.NoError(t, err)
	return s.Fields
}

// Files and snapshots are listed as an independent decoder of the manifests saw
// them.
func TestReferenceTablesListAsExpected(t *testing.T) {
	listed := 0
	for _, dir := range golden.Tables(t) {
		table := filepath.Join(dir, "table")
		opened, err := tideline.Open(context.Background(), table, tideline.Options{})
		if errors.Is(err, tideline.ErrUnsupported) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, opened.Close(context.Background()))
		data, err := os.ReadFile(filepath.Join(dir, "expected", "snapshots.json"))
		require.NoError(t, err)
		var snapshots []map[string]any
		require.NoError(t, json.Unmarshal(data, &snapshots))
		r := tl(t, "snapshots", table, "-f", "jsonl")
		require.Zero(t, r.code, r.err)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		at := 0
		for _, want := range snapshots {
			name := want["name"].(string)
			if !regexp.MustCompile(`^snapshot-\d+$`).MatchString(name) {
				continue
			}
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(lines[at]), &got), dir)
			at++
			for key := range want {
				require.Contains(t, got, key)
				// null: its data files are of another format and cannot be counted.
				if key != "visibleRows" || got[key] != nil && !lyingCounts[filepath.Base(dir)+"/"+name] {
					require.Equal(t, want[key], got[key], "%s %s %s", dir, name, key)
				}
			}
			compareFiles(t, dir, name)
			listed++
		}
		require.Len(t, lines, at, dir)
	}
	require.Greater(t, listed, 5, "snapshots compared")
	t.Logf("%d snapshots compared", listed)
}

func compareFiles(t *testing.T, dir, snapshot string) {
	normal := func(text string) []string {
		var out []string
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			if !strings.Contains(line, `"`+snapshot+`"`) {
				continue
			}
			var f map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &f))
			delete(f, "bytes")
			if f["extraFiles"] == nil { // no list and an empty one mean the same
				f["extraFiles"] = []any{}
			}
			again, err := json.Marshal(f)
			require.NoError(t, err)
			out = append(out, string(again))
		}
		return sorted(strings.Join(out, "\n"))
	}
	want, err := os.ReadFile(filepath.Join(dir, "expected", "files.jsonl"))
	require.NoError(t, err)
	got := must(t, "files", filepath.Join(dir, "table"), "-f", "jsonl", "--snapshot", strings.TrimPrefix(snapshot, "snapshot-"))
	require.Equal(t, normal(string(want)), normal(got), "%s %s", dir, snapshot)
}
