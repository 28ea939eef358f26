package tideline_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs/fault"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/schema"
)

func bothKinds(t *testing.T, run func(t *testing.T, def tideline.Definition)) {
	t.Run("pk", func(t *testing.T) { run(t, keyed()) })
	t.Run("append", func(t *testing.T) { run(t, listed()) })
}

// COM-01: two prepares; committing the second commits the first before it.
func TestCommitLaterPrepareCommitsEarlierOnesFirst(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a", 2, "b", 3, "c")
		first := prepare(t, writer)
		put(t, writer, 4, "d", 5, "e")
		second := prepare(t, writer)
		c := publish(t, table, second)
		require.EqualValues(t, 2, c.ID)
		require.Equal(t, []string{"0:3"}, ends(t, table, 1))
		require.Equal(t, []string{"0:5"}, ends(t, table, 2))
		again := publish(t, table, first)
		require.True(t, again.AlreadyThere)
		require.EqualValues(t, 1, again.ID)
		require.Equal(t, []string{"1=a", "2=b", "3=c", "4=d", "5=e"}, read(t, committed(table)))
		require.NoError(t, table.Refresh(t.Context()))
		require.Zero(t, stats(t, table).UsedBytes)
		require.NoError(t, writer.Close(t.Context()))
	})
}

// COM-02: committing the same value again changes nothing, whatever came after.
func TestCommitTwiceIsIdempotent(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	first := prepare(t, writer)
	c := publish(t, table, first)
	again := publish(t, table, first)
	require.True(t, again.AlreadyThere)
	require.Equal(t, c.ID, again.ID)
	require.NoError(t, table.Refresh(t.Context()))
	put(t, writer, 2, "b")
	commit(t, writer)
	late := publish(t, table, first)
	require.True(t, late.AlreadyThere)
	require.Equal(t, c.ID, late.ID)
	require.EqualValues(t, 2, w.latest().ID)
	require.Equal(t, []string{"1=a", "2=b"}, read(t, table.Scan()))
}

// COM-03: the same ranges of the log from another session are refused, of the
// same user or of another one.
func TestCommitOfRangesThatSomebodyElseCommittedIsFenced(t *testing.T) {
	for _, name := range []string{"ours", "other"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keyed())
			slow, slowWriter := w.session()
			fast, fastWriter := w.session(user(name))
			put(t, slowWriter, 1, "a", 2, "b")
			put(t, fastWriter, 1, "a", 2, "b")
			stalled := prepare(t, slowWriter)
			commit(t, fastWriter)
			_, err := slow.Commit(t.Context(), stalled)
			require.ErrorIs(t, err, tideline.ErrFenced)
			require.EqualValues(t, 1, w.latest().ID)
			require.Equal(t, []string{"1=a", "2=b"}, read(t, committed(slow)))
			require.Equal(t, []string{"1=a", "2=b"}, read(t, fast.Scan()))
			_, err = slow.Scan().Read(t.Context())
			require.ErrorIs(t, err, tideline.ErrFenced, "a plan is fenced as well")
			require.ErrorIs(t, slow.Refresh(t.Context()), tideline.ErrFenced)
			_, err = slowWriter.Write(t.Context(), rows(t, 3, "c"))
			require.ErrorIs(t, err, tideline.ErrPoisoned)
		})
	}
}

// COM-04, COM-06, COM-29: foreign appends and compactions between our commits
// carry no progress and change none.
func TestProgressIsInheritedOverForeignCommits(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a", 2, "b")
	commit(t, writer)
	put(t, writer, 3, "c", 1, "A")
	commit(t, writer)
	put(t, writer, 4, "d")
	want := []string{"1=A", "2=b", "3=c", "4=d"}
	w.compact()
	require.Equal(t, 1, w.fileCount())
	require.Equal(t, want, read(t, table.Scan()), "before the refresh")
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, want, read(t, table.Scan()), "after the refresh")
	require.Equal(t, []string{"0:4"}, ends(t, table, 0))
	w.add(50, 9, "flink")
	put(t, writer, 5, "e")
	c := commit(t, writer)
	require.EqualValues(t, 5, c.ID)
	require.Equal(t, []string{"0:6"}, ends(t, table, 0))
	require.Equal(t, []string{"1=A", "2=b", "3=c", "4=d", "5=e", "9=flink"}, read(t, table.Scan()))
	require.Equal(t, []string{"1=A", "2=b", "3=c", "4=d", "5=e", "9=flink"}, read(t, committed(table)))
}

