package main

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/schema"
)

// defaultBatchRows is large enough to make the work per batch small and small
// enough to show progress.
const defaultBatchRows = 16384

type ingestFlags struct {
	tableFlags
	format   string
	op       string
	offset   string
	batch    int
	every    string
	onError  string
	extra    bool
	interval time.Duration // of commits, 0: none
	rows     int64         // between commits, 0: none
}

func newIngest(s streams) *cobra.Command {
	f := &ingestFlags{}
	c := &cobra.Command{
		Use:   "ingest TABLE [FILE | -]",
		Short: "Load rows into a table",
		Long: `Streams rows through the real-time writer, from a file or from standard input, and
commits them: at the end, as often as --commit-every says, and whenever the memory
for rows is used up.

JSON lines hold one object a row, as "read --format jsonl" prints it; numbers for
DECIMAL, ISO timestamps with T and zone, and objects for MAP are read as well. CSV
needs a header; an empty cell is NULL, a pair of quotes the empty string. Columns are
matched by name; missing ones are NULL.

With --offset-field every row carries its number in the input, rising within every
bucket, and rows below the committed end of their bucket ("tideline offsets") are
skipped, so an interrupted load is simply started again. Without it the rows are
numbered on from there, and a second run writes them a second time. Use one way and
one numbering for all loads of a table.

An interrupt finishes the batch that is being written, commits, and exits with 1.`,
		Example: `  tideline ingest shop.db/orders orders.csv
  tideline ingest shop.db/orders orders.jsonl --offset-field line --commit-every 10s
  tail -f changes.jsonl | tideline ingest shop.db/orders --format jsonl --op-field op --commit-every 5s,100000rows`,
		Args: tableArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			input := "-"
			if len(args) > 1 {
				input = args[1]
			}
			return f.run(c.Context(), args[0], input, s)
		},
	}
	f.register(c)
	flags := c.Flags()
	flags.StringVar(&f.user, "user", "tideline-cli", "the commit user; keep it for every run of the same load")
	flags.StringVarP(&f.format, "format", "f", "", "jsonl, csv, parquet or arrow; default by the extension of FILE")
	flags.StringVar(&f.op, "op-field", "", "the field that says what a row does: I, U, D, +I, -U, +U, -D, insert, update or delete; insert where it is absent")
	flags.StringVar(&f.offset, "offset-field", "", "the field that numbers the rows of the input")
	flags.IntVar(&f.batch, "batch", defaultBatchRows, "rows that become visible together")
	flags.StringVar(&f.every, "commit-every", "", "commit after this time or so many rows, for instance 5s, 10000rows or both")
	flags.StringVar(&f.onError, "on-error", "stop", "a row that cannot be taken: stop, or skip it")
	flags.BoolVar(&f.extra, "ignore-extra", false, "leave out fields that the table does not know")
	return c
}

// validate checks the flags that need no file and no table.
func (f *ingestFlags) validate(input string) error {
	if f.format == "" {
		if f.format = formatOf(input); f.format == "" {
			return usage("the format of %q is not plain from its name; give --format", input)
		}
	}
	if err := oneOf("format", f.format, "jsonl", "csv", "parquet", "arrow"); err != nil {
		return err
	}
	if err := oneOf("on-error", f.onError, "stop", "skip"); err != nil {
		return err
	}
	if f.batch < 1 || f.batch > 1<<24 {
		return usage("--batch %d: want 1 to %d rows", f.batch, 1<<24)
	}
	if f.op != "" && f.op == f.offset {
		return usage("--op-field and --offset-field are the same field")
	}
	for _, part := range strings.Split(f.every, ",") {
		if err := f.trigger(strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	if f.rows > 0 {
		f.batch = int(min(int64(f.batch), f.rows))
	}
	return nil
}

func (f *ingestFlags) trigger(text string) error {
	if text == "" && f.every == "" {
		return nil
	}
	if digits, ok := strings.CutSuffix(text, "rows"); ok {
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err == nil && n > 0 {
			f.rows = n
			return nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		f.interval = d
		return nil
	}
	return usage("--commit-every %q: want a time such as 5s, a number such as 10000rows, or both with a comma between", f.every)
}

func (f *ingestFlags) run(ctx context.Context, path, input string, s streams) error {
	if err := f.validate(input); err != nil {
		return err
	}
	s.err = &lockedWriter{out: s.err, terminal: isTerminal(s.err)}
	t, err := f.open(ctx, path)
	if err != nil {
		return err
	}
	defer t.Close(context.WithoutCancel(ctx))
	in, size := s.in, int64(-1)
	if input != "-" {
		file, err := os.Open(input)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	r := &rejects{skip: f.onError == "skip", out: s.err}
	source, err := f.source(ctx, t.Schema(), in, size, r)
	if err != nil {
		return err
	}
	l := &load{flags: f, table: t, source: source, rejects: r, streams: s}
	return l.run(ctx)
}

func (f *ingestFlags) source(ctx context.Context, table *schema.Schema, in io.Reader, size int64, r *rejects) (source, error) {
	lay, err := newLayout(table, f.op, f.offset)
	if err != nil {
		return nil, err
	}
	if f.format == "jsonl" || f.format == "csv" {
		d := jsonl.NewDecoder(lay.fields)
		if f.extra {
			d.IgnoreUnknown()
		}
		return &textSource{in: in, bytes: size, csv: f.format == "csv", extra: f.extra, layout: lay, decoder: d, rejects: r, batchRows: f.batch}, nil
	}
	records, err := openRecords(ctx, in, f.format, f.batch)
	if err != nil {
		return nil, err
	}
	c, err := newConverter(lay.fields, records.schema(), f.extra)
	if err != nil {
		records.close()
		return nil, err
	}
	return &recordSource{in: records, layout: lay, convert: c, rejects: r, batchRows: f.batch}, nil
}

// lockedWriter lets the source and the writer print at the same time.
type lockedWriter struct {
	lock     sync.Mutex
	out      io.Writer
	terminal bool
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.out.Write(p)
}
