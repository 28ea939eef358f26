package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

// The table of the scripts: two partitions, two buckets, a primary key.
func scriptSchema() Schema {
	s := Schema{
		Fields:        []Field{fieldOf("p", "INT NOT NULL"), fieldOf("k", "BIGINT NOT NULL"), fieldOf("v", "STRING")},
		PartitionKeys: []string{"p"}, PrimaryKeys: []string{"p", "k"}, Options: map[string]string{"bucket": "2"},
	}
	for i := range s.Fields {
		s.Fields[i].ID = i
	}
	return s
}

// appendSchema is the same without a key.
func appendSchema() Schema {
	s := scriptSchema()
	s.PrimaryKeys, s.Options = []string{}, map[string]string{"bucket": "2", "bucket-key": "k"}
	return s
}

// scriptRows are n rows of a partition with keys from first on.
func scriptRows(p, first, n int, v string) (rows []Row) {
	for k := first; k < first+n; k++ {
		rows = append(rows, Row{Kind: "+I", JSON: fmt.Sprintf(`{"p":%d,"k":%d,"v":%q}`, p, k, v)})
	}
	return rows
}

func lines(groups ...[]Row) (all []string) {
	for _, g := range groups {
		for _, r := range g {
			all = append(all, r.JSON)
		}
	}
	return all
}

// script is a table with one commit of ours and an open session of ours.
type script struct {
	*session
	t     *testing.T
	w     string
	first []Row
}

func newScript(t *testing.T, s Schema) *script {
	t.Helper()
	w := t.TempDir()
	require.NoError(t, (&ours{}).Create(w, table, s))
	session, err := openSession(tablePath(w, table))
	require.NoError(t, err)
	t.Cleanup(session.drop)
	sc := &script{session: session, t: t, w: w, first: scriptRows(1, 0, 10, "first")}
	require.NoError(t, session.write(sc.first))
	_, err = session.writer.Commit(context.Background())
	require.NoError(t, err)
	return sc
}

// everybodyReads compares the committed table as all engines see it, and the union
// as our session sees it.
func (sc *script) everybodyReads(want ...[]Row) {
	sc.t.Helper()
	union, err := sc.read()
	require.NoError(sc.t, err)
	requireSameRows(sc.t, sc.schema, "expected", lines(want...), "union", union)
	for _, e := range engines(sc.t) {
		got, err := e.Dump(sc.w, table, 0)
		require.NoError(sc.t, err, e.Name())
		requireSameRows(sc.t, sc.schema, "expected", lines(want...), e.Name(), got)
	}
}

// both runs a script with a primary key and without.
func both(t *testing.T, run func(t *testing.T, s Schema)) {
	t.Run("primary-key", func(t *testing.T) { run(t, scriptSchema()) })
	t.Run("append", func(t *testing.T) { run(t, appendSchema()) })
}

func TestTheyCommitBetweenOurPrepareAndOurCommit(t *testing.T) {
	for _, they := range startOracles(t) {
		t.Run(they.Name(), func(t *testing.T) {
			both(t, func(t *testing.T, s Schema) {
				ctx := context.Background()
				sc := newScript(t, s)
				mine, theirs := scriptRows(1, 100, 20, "ours"), scriptRows(1, 200, 20, "theirs")
				require.NoError(t, sc.write(mine))
				p, err := sc.writer.PrepareCommit(ctx)
				require.NoError(t, err)
				id, err := they.Write(sc.w, table, theirs)
				require.NoError(t, err)
				require.EqualValues(t, 2, id)
				c, err := sc.table.Commit(ctx, p)
				require.NoError(t, err)
				require.EqualValues(t, 3, c.ID)
				require.NoError(t, sc.table.Refresh(ctx))
				sc.everybodyReads(sc.first, mine, theirs)
			})
		})
	}
}