// A foreign row of a key and a row in memory: what is written after adoption wins.
func TestWriteAfterAdoptionWinsAgainstTheForeignRow(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "ours")
	commit(t, writer)
	w.add(40, 1, "flink")
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, []string{"1=flink"}, read(t, table.Scan()))
	put(t, writer, 1, "again")
	require.Equal(t, []string{"1=again"}, read(t, table.Scan()))
	require.Greater(t, stats(t, table).Buckets[0].NextSequence, int64(41))
	commit(t, writer)
	require.Equal(t, []string{"1=again"}, read(t, committed(table)))
}

// COM-07: the gauges over the life of rows.
func TestGaugesOverTheLifeCycle(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	require.Zero(t, stats(t, table).BuildingRows)
	put(t, writer, 1, "a", 2, "b", 3, "c")
	s := stats(t, table)
	require.EqualValues(t, 3, s.BuildingRows)
	require.Zero(t, s.SealedRows)
	require.Positive(t, s.BuildingBytes)
	require.Equal(t, s.BuildingBytes, s.UsedBytes)
	require.NoError(t, writer.Seal(t.Context()))
	sealed := stats(t, table)
	require.EqualValues(t, 3, sealed.SealedRows)
	require.Zero(t, sealed.BuildingRows)
	require.Equal(t, s.UsedBytes, sealed.UsedBytes, "sealing frees nothing")
	put(t, writer, 4, "d", 1, nil)
	s = stats(t, table)
	require.EqualValues(t, 3, s.SealedRows)
	require.EqualValues(t, 2, s.BuildingRows)
	require.Equal(t, s.BuildingBytes+s.SealedBytes, s.UsedBytes)
	require.Equal(t, 2, s.Buckets[0].Segments)
	require.EqualValues(t, 5, s.Buckets[0].Lag)
	p := prepare(t, writer)
	require.EqualValues(t, 4, p.Rows, "the superseded version of key 1 is in no file")
	s = stats(t, table)
	require.EqualValues(t, 5, s.SealedRows)
	publish(t, table, p)
	require.EqualValues(t, 5, stats(t, table).SealedRows, "kept until it is adopted")
	require.NoError(t, table.Refresh(t.Context()))
	s = stats(t, table)
	require.Zero(t, s.SealedRows+s.BuildingRows+s.UsedBytes+s.PinnedBytes)
	require.EqualValues(t, 5, s.Buckets[0].CommittedEnd)
	require.Zero(t, s.Buckets[0].Lag)
	require.EqualValues(t, 1, s.AdoptedSnapshot)
	require.NoError(t, s.Poisoned)
}

// COM-12, COM-28: nothing prepared, unknown prepares, prepares of another handle.
func TestCommitOfNothing(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	p := prepare(t, writer)
	require.Zero(t, p.Rows)
	c := publish(t, table, p)
	require.Zero(t, c.ID)
	require.Nil(t, w.latest())
	require.Empty(t, ends(t, table, 0))
	_, err := table.Commit(t.Context(), tideline.Prepared{Number: 99})
	require.ErrorIs(t, err, tideline.ErrInvalid)
	_, err = w.open().Commit(t.Context(), p)
	require.ErrorIs(t, err, tideline.ErrInvalid)
	got, err := table.Progress(t.Context(), 0)
	require.NoError(t, err)
	require.False(t, got.Found)
}

// Several prepares in flight while a plan is pinned.
func TestPrepareTwicePublishTwiceUnderAPinnedPlan(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	first := prepare(t, writer)
	plan, err := table.Scan().Plan(t.Context())
	require.NoError(t, err)
	put(t, writer, 1, "b")
	second := prepare(t, writer)
	publish(t, table, first)
	publish(t, table, second)
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, []string{"1=b"}, read(t, table.Scan()))
	r, err := table.ReadSplits(t.Context(), plan.Splits...)
	require.NoError(t, err)
	require.Equal(t, []string{"1=a"}, drain(t, r))
}

