package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline"
)

type createFlags struct {
	schema    string
	like      string
	format    string
	primary   []string
	partition []string
	options   []string
	comment   string
}

func newCreate(s streams) *cobra.Command {
	f := &createFlags{}
	c := &cobra.Command{
		Use:   "create TABLE (--schema FILE | --like FILE)",
		Short: "Create a table",
		Long: `Creates a table from a Paimon schema in JSON or with the columns of a data file.

The schema is a Paimon schema file, or only a part of one such as
{"fields":[{"name":"id","type":"BIGINT NOT NULL"},{"name":"city","type":"STRING"}]}.
Flags replace the keys and add to the options that it has.

Column types of a CSV file, which needs a header, are guessed from its first rows:
BOOLEAN, BIGINT, DOUBLE, DATE, TIMESTAMP(6), STRING.`,
		Example: `  tideline create shop.db/orders --schema orders.schema.json
  tideline create shop.db/orders --like orders.parquet --primary-key id,day --partition day -o bucket=4
  tideline create shop.db/events --like events.csv`,
		Args: tableArgs(0),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], s, c.Flags().Changed("primary-key"), c.Flags().Changed("partition"))
		},
	}
	c.Flags().StringVar(&f.schema, "schema", "", "a Paimon schema in JSON")
	c.Flags().StringVar(&f.like, "like", "", "a Parquet, Arrow or CSV file whose columns the table gets")
	c.Flags().StringVar(&f.format, "format", "", "format of the --like file: parquet, arrow or csv; default by its extension")
	c.Flags().StringSliceVar(&f.primary, "primary-key", nil, "columns of the primary key; without it the table is append-only")
	c.Flags().StringSliceVar(&f.partition, "partition", nil, "columns to partition by")
	c.Flags().StringArrayVarP(&f.options, "option", "o", nil, "a Paimon table option, `KEY=VALUE`; may be repeated")
	c.Flags().StringVar(&f.comment, "comment", "", "what the table is for")
	return c
}

func (f *createFlags) run(ctx context.Context, path string, s streams, primary, partition bool) error {
	if (f.schema == "") == (f.like == "") {
		return usage("give either --schema or --like")
	}
	var d tideline.Definition
	var err error
	if f.schema != "" {
		d, err = definitionFile(f.schema)
	} else {
		d.Fields, err = likeFile(ctx, f.like, f.format)
	}
	if err != nil {
		return err
	}
	if primary {
		d.PrimaryKey = f.primary
	}
	if partition {
		d.PartitionBy = f.partition
	}
	if f.comment != "" {
		d.Comment = f.comment
	}
	for _, o := range f.options {
		key, value, ok := strings.Cut(o, "=")
		if !ok || key == "" {
			return usage("-o %q is not of the form KEY=VALUE", o)
		}
		if d.Options == nil {
			d.Options = map[string]string{}
		}
		d.Options[key] = value
	}
	t, err := tideline.Create(ctx, path, d, tideline.Options{})
	if err != nil {
		return err
	}
	defer t.Close(context.WithoutCancel(ctx))
	kind := "append table"
	if t.Schema().IsPrimaryKey() {
		kind = "primary-key table"
	}
	fmt.Fprintf(s.err, "created %s %s with %s\n", kind, path, count(int64(len(t.Schema().Fields)), "column"))
	return nil
}