func TestWeCommitBetweenTheirPrepareAndTheirCommit(t *testing.T) {
	for _, they := range startOracles(t) {
		t.Run(they.Name(), func(t *testing.T) {
			both(t, func(t *testing.T, s Schema) {
				ctx := context.Background()
				sc := newScript(t, s)
				mine, theirs := scriptRows(1, 100, 20, "ours"), scriptRows(2, 200, 20, "theirs")
				require.NoError(t, they.Prepare(sc.w, table, t.Name(), theirs))
				require.NoError(t, sc.write(mine))
				_, err := sc.writer.Commit(ctx)
				require.NoError(t, err)
				_, err = they.Publish(t.Name())
				require.NoError(t, err)
				require.NoError(t, sc.table.Refresh(ctx))
				sc.everybodyReads(sc.first, mine, theirs)
			})
		})
	}
}

// A union read sees a foreign commit and our rows that no commit has yet.
func TestUnionOverAForeignCommit(t *testing.T) {
	for _, they := range startOracles(t) {
		t.Run(they.Name(), func(t *testing.T) {
			both(t, func(t *testing.T, s Schema) {
				sc := newScript(t, s)
				mine, theirs := scriptRows(2, 100, 20, "ours"), scriptRows(1, 200, 20, "theirs")
				require.NoError(t, sc.write(mine))
				_, err := they.Write(sc.w, table, theirs)
				require.NoError(t, err)
				got, err := sc.read()
				require.NoError(t, err)
				requireSameRows(t, s, "expected", lines(sc.first, mine, theirs), "union", got)
			})
		})
	}
}

// A foreign update of a key that our memory holds too: ours came later, so it wins
// in the union and after the commit, for every reader.
func TestOurLaterUpdateWinsOverAForeignOne(t *testing.T) {
	for _, they := range startOracles(t) {
		t.Run(they.Name(), func(t *testing.T) {
			ctx := context.Background()
			sc := newScript(t, scriptSchema())
			_, err := they.Write(sc.w, table, scriptRows(1, 0, 10, "theirs"))
			require.NoError(t, err)
			require.NoError(t, sc.table.Refresh(ctx))
			mine := scriptRows(1, 0, 5, "ours")
			require.NoError(t, sc.write(mine))
			want := [][]Row{mine, scriptRows(1, 5, 5, "theirs")}
			got, err := sc.read()
			require.NoError(t, err)
			requireSameRows(t, sc.schema, "expected", lines(want...), "union", got)
			_, err = sc.writer.Commit(ctx)
			require.NoError(t, err)
			sc.everybodyReads(want...)
		})
	}
}

// Compaction replaces our files by others; progress and memory stay what they are.
func TestTheyCompactBetweenOurPrepareAndOurCommit(t *testing.T) {
	java := startOracles(t)[0]
	both(t, func(t *testing.T, s Schema) {
		ctx := context.Background()
		sc := newScript(t, s)
		second := scriptRows(1, 5, 10, "second")
		require.NoError(t, sc.write(second))
		_, err := sc.writer.Commit(ctx)
		require.NoError(t, err)
		mine := scriptRows(1, 12, 10, "ours")
		require.NoError(t, sc.write(mine))
		p, err := sc.writer.PrepareCommit(ctx)
		require.NoError(t, err)
		_, err = java.Compact(sc.w, table)
		require.NoError(t, err)
		_, err = sc.table.Commit(ctx, p)
		require.NoError(t, err)
		require.NoError(t, sc.table.Refresh(ctx))
		want := [][]Row{sc.first, second, mine}
		if len(s.PrimaryKeys) > 0 {
			want = [][]Row{scriptRows(1, 0, 5, "first"), scriptRows(1, 5, 7, "second"), mine}
		}
		sc.everybodyReads(want...)
	})
}