func TestAbortGivesTheRowsToTheNextPrepare(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a")
		first := prepare(t, writer)
		put(t, writer, 2, "b")
		second := prepare(t, writer)
		require.ErrorIs(t, writer.Abort(t.Context(), first), tideline.ErrInvalid, "not the newest")
		require.NoError(t, writer.Abort(t.Context(), second))
		require.ErrorIs(t, writer.Abort(t.Context(), second), tideline.ErrInvalid, "aborted already")
		_, err := table.Commit(t.Context(), second)
		require.ErrorIs(t, err, tideline.ErrInvalid)
		require.Equal(t, []string{"1=a", "2=b"}, read(t, table.Scan()))
		put(t, writer, 3, "c")
		third := prepare(t, writer)
		require.EqualValues(t, 2, third.Rows)
		publish(t, table, third)
		require.ErrorIs(t, writer.Abort(t.Context(), third), tideline.ErrInvalid, "published")
		require.NoError(t, table.Refresh(t.Context()))
		require.Equal(t, []string{"1=a", "2=b", "3=c"}, read(t, committed(table)))
		require.Equal(t, []string{"0:3"}, ends(t, table, 0))
		require.Zero(t, stats(t, table).UsedBytes)
		require.NoError(t, writer.Close(t.Context()))
	})
}

// An abort of the only prepare leaves rows that no prepare took.
func TestAbortedRowsAreUnpreparedAgain(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	require.NoError(t, writer.Abort(t.Context(), prepare(t, writer)))
	files, err := w.disk.List(t.Context(), w.path+"/bucket-0")
	if err == nil {
		require.Empty(t, files, "the files are deleted")
	}
	require.ErrorIs(t, writer.Close(t.Context()), tideline.ErrInvalid)
	require.ErrorIs(t, stats(t, table).Poisoned, tideline.ErrPoisoned)
}

// A position is of exactly its snapshot and bounded.
func TestPositionTravelsWithItsSnapshot(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	big := []byte(strings.Repeat("p", 64<<10))
	put(t, writer, 1, "a")
	_, err := writer.PrepareCommit(t.Context(), tideline.Position(append(big, 'x')))
	require.ErrorIs(t, err, tideline.ErrInvalid)
	commit(t, writer, tideline.Position(big))
	put(t, writer, 2, "b")
	commit(t, writer, tideline.Position([]byte("second")))
	put(t, writer, 3, "c")
	commit(t, writer, tideline.Position(nil))
	w.add(90, 7, "flink")
	again := w.open()
	for id, want := range map[int64]string{1: string(big), 2: "second", 3: ""} {
		p, err := again.Progress(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, want, string(p.Position))
		require.True(t, p.Found)
	}
	p, err := again.Progress(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, []string{"0:3"}, ends(t, again, 4))
	require.EqualValues(t, 4, p.Snapshot)
	_, err = writer.PrepareCommit(t.Context(), tideline.Position([]byte("x")), tideline.BetweenWrites())
	require.ErrorIs(t, err, tideline.ErrInvalid)
	require.NoError(t, stats(t, table).Poisoned)
}

// What the table became under an open session, as seen by commit, refresh and plan.
func TestForeignChangesThatEndTheSession(t *testing.T) {
	cases := []struct {
		name string
		do   func(w *world)
		want error
	}{
		{"overwrite", func(w *world) { w.overwrite(8, "x") }, tideline.ErrPoisoned},
		{"truncate", func(w *world) { w.overwrite() }, tideline.ErrPoisoned},
		{"rollback", func(w *world) { w.rollback(1) }, tideline.ErrPoisoned},
		{"rollback and a new snapshot of the same id", func(w *world) { w.rollback(1); w.add(30, 8, "x") }, tideline.ErrPoisoned},
		{"overwriting rename", func(w *world) { w.clobber(2) }, tideline.ErrPoisoned},
	}
	for _, c := range cases {
		for _, step := range []string{"commit", "refresh", "plan"} {
			t.Run(c.name+"/"+step, func(t *testing.T) {
				w := newWorld(t, keyed())
				table, writer := w.session()
				put(t, writer, 1, "a")
				commit(t, writer)
				put(t, writer, 2, "b")
				commit(t, writer)
				put(t, writer, 3, "c")
				p := prepare(t, writer)
				pinned, err := table.Scan().Plan(t.Context())
				require.NoError(t, err)
				c.do(w)
				newest := w.latest().ID
				switch step {
				case "commit":
					_, err = table.Commit(t.Context(), p)
				case "refresh":
					err = table.Refresh(t.Context())
				case "plan":
					_, err = table.Scan().Read(t.Context())
				}
				require.ErrorIs(t, err, c.want)
				require.Equal(t, newest, w.latest().ID, "nothing was published over it")
				require.NotPanics(t, func() { read(t, committed(table)) })
				if !strings.Contains(c.name, "over") { // its files are still there
					r, err := table.ReadSplits(t.Context(), pinned.Splits...)
					require.NoError(t, err)
					require.Equal(t, []string{"1=a", "2=b", "3=c"}, drain(t, r))
				}
				require.EqualValues(t, 1, stats(t, table).SealedRows, "memory is kept")
			})
		}
	}
}

