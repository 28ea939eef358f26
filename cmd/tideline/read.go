package main

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/predicate"
	"github.com/tideline-db/tideline/paimon/schema"
)

type readFlags struct {
	tableFlags
	format   string
	columns  []string
	where    string
	limit    int64
	snapshot int64
	tag      string
}

func newRead(s streams) *cobra.Command {
	f := &readFlags{}
	c := &cobra.Command{
		Use:   "read TABLE",
		Short: "Print the rows of a table",
		Long: `Prints the rows of the newest snapshot, or of the one asked for, to standard
output. The order of the rows is not defined.

Formats: table (aligned columns), jsonl (one object a line), csv (with a header;
NULL is an empty cell, the empty string a pair of quotes), arrow (IPC stream).

Values in jsonl: integers, FLOAT and DOUBLE are numbers, DECIMAL is a string with
all digits of its scale, BINARY is hexadecimal, TIMESTAMP is
"YYYY-MM-DD hh:mm:ss[.digits]", in UTC with a final Z when it has a time zone, MAP
is an array of [key, value] pairs.`,
		Example: `  tideline read shop.db/orders --limit 10
  tideline read shop.db/orders --columns id,address.city --where "amount >= 100 AND city IN ('Oslo', 'Bergen')"
  tideline read shop.db/orders --snapshot 12 --format jsonl
  tideline read shop.db/orders --format arrow > orders.arrow`,
		Args: tableArgs(0),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], s, c.Flags().Changed("columns"))
		},
	}
	f.register(c)
	c.Flags().StringVarP(&f.format, "format", "f", "table", "table, jsonl, csv or arrow")
	c.Flags().StringSliceVarP(&f.columns, "columns", "c", nil, "columns to print, in this order; `a,b.c` takes member c of the ROW b")
	c.Flags().StringVarP(&f.where, "where", "w", "", "rows to print, an `EXPRESSION` like SQL's: =, <>, <, IN, BETWEEN, IS NULL, LIKE 'prefix%', AND, OR, NOT")
	c.Flags().Int64VarP(&f.limit, "limit", "n", -1, "stop after this many rows")
	c.Flags().Lookup("limit").DefValue = "all"
	c.Flags().Int64Var(&f.snapshot, "snapshot", 0, "read this snapshot, in the schema it names")
	c.Flags().StringVar(&f.tag, "tag", "", "read the snapshot of this tag")
	return c
}

func (f *readFlags) run(ctx context.Context, path string, s streams, columns bool) error {
	if err := oneOf("format", f.format, "table", "jsonl", "csv", "arrow"); err != nil {
		return err
	}
	if f.limit < -1 || f.snapshot < 0 {
		return usage("--limit and --snapshot are not negative")
	}
	if f.snapshot > 0 && f.tag != "" {
		return usage("--snapshot and --tag exclude each other")
	}
	var where *predicate.Predicate
	if f.where != "" {
		var err error
		if where, err = predicate.Parse(f.where); err != nil {
			return usage("--where: %w", err)
		}
	}
	t, err := f.open(ctx, path)
	if err != nil {
		return err
	}
	defer t.Close(context.WithoutCancel(ctx))
	scan := t.Scan().Limit(f.limit)
	if columns {
		scan = scan.Select(f.columns...)
	}
	if where != nil {
		scan = scan.Where(where)
	}
	table, err := f.at(ctx, t, &scan)
	if err != nil {
		return err
	}
	r, err := scan.Read(ctx)
	if err != nil {
		return err
	}
	defer r.Release()
	return f.print(r, s, outputFields(table, r.Schema()))
}

// at points the scan at the snapshot that was asked for and returns the schema
// that it is read in.
func (f *readFlags) at(ctx context.Context, t *tideline.Table, scan *tideline.Scan) (*schema.Schema, error) {
	var snap *manifest.Snapshot
	var err error
	switch {
	case f.snapshot > 0:
		*scan = scan.AtSnapshot(f.snapshot)
		snap, err = t.Committed().Snapshot(ctx, f.snapshot)
	case f.tag != "":
		*scan = scan.AtTag(f.tag)
		snap, err = t.Committed().Tag(ctx, f.tag)
	default:
		return t.Schema(), nil
	}
	if err != nil {
		return nil, err
	}
	return t.Committed().Schema(ctx, snap.SchemaID)
}

func (f *readFlags) print(r *tideline.Reader, s streams, fields []schema.Field) error {
	out := newSink(f.format, s.out, fields, r.Schema())
	rows := int64(0)
	for r.Next() {
		if err := out.write(r.RecordBatch()); err != nil {
			return err
		}
		rows += r.RecordBatch().NumRows()
	}
	if err := r.Err(); err != nil {
		return err
	}
	if err := out.close(); err != nil {
		return err
	}
	if f.format == "table" {
		if r.Snapshot() == 0 {
			fmt.Fprintln(s.err, "0 rows, there is no snapshot yet")
			return nil
		}
		fmt.Fprintf(s.err, "%s of snapshot %d\n", count(rows, "row"), r.Snapshot())
	}
	return nil
}

// count is "1 row" or "2 rows".
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// outputFields are the table's fields that a read returns: Arrow does not tell the
// precision of a timestamp.
func outputFields(s *schema.Schema, out *arrow.Schema) []schema.Field {
	return narrow(s.Fields, out.Fields())
}

func narrow(fields []schema.Field, kept []arrow.Field) []schema.Field {
	byName := make(map[string]schema.Field, len(fields))
	for _, f := range fields {
		byName[f.Name] = f
	}
	out := make([]schema.Field, len(kept))
	for i, k := range kept {
		out[i] = byName[k.Name]
		if row, ok := k.Type.(*arrow.StructType); ok {
			out[i].Type.Fields = narrow(out[i].Type.Fields, row.Fields())
		}
	}
	return out
}
