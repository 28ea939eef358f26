package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline/paimon/schema"
)

type schemaFlags struct {
	listFlags
	id int64
}

func newSchema(s streams) *cobra.Command {
	f := &schemaFlags{}
	c := &cobra.Command{
		Use:   "schema TABLE",
		Short: "Print the columns, keys and options of a table",
		Long: `Prints the newest schema of a table, or another version. The jsonl form is the
Paimon schema file on one line, which create --schema takes.`,
		Example: `  tideline schema shop.db/orders
  tideline schema shop.db/orders --format jsonl > orders.schema.json`,
		Args: tableArgs(0),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), args[0], s) },
	}
	f.register(c)
	c.Flags().Int64Var(&f.id, "id", -1, "the schema version")
	c.Flags().Lookup("id").DefValue = "the newest"
	return c
}

func (f *schemaFlags) run(ctx context.Context, path string, s streams) error {
	t, err := f.open(ctx, path)
	if err != nil {
		return err
	}
	defer t.Close(context.WithoutCancel(ctx))
	table := t.Schema()
	if f.id >= 0 {
		if table, err = t.Committed().Schema(ctx, f.id); err != nil {
			return err
		}
	}
	if f.format == "jsonl" {
		var line bytes.Buffer
		if err := json.Compact(&line, table.Marshal()); err != nil {
			return err
		}
		line.WriteByte('\n')
		_, err = s.out.Write(line.Bytes())
		return err
	}
	g := listing(s.out, "column", "#id", "type", "key", "comment")
	for _, field := range table.Fields {
		if err := g.add(printable(field.Name), strconv.Itoa(field.ID), field.Type.String(), keys(table, field.Name), printable(field.Description)); err != nil {
			return err
		}
	}
	if err := g.close(); err != nil {
		return err
	}
	names := make([]string, 0, len(table.Options))
	for name := range table.Options {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	fmt.Fprintf(&b, "\nschema %d", table.ID)
	if table.Comment != nil && *table.Comment != "" {
		fmt.Fprintf(&b, ": %s", printable(*table.Comment))
	}
	b.WriteByte('\n')
	for _, name := range names {
		fmt.Fprintf(&b, "%s = %s\n", printable(name), printable(table.Options[name]))
	}
	_, err = fmt.Fprint(s.out, b.String())
	return err
}

// keys says which keys a column is part of.
func keys(t *schema.Schema, column string) string {
	var parts []string
	if slices.Contains(t.PrimaryKeys, column) {
		parts = append(parts, "primary")
	}
	if slices.Contains(t.PartitionKeys, column) {
		parts = append(parts, "partition")
	}
	return strings.Join(parts, " ")
}