// Published, not adopted, then replaced: the last copy stays in memory.
func TestOverwritingRenameBeforeAdoptionKeepsTheRows(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	publish(t, table, prepare(t, writer))
	w.clobber(1)
	require.ErrorIs(t, table.Refresh(t.Context()), tideline.ErrPoisoned)
	require.EqualValues(t, 1, stats(t, table).SealedRows)
	_, err := writer.Write(t.Context(), rows(t, 2, "b"))
	require.ErrorIs(t, err, tideline.ErrPoisoned)
}

// An overwrite of another partition does not concern a session.
func TestOverwriteOfAnotherPartition(t *testing.T) {
	w := newWorld(t, tideline.Definition{Columns: regional, PrimaryKey: []string{"region", "id"}, PartitionBy: []string{"region"}})
	table, writer := w.session()
	write := func(text string) {
		_, err := writer.Write(t.Context(), fromJSON(t, regional, text))
		require.NoError(t, err)
	}
	write(`[{"region":"a","id":1,"name":"x"}]`)
	commit(t, writer)
	other, otherWriter := w.session(user("other"))
	_, err := otherWriter.Write(t.Context(), fromJSON(t, regional, `[{"region":"b","id":5,"name":"y"}]`))
	require.NoError(t, err)
	commit(t, otherWriter)
	require.NoError(t, table.Refresh(t.Context()), "progress of a bucket that this session does not hold")
	write(`[{"region":"a","id":2,"name":"z"}]`)
	w.foreign(manifest.KindOverwrite, w.drop(func(b bucketFiles) bool { return b.PartitionValues[0] == "a" })...)
	require.Equal(t, []string{"a=1=x", "a=2=z"}, read(t, table.Scan()))
	commit(t, writer)
	require.Equal(t, []string{"region=a/0:2"}, ends(t, table, 0))
	require.ErrorIs(t, other.Refresh(t.Context()), tideline.ErrPoisoned)
}

// VAL-14 and the alterations under an open session.
func TestAlteredUnderAnOpenSession(t *testing.T) {
	t.Run("column added and renamed", func(t *testing.T) {
		w := newWorld(t, keyed())
		table, writer := w.session()
		put(t, writer, 1, "a")
		w.alter(func(s *schema.Schema) {
			s.Fields[1].Name = "label"
			s.Fields = append(s.Fields, schema.Field{ID: 2, Name: "extra", Type: schema.Type{Kind: schema.Int, Nullable: true}})
			s.HighestFieldID = 2
		})
		commit(t, writer)
		put(t, writer, 2, "b")
		require.Equal(t, []string{"1=a", "2=b"}, read(t, table.Scan()), "the session finishes with its schema")
		commit(t, writer)
		require.Equal(t, []string{"1=a=(null)", "2=b=(null)"}, read(t, w.open().Scan()))
	})
	changes := map[string]func(*schema.Schema){
		"buckets": func(s *schema.Schema) { s.Options["bucket"] = "4" },
		"key":     func(s *schema.Schema) { s.PrimaryKeys = []string{"id", "name"} },
		"type":    func(s *schema.Schema) { s.Fields[1].Type = schema.Type{Kind: schema.BigInt, Nullable: true} },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keyed())
			table, writer := w.session()
			put(t, writer, 1, "7")
			w.alter(change)
			_, err := writer.Commit(t.Context())
			require.Error(t, err)
			require.Nil(t, w.latest())
			_, err = writer.Write(t.Context(), rows(t, 2, "8"))
			require.ErrorIs(t, err, tideline.ErrPoisoned)
			require.NotNil(t, table)
		})
	}
}

