package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tideline-db/tideline/harness"
)

// historyBatch is the default of --batch for streams of changes, which are short.
const historyBatch = 100

// flags are the flags of sim run.
type flags struct {
	dir, keys, table, changes, key, git, json, commitEvery string
	rows                                                   int64
	batch, buckets, writers, readers                       int
	updates, deletes                                       float64
	seed                                                   uint64
	duration                                               time.Duration
	memoryMiB                                              int64
	keep                                                   bool
}

func newRun(interrupt context.Context, stdout, stderr io.Writer, adjust func(*harness.Config)) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "run",
		Short: "Write a table, read it meanwhile, compare with a model",
		Long: `Write a new table while readers compare every read with a plain model, at the
boundary between two writes that the read reports. At the end the table is
reopened from disk and compared once more.

The input is generated (--table, --keys, --updates, --deletes, --seed), or the
history of a git repository (--git), or a file of changes (--changes, --key).
The table is DIR/sim.db/load (or git, changes), which any Paimon engine opens.`,
		Example: `  sim run --rows 1000000 --readers 2 --commit-every 1s --buckets 2
  sim run --table t2 --keys zipf --commit-every 20000 --duration 1m
  sim run --git .
  sim run --changes history.jsonl.gz --key path`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("sim run takes no arguments, only flags; got %q", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return f.run(interrupt, c.Flags(), stdout, stderr, adjust) },
	}
	p := c.Flags()
	p.StringVar(&f.dir, "dir", "", "warehouse directory, kept at the end (default: a temporary one, removed)")
	p.BoolVar(&f.keep, "keep", false, "keep the temporary directory")
	p.Int64Var(&f.rows, "rows", 1_000_000, "rows to write; with --duration and without --rows: no limit")
	p.IntVar(&f.batch, "batch", 1000, "rows of a write (default with --git and --changes: 100, and the rows of a commit stay together)")
	p.IntVar(&f.buckets, "buckets", 1, "buckets of the table")
	p.StringVar(&f.table, "table", "t1", "t1 (BIGINT key), t2 (STRING key), t3 (three key columns), append (no key)")
	p.StringVar(&f.keys, "keys", "random", "random, zipf, append or hot")
	p.Float64Var(&f.updates, "updates", 0.2, "share of rows that overwrite an earlier key")
	p.Float64Var(&f.deletes, "deletes", 0.05, "share of rows that delete an earlier key")
	p.IntVar(&f.writers, "writers", 1, "goroutines that make and prepare batches for the writer")
	p.IntVar(&f.readers, "readers", 1, "goroutines that read and compare; one more measures freshness")
	p.StringVar(&f.commitEvery, "commit-every", "1s", "a duration (in the background), or a number of rows")
	p.Uint64Var(&f.seed, "seed", 7, "the same seed gives the same input and the same end state")
	p.StringVar(&f.changes, "changes", "", "file of changes, one JSON object a line, may be gzip: op I, U or D and the columns")
	p.StringVar(&f.key, "key", "", "key column of --changes")
	p.StringVar(&f.git, "git", "", "git repository: its first-parent history is the input")
	p.DurationVar(&f.duration, "duration", 0, "end the writing after this time, then verify")
	p.Int64Var(&f.memoryMiB, "memory", 0, "MiB of rows that may wait in memory (default 1024)")
	p.StringVar(&f.json, "json", "", "write the report to this file as JSON")
	return c
}

func (f *flags) run(interrupt context.Context, set *pflag.FlagSet, stdout, stderr io.Writer, adjust func(*harness.Config)) (err error) {
	config := harness.Config{
		Seed: f.seed, Writers: f.writers, Readers: f.readers, Duration: f.duration, MemoryBytesMax: f.memoryMiB << 20, Interrupt: interrupt,
	}
	if err := f.numbers(&config); err != nil {
		return err
	}
	source, err := f.source(set)
	if err != nil {
		return err
	}
	config.Source, config.Dir = source, f.dir
	if f.dir == "" {
		if config.Dir, err = os.MkdirTemp("", "tideline-sim-"); err != nil {
			return err
		}
		if !f.keep {
			defer func() { err = errors.Join(err, os.RemoveAll(config.Dir)) }()
		}
	}
	show := newProgress(stderr)
	config.Progress = show.update
	adjust(&config)
	report, err := harness.Run(context.Background(), config)
	show.finish()
	if report == nil {
		return err
	}
	if f.dir != "" || f.keep {
		fmt.Fprintf(stdout, "%-10s  %s\n", "table", report.Table)
	}
	fmt.Fprint(stdout, report)
	if f.json != "" {
		err = errors.Join(err, writeJSON(f.json, report))
	}
	return err
}

// numbers refuses flags that make no sense.
func (f *flags) numbers(c *harness.Config) error {
	switch {
	case f.rows < 1 || f.batch < 1 || f.buckets < 1:
		return usage("--rows, --batch and --buckets must be at least 1")
	case f.writers < 1:
		return usage("--writers must be at least 1")
	case f.readers < 0 || f.duration < 0 || f.memoryMiB < 0:
		return usage("--readers, --duration and --memory must not be negative")
	}
	if rows, err := strconv.ParseInt(f.commitEvery, 10, 64); err == nil && rows > 0 {
		c.CommitRows = rows
		return nil
	}
	interval, err := time.ParseDuration(f.commitEvery)
	if err != nil || interval <= 0 {
		return usage("--commit-every %q: want a duration such as 500ms, or a number of rows", f.commitEvery)
	}
	c.CommitInterval = interval
	return nil
}

// source is the input that the flags ask for.
func (f *flags) source(set *pflag.FlagSet) (harness.Source, error) {
	if f.git != "" && f.changes != "" {
		return nil, usage("give either --git or --changes")
	}
	if (f.key != "") != (f.changes != "") {
		return nil, usage("--changes FILE and --key COLUMN go together")
	}
	if f.git != "" || f.changes != "" {
		for _, name := range []string{"rows", "table", "keys", "updates", "deletes"} {
			if set.Changed(name) {
				return nil, usage("--%s is for generated input, not for --git or --changes", name)
			}
		}
		if !set.Changed("batch") {
			f.batch = historyBatch
		}
	}
	switch {
	case f.git != "":
		return harness.OpenGit(f.git, f.batch, f.buckets)
	case f.changes != "":
		return harness.OpenChanges(f.changes, f.key, f.batch, f.buckets)
	}
	l := harness.Load{
		Kind: harness.Kind(f.table), Total: f.rows, Batch: f.batch, Buckets: f.buckets,
		Profile: harness.Profile{Seed: f.seed, Keys: harness.Keys(f.keys), Updates: f.updates, Deletes: f.deletes},
	}
	if f.duration > 0 && !set.Changed("rows") {
		l.Total = 0
	}
	if err := l.Check(); err != nil {
		return nil, usageError{err}
	}
	return l, nil
}

func writeJSON(name string, report *harness.Report) error {
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o666)
}
