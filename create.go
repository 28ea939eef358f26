package tideline

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// Definition describes a table to create. Columns come from Arrow or, for types
// that Arrow cannot tell apart (CHAR, TIMESTAMP precisions), from Fields.
type Definition struct {
	Columns     *arrow.Schema
	Fields      []schema.Field // field ids may be left zero: they are assigned
	PrimaryKey  []string       // empty: an append table
	PartitionBy []string
	// Options are Paimon table options, for instance "bucket": "4". A primary-key
	// table without "bucket" gets one bucket.
	Options map[string]string
	Comment string
}

// Create makes a table at path, a directory that is not a table yet, and opens
// it. Exactly one of several creators wins; the others get an error that matches
// fs.ErrExist.
func Create(ctx context.Context, path string, d Definition, o Options) (*Table, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := d.schema()
	if err != nil {
		return nil, err
	}
	t, err := newTable(path, o)
	if err != nil {
		return nil, err
	}
	if err := t.committed.CreateTable(ctx, s); err != nil {
		return nil, err
	}
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// schema turns the definition into schema-0 and refuses what this engine could
// not write.
func (d Definition) schema() (*schema.Schema, error) {
	fields := d.Fields
	switch {
	case fields == nil && d.Columns == nil:
		return nil, errs.Invalid("a table needs columns; nothing was created")
	case fields != nil && d.Columns != nil:
		return nil, errs.Invalid("give the columns either as an Arrow schema or as fields, not both; nothing was created")
	case fields == nil:
		var err error
		if fields, err = schema.FromArrow(d.Columns); err != nil {
			return nil, err
		}
	}
	options := map[string]string{}
	for k, v := range d.Options {
		options[k] = v
	}
	if len(d.PrimaryKey) > 0 {
		if options["bucket"] == "" {
			options["bucket"] = "1"
		}
		if options["data-file.thin-mode"] == "" {
			options["data-file.thin-mode"] = "true" // every engine since Paimon 1.0 reads keys from the value columns
		}
	}
	s, err := schema.New(fields, d.PartitionBy, d.PrimaryKey, options, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	if d.Comment != "" {
		s.Comment = &d.Comment
	}
	parsed, err := schema.ParseOptions(s)
	if err != nil {
		return nil, err
	}
	if err := parsed.CheckRead(s); err != nil {
		return nil, err
	}
	return s, parsed.CheckWrite(s)
}