// A commit that lost its reply is found again; the value stays the same.
func TestLostReplyOfThePublish(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a")
		p := prepare(t, writer)
		w.io.SetPlan(fault.Plan{Rules: []fault.Rule{{
			Kinds: []fault.Kind{fault.CreateIfAbsent}, Match: func(n string) bool { return strings.HasSuffix(n, "snapshot-1") },
			Do: fault.Decision{Action: fault.FailAfter},
		}}})
		c, err := table.Commit(t.Context(), p)
		require.NoError(t, err, "reading back settles it")
		require.EqualValues(t, 1, c.ID)
		w.io.SetPlan(fault.Plan{})
		require.NoError(t, table.Refresh(t.Context()))
		require.Equal(t, []string{"1=a"}, read(t, table.Scan()))
		require.Zero(t, stats(t, table).UsedBytes)
	})
}

// Doubt that cannot be settled: writing is closed, the same value commits later.
func TestUnknownOutcomeIsAskedAgain(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	p := prepare(t, writer)
	published := false
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.CreateIfAbsent && strings.HasSuffix(op.Name, "snapshot-1") {
			published = true
			return fault.Decision{Action: fault.FailAfter}
		}
		if published {
			return fault.Decision{Action: fault.Fail}
		}
		return fault.Decision{}
	}})
	_, err := table.Commit(t.Context(), p)
	require.ErrorIs(t, err, tideline.ErrOutcomeUnknown)
	w.io.SetPlan(fault.Plan{})
	require.ErrorIs(t, writer.Abort(t.Context(), p), tideline.ErrPoisoned)
	_, err = writer.Write(t.Context(), rows(t, 2, "b"))
	require.ErrorIs(t, err, tideline.ErrPoisoned)
	require.ErrorIs(t, err, tideline.ErrOutcomeUnknown)
	require.Equal(t, []string{"1=a"}, read(t, table.Scan()), "reading goes on")
	c := publish(t, table, p)
	require.True(t, c.AlreadyThere)
	require.EqualValues(t, 1, c.ID)
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, []string{"1=a"}, read(t, table.Scan()))
	require.NoError(t, writer.Close(t.Context()))
}

// Giving up the wait for a commit gives up nothing else.
func TestCancelledWaitForACommit(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a")
	p := prepare(t, writer)
	reached, goOn := make(chan struct{}), make(chan struct{})
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.CreateIfAbsent && strings.HasSuffix(op.Name, "snapshot-1") {
			close(reached)
			<-goOn
		}
		return fault.Decision{}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := table.Commit(ctx, p)
		answer <- err
	}()
	<-reached
	cancel()
	require.ErrorIs(t, <-answer, context.Canceled)
	close(goOn)
	c := publish(t, table, p)
	require.EqualValues(t, 1, c.ID)
	require.EqualValues(t, 1, w.latest().ID)
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, []string{"1=a"}, read(t, committed(table)))
}

// COM-05: our progress survives the expiry of others by a consumer file.
func TestConsumerFileProtectsProgressBeforeTheFirstCommit(t *testing.T) {
	w := newWorld(t, keyed())
	_, writer := w.session()
	put(t, writer, 1, "a")
	seen := int64(-1)
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.CreateIfAbsent && strings.HasSuffix(op.Name, "snapshot-1") {
			consumers, err := w.reader().Consumers(t.Context())
			if err == nil && len(consumers) == 1 {
				seen = consumers["tideline-ours"]
			}
		}
		return fault.Decision{}
	}})
	commit(t, writer)
	require.EqualValues(t, 1, seen, "written before the snapshot exists")
	put(t, writer, 2, "b")
	commit(t, writer)
	consumers, err := w.reader().Consumers(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, consumers["tideline-ours"], "raised after the commit")
}