// An overwrite of what our session stands on cannot be merged with it: the session
// is over, by name, and what they published stays.
func TestTheirOverwriteOfAnActiveBucketEndsTheSession(t *testing.T) {
	for _, they := range startOracles(t) {
		t.Run(they.Name(), func(t *testing.T) {
			ctx := context.Background()
			sc := newScript(t, scriptSchema())
			require.NoError(t, sc.write(scriptRows(1, 100, 5, "ours")))
			p, err := sc.writer.PrepareCommit(ctx)
			require.NoError(t, err)
			theirs := scriptRows(1, 300, 5, "theirs")
			_, err = they.Overwrite(sc.w, table, theirs, map[string]string{"p": "1"})
			require.NoError(t, err)
			_, err = sc.table.Commit(ctx, p)
			requireEnded(t, err)
			require.Error(t, sc.write(scriptRows(1, 400, 1, "late")))
			got, err := (&ours{}).Dump(sc.w, table, 0)
			require.NoError(t, err)
			requireSameRows(t, sc.schema, "expected", lines(theirs), "reopened", got)
		})
	}
}

// An overwrite of another partition is none of our business.
func TestTheirOverwriteOfAnotherPartition(t *testing.T) {
	they := startOracles(t)[0]
	ctx := context.Background()
	sc := newScript(t, scriptSchema())
	_, err := they.Write(sc.w, table, scriptRows(2, 0, 5, "old"))
	require.NoError(t, err)
	require.NoError(t, sc.table.Refresh(ctx))
	mine, theirs := scriptRows(1, 100, 5, "ours"), scriptRows(2, 300, 5, "theirs")
	require.NoError(t, sc.write(mine))
	p, err := sc.writer.PrepareCommit(ctx)
	require.NoError(t, err)
	_, err = they.Overwrite(sc.w, table, theirs, map[string]string{"p": "2"})
	require.NoError(t, err)
	_, err = sc.table.Commit(ctx, p)
	require.NoError(t, err)
	require.NoError(t, sc.table.Refresh(ctx))
	sc.everybodyReads(sc.first, mine, theirs)
}

func TestTheirRollbackBelowOurProgressEndsTheSession(t *testing.T) {
	for _, they := range startOracles(t) {
		t.Run(they.Name(), func(t *testing.T) {
			ctx := context.Background()
			sc := newScript(t, scriptSchema())
			require.NoError(t, sc.write(scriptRows(1, 100, 5, "lost")))
			_, err := sc.writer.Commit(ctx)
			require.NoError(t, err)
			require.NoError(t, they.Rollback(sc.w, table, 1))
			require.NoError(t, sc.write(scriptRows(1, 200, 5, "ours")))
			_, err = sc.writer.Commit(ctx)
			requireEnded(t, err)
		})
	}
}

// Java and pypaimon publish a snapshot by a rename that overwrites. Where two
// committers chose the same id at the same moment, ours may be gone although its
// commit succeeded. It has to be noticed before the memory behind it is given up.
func TestAnOverwritingRenameOfOurSnapshotIsNoticed(t *testing.T) {
	for _, they := range startOracles(t) {
		t.Run(they.Name(), func(t *testing.T) {
			ctx := context.Background()
			sc := newScript(t, scriptSchema())
			// They see the table before our second commit, and publish the same id.
			elsewhere := t.TempDir()
			require.NoError(t, os.CopyFS(filepath.Join(elsewhere, "default.db"), os.DirFS(filepath.Join(sc.w, "default.db"))))
			theirs := scriptRows(1, 200, 5, "theirs")
			id, err := they.Write(elsewhere, table, theirs)
			require.NoError(t, err)

			mine := scriptRows(1, 100, 5, "ours")
			require.NoError(t, sc.write(mine))
			p, err := sc.writer.PrepareCommit(ctx)
			require.NoError(t, err)
			c, err := sc.table.Commit(ctx, p)
			require.NoError(t, err)
			require.Equal(t, id, c.ID)
			overwriteTree(t, tablePath(elsewhere, table), tablePath(sc.w, table))

			err = sc.table.Refresh(ctx)
			requireEnded(t, err)
			require.ErrorContains(t, err, fmt.Sprintf("snapshot %d of table", id))
			require.ErrorContains(t, err, "was replaced under its id")
			got, err := (&ours{}).Dump(sc.w, table, 0)
			require.NoError(t, err)
			requireSameRows(t, sc.schema, "expected", lines(sc.first, theirs), "reopened", got)
		})
	}
}

