package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

const table = "default.t"

// seed is fixed so that a run can be compared with the one before; another one is
// set by TIDELINE_CONFORMANCE_SEED.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(variable + "_SEED")
	if text == "" {
		return 20260
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return n
}

// engines are all implementations under comparison.
func engines(t *testing.T) []Engine {
	t.Helper()
	var all []Engine
	for _, o := range startOracles(t) {
		all = append(all, o)
	}
	return append(all, ourEngines(t)...)
}

// ourEngines are the engine that reopens the table for every commit, and the one
// that keeps its session.
func ourEngines(t *testing.T) []Engine {
	t.Helper()
	kept := &ours{keep: true, open: map[string]*session{}}
	t.Cleanup(func() { require.NoError(t, kept.closeAll()) })
	return []Engine{&ours{}, kept}
}

// Each engine writes each table; every engine must read what the model says, after
// every commit and at the end, from the files of every other.
func TestEveryEngineReadsWhatEveryOtherWrote(t *testing.T) {
	all := engines(t)
	for _, c := range Cases(seed(t)) {
		for _, writer := range all {
			t.Run(c.Name+"/"+writer.Name(), func(t *testing.T) {
				if why := cannotWrite(writer.Name(), c); why != "" {
					require.Error(t, writeCase(t.TempDir(), c, writer), "listed as impossible (%s) but works now: remove it", why)
					return
				}
				w := t.TempDir()
				require.NoError(t, writeCase(w, c, writer))
				for _, reader := range all {
					requireCase(t, w, c, reader, writer.Name())
				}
			})
		}
	}
}

// Engines take turns: each commit of a table comes from another one, so each
// continues the sequence numbers, buckets and manifests that the others left. Of ours
// one takes part at a time: two writers of one bucket fence each other.
func TestEnginesTakeTurns(t *testing.T) {
	var oracles []Engine
	for _, o := range startOracles(t) {
		oracles = append(oracles, o)
	}
	for _, c := range Cases(seed(t) + 100) {
		for _, our := range ourEngines(t) {
			all := append([]Engine{our}, oracles...)
			for first := range all {
				t.Run(fmt.Sprintf("%s/%s/%s-first", c.Name, our.Name(), all[first].Name()), func(t *testing.T) {
					var turn []Engine
					for i := range c.Commits {
						w := all[(first+i)%len(all)]
						if cannotWrite(w.Name(), c) != "" {
							w = oracles[0]
						}
						turn = append(turn, w)
					}
					w := t.TempDir()
					require.NoError(t, writeCase(w, c, turn...))
					for _, reader := range all {
						requireCase(t, w, c, reader, "turns")
					}
				})
			}
		}
	}
}

// Java skips files by their statistics and buckets by the hash of the key. What it
// finds for a value tells whether the writer's statistics and buckets are right.
func TestJavaFindsRowsByValue(t *testing.T) {
	java := startOracles(t)[0]
	for _, c := range Cases(seed(t) + 200) {
		for _, writer := range []Engine{java, &ours{}} {
			if writer == Engine(java) && c.Name != "pk-all-types" {
				continue // once, to show that the test asks what Java can answer
			}
			t.Run(c.Name+"/"+writer.Name(), func(t *testing.T) {
				w := t.TempDir()
				require.NoError(t, writeCase(w, c, writer))
				visible := c.Visible(len(c.Commits))
				types, err := c.Schema.types()
				require.NoError(t, err)
				for i, f := range c.Schema.Fields {
					if types[i].elem != nil || types[i].children != nil || types[i].root == "FLOAT" || types[i].root == "DOUBLE" {
						continue // Java compares no nested values, and its zeros and NaN otherwise
					}
					like := visible[(i*7)%len(visible)]
					want, value, err := Select(c.Schema, visible, f.Name, like)
					require.NoError(t, err)
					got, err := java.Find(w, table, f.Name, value)
					require.NoError(t, err, "%s = %s", f.Name, value)
					requireSameRows(t, c.Schema, "the model", want, fmt.Sprintf("%s = %s", f.Name, value), got)
				}
			})
		}
	}
}

// Compaction reads and rewrites everything that we left: deletes are dropped for
// good, and the rows stay.
func TestJavaCompactsWhatWeWrote(t *testing.T) {
	java := startOracles(t)[0]
	for _, c := range Cases(seed(t) + 300) {
		for _, writer := range ourEngines(t) {
			t.Run(c.Name+"/"+writer.Name(), func(t *testing.T) {
				w := t.TempDir()
				require.NoError(t, writeCase(w, c, writer))
				requireCounts(t, java, w)
				_, err := java.Compact(w, table)
				require.NoError(t, err)
				requireCounts(t, java, w)
				for _, reader := range engines(t) {
					requireCase(t, w, c, reader, writer.Name())
				}
			})
		}
	}
}

// requireCounts compares the row count of the newest snapshot with the sum over the
// live files, both as Java lists them.
func requireCounts(t *testing.T, java *Oracle, w string) {
	t.Helper()
	sum := func(system, column string, last bool) (total int64) {
		rows, err := java.Dump(w, table+system, 0)
		require.NoError(t, err)
		for _, r := range rows {
			values, err := decodeRow(r)
			require.NoError(t, err)
			n, err := values[column].(json.Number).Int64()
			require.NoError(t, err)
			if last {
				total = 0
			}
			total += n
		}
		return total
	}
	require.Equal(t, sum("$files", "record_count", false), sum("$snapshots", "total_record_count", true))
}

// writeCase creates the table with the first writer and lets the writers commit in turn.
func writeCase(w string, c Case, writers ...Engine) error {
	if err := writers[0].Create(w, table, c.Schema); err != nil {
		return fmt.Errorf("%s creates %s: %w", writers[0].Name(), c.Name, err)
	}
	for i, rows := range c.Commits {
		e := writers[i%len(writers)]
		if _, err := e.Write(w, table, rows); err != nil {
			return fmt.Errorf("%s writes commit %d of %s: %w", e.Name(), i+1, c.Name, err)
		}
	}
	return nil
}

// requireCase reads a table that was written by writeCase. Snapshots between are
// compared where each commit made exactly one.
func requireCase(t *testing.T, w string, c Case, reader Engine, writer string) {
	t.Helper()
	if why := cannotRead(reader.Name(), writer, c); why != "" {
		return
	}
	what := fmt.Sprintf("%s reading %s of seed %d by %s", reader.Name(), c.Name, c.Seed, writer)
	got, err := reader.Dump(w, table, 0)
	require.NoError(t, err, what)
	requireSameRows(t, c.Schema, "the model", c.Visible(len(c.Commits)), what, got)
	if snapshotCount(t, w) != len(c.Commits) {
		return
	}
	for n := 1; n < len(c.Commits); n++ {
		got, err := reader.Dump(w, table, int64(n))
		require.NoError(t, err, "%s, snapshot %d", what, n)
		requireSameRows(t, c.Schema, "the model", c.Visible(n), fmt.Sprintf("%s, snapshot %d", what, n), got)
	}
}

func snapshotCount(t *testing.T, w string) int {
	t.Helper()
	entries, err := os.ReadDir(TablePath(w, "default", "t") + "/snapshot")
	require.NoError(t, err)
	n := 0
	for _, e := range entries {
		var id int
		if _, err := fmt.Sscanf(e.Name(), "snapshot-%d", &id); err == nil {
			n++
		}
	}
	return n
}