// Progress that expired is not taken for a table that never had any.
func TestLostProgressNeedsRecoveryOffsets(t *testing.T) {
	w := newWorld(t, keyed())
	_, writer := w.session()
	put(t, writer, 1, "a", 2, "b")
	commit(t, writer)
	w.compact()
	w.expire(2)
	table := w.open()
	require.Equal(t, []string{"1=a", "2=b"}, read(t, committed(table)))
	_, err := table.Writer(t.Context())
	require.Error(t, err)
	table, writer = w.session(func(o *tideline.Options) {
		o.RecoveryOffsets = []tideline.BucketOffset{{Bucket: 0, Offset: 2}}
	})
	ack := putAt(t, writer, []int64{1, 2}, 2, "b", 3, "c")
	require.Equal(t, 1, ack.Skipped)
	commit(t, writer)
	require.Equal(t, []string{"1=a", "2=b", "3=c"}, read(t, table.Scan()))
	require.Equal(t, []string{"0:3"}, ends(t, table, 0))
}

// A commit loses the race for an id and publishes on top of the winner.
func TestCommitRebasesOnTheWinnerOfARace(t *testing.T) {
	bothKinds(t, func(t *testing.T, def tideline.Definition) {
		w := newWorld(t, def)
		table, writer := w.session()
		put(t, writer, 1, "a")
		p := prepare(t, writer)
		raced := 0
		w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
			if op.Kind == fault.CreateIfAbsent && strings.Contains(op.Name, "/snapshot/snapshot-") && raced < 2 {
				raced++
				w.add(20+raced, 10+raced, "flink")
			}
			return fault.Decision{}
		}})
		c := publish(t, table, p)
		require.EqualValues(t, 3, c.ID)
		require.Equal(t, 3, c.Attempts)
		require.NoError(t, table.Refresh(t.Context()))
		require.ElementsMatch(t, []string{"1=a", "11=flink", "12=flink"}, read(t, table.Scan()))
		require.ElementsMatch(t, []string{"1=a", "11=flink", "12=flink"}, read(t, committed(table)))
	})
}

func TestCommitGivesUpAfterItsRetries(t *testing.T) {
	w := newWorld(t, keyed("commit.max-retries", "1"))
	table, writer := w.session()
	put(t, writer, 1, "a")
	p := prepare(t, writer)
	n := 0
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.CreateIfAbsent && strings.Contains(op.Name, "/snapshot/snapshot-") && n < 2 {
			n++
			w.add(20+n, 10+n, "flink")
		}
		return fault.Decision{}
	}})
	_, err := table.Commit(t.Context(), p)
	require.ErrorIs(t, err, tideline.ErrConflict)
	_, err = writer.Write(t.Context(), rows(t, 2, "b"))
	require.ErrorIs(t, err, tideline.ErrPoisoned)
	require.True(t, errors.Is(err, tideline.ErrConflict))
	publish(t, table, p)
	require.NoError(t, table.Refresh(t.Context()))
	require.ElementsMatch(t, []string{"1=a", "11=flink", "12=flink"}, read(t, table.Scan()))
}

// CON-03: a full compaction wins the race for the id; both are in the table.
func TestCommitRacesWithACompaction(t *testing.T) {
	w := newWorld(t, keyed())
	table, writer := w.session()
	put(t, writer, 1, "a", 2, "b")
	commit(t, writer)
	put(t, writer, 1, "A")
	commit(t, writer)
	remove(t, writer, 2)
	p := prepare(t, writer)
	raced := false
	w.io.SetPlan(fault.Plan{Hook: func(op fault.Op) fault.Decision {
		if op.Kind == fault.CreateIfAbsent && strings.HasSuffix(op.Name, "snapshot-3") && !raced {
			raced = true
			w.compact()
		}
		return fault.Decision{}
	}})
	c := publish(t, table, p)
	require.EqualValues(t, 4, c.ID)
	require.Equal(t, []string{"0:4"}, ends(t, table, 0))
	require.NoError(t, table.Refresh(t.Context()))
	require.Equal(t, []string{"1=A"}, read(t, table.Scan()))
	levels := map[int]int{}
	for _, f := range w.files()[0].Files {
		levels[f.Level]++
	}
	require.Equal(t, map[int]int{0: 1, 5: 1}, levels)
	s, err := w.reader().Snapshot(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, manifest.KindCompact, s.CommitKind)
}