// overwriteTree moves what the other table has and ours has not, and its newest
// snapshot over ours, as the rename of another committer would.
func overwriteTree(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		if _, err := os.Stat(dst); err == nil && filepath.Dir(rel) != "snapshot" {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
			return err
		}
		return os.Rename(path, dst)
	}))
}

// Their commits carry no progress. It is inherited, so a session that opens later
// knows what to replay.
func TestProgressOutlivesForeignCommits(t *testing.T) {
	for _, they := range startOracles(t) {
		t.Run(they.Name(), func(t *testing.T) {
			both(t, func(t *testing.T, s Schema) {
				ctx := context.Background()
				sc := newScript(t, s)
				before, err := sc.table.Progress(ctx, 0)
				require.NoError(t, err)
				require.True(t, before.Found)
				require.NoError(t, sc.close(ctx))
				theirs := scriptRows(1, 200, 20, "theirs")
				_, err = they.Write(sc.w, table, theirs)
				require.NoError(t, err)

				again, err := openSession(tablePath(sc.w, table))
				require.NoError(t, err)
				t.Cleanup(again.drop)
				after, err := again.table.Progress(ctx, 0)
				require.NoError(t, err)
				require.True(t, after.Found)
				require.Equal(t, before.Offsets, after.Offsets)
				mine := scriptRows(1, 300, 5, "ours")
				require.NoError(t, again.write(mine))
				_, err = again.writer.Commit(ctx)
				require.NoError(t, err)
				sc.session = again
				sc.everybodyReads(sc.first, theirs, mine)
			})
		})
	}
}

// Java expires old snapshots, among them all that carry our progress, unless we hold
// one by a consumer.
func TestTheirExpiryLeavesOurProgress(t *testing.T) {
	java := startOracles(t)[0]
	ctx := context.Background()
	sc := newScript(t, scriptSchema())
	before, err := sc.table.Progress(ctx, 0)
	require.NoError(t, err)
	want := [][]Row{sc.first}
	for i := range 4 {
		rows := scriptRows(2, i*10, 5, "theirs")
		_, err := java.Write(sc.w, table, rows)
		require.NoError(t, err)
		want = append(want, rows)
	}
	_, err = java.Expire(sc.w, table, 1)
	require.NoError(t, err)
	require.NoError(t, sc.close(ctx))
	again, err := openSession(tablePath(sc.w, table))
	require.NoError(t, err)
	t.Cleanup(again.drop)
	after, err := again.table.Progress(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, before.Offsets, after.Offsets)
	sc.session = again
	sc.everybodyReads(want...)
}

// A column added under an open session: the session finishes with its own schema, and
// readers of the new one see null.
func TestTheyAddAColumnUnderASession(t *testing.T) {
	java := startOracles(t)[0]
	both(t, func(t *testing.T, s Schema) {
		ctx := context.Background()
		sc := newScript(t, s)
		require.NoError(t, java.Alter(sc.w, table, `[{"add":"extra","type":"INT"},{"rename":"v","to":"value"}]`))
		mine := scriptRows(1, 100, 5, "ours")
		require.NoError(t, sc.write(mine))
		_, err := sc.writer.Commit(ctx)
		require.NoError(t, err)
		got, err := sc.read()
		require.NoError(t, err)
		requireSameRows(t, s, "expected", lines(sc.first, mine), "the session", got)

		newest, err := ReadSchema(tablePath(sc.w, table))
		require.NoError(t, err)
		require.Len(t, newest.Fields, 4)
		var want []string
		for _, r := range append(append([]Row(nil), sc.first...), mine...) {
			values, err := decodeRow(r.JSON)
			require.NoError(t, err)
			values["value"], values["extra"] = values["v"], nil
			delete(values, "v")
			want = append(want, text(values))
		}
		for _, e := range engines(t) {
			if e.Name() == "tideline-session" {
				continue // has no session on this table
			}
			got, err := e.Dump(sc.w, table, 0)
			require.NoError(t, err, e.Name())
			requireSameRows(t, newest, "expected", want, e.Name(), got)
		}
	})
}

// requireEnded wants the error that says that the session is over.
func requireEnded(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, tideline.ErrPoisoned)
}
