package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/schema"
	"github.com/tideline-db/tideline/snapshot"
)

type filesFlags struct {
	listFlags
	snapshot int64
}

func newFiles(s streams) *cobra.Command {
	f := &filesFlags{}
	c := &cobra.Command{
		Use:   "files TABLE",
		Short: "List the data files of a snapshot",
		Example: `  tideline files shop.db/orders
  tideline files shop.db/orders --snapshot 12 --format jsonl`,
		Args: tableArgs(0),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), args[0], s) },
	}
	f.register(c)
	c.Flags().Int64Var(&f.snapshot, "snapshot", 0, "the snapshot; default the newest")
	return c
}

func (f *filesFlags) run(ctx context.Context, path string, s streams) error {
	t, err := f.open(ctx, path)
	if err != nil {
		return err
	}
	defer t.Close(context.WithoutCancel(ctx))
	snap, err := snapshotOf(ctx, t, f.snapshot)
	if err != nil {
		return err
	}
	g := listing(s.out, "partition", "#bucket", "#level", "file", "#rows", "#bytes", "#min sequence", "#max sequence", "#schema")
	if snap == nil {
		if f.format == "jsonl" {
			return nil
		}
		return g.close()
	}
	table, err := t.Committed().Schema(ctx, snap.SchemaID)
	if err != nil {
		return err
	}
	buckets, err := t.Committed().Files(ctx, snap, snapshot.Filter{})
	if err != nil {
		return err
	}
	if f.format == "jsonl" {
		for _, b := range buckets {
			for _, file := range b.Files {
				if _, err := s.out.Write(fileJSON(snap, table, b, file)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, b := range buckets {
		for _, file := range b.Files {
			if err := g.add(printable(b.PartitionText), strconv.Itoa(b.Bucket), strconv.Itoa(file.Level), file.Name, number(file.Rows),
				number(file.Size), number(file.MinSeq), number(file.MaxSeq), number(file.SchemaID)); err != nil {
				return err
			}
		}
	}
	return g.close()
}

// snapshotOf is snapshot id, for 0 the newest; nil when there is none.
func snapshotOf(ctx context.Context, t *tideline.Table, id int64) (*manifest.Snapshot, error) {
	switch {
	case id < 0:
		return nil, usage("--snapshot is not negative")
	case id > 0:
		return t.Committed().Snapshot(ctx, id)
	}
	return t.Snapshot(ctx)
}

// fileJSON is one data file as an object.
func fileJSON(snap *manifest.Snapshot, s *schema.Schema, b snapshot.BucketFiles, f manifest.FileMeta) []byte {
	key := func(dst []byte, name string) []byte { return append(jsonl.AppendString(append(dst, ','), name), ':') }
	number := func(dst []byte, name string, n int64) []byte { return strconv.AppendInt(key(dst, name), n, 10) }
	optional := func(dst []byte, name string, n *int64) []byte {
		if n == nil {
			return append(key(dst, name), "null"...)
		}
		return number(dst, name, *n)
	}
	names := func(dst []byte, name string, list []string, known bool) []byte {
		dst = key(dst, name)
		if !known {
			return append(dst, "null"...)
		}
		return appendNames(dst, list)
	}
	dst := append([]byte(`{"snapshot":"snapshot-`), strconv.FormatInt(snap.ID, 10)...)
	dst = append(dst, `","partition":{`...)
	for i, at := range s.PartitionIndexes() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonl.AppendString(dst, s.Fields[at].Name), ':')
		dst = jsonl.AppendValue(dst, s.Fields[at].Type, b.PartitionValues[i])
	}
	dst = append(dst, '}')
	dst = number(dst, "bucket", int64(b.Bucket))
	dst = number(dst, "totalBuckets", int64(b.TotalBuckets))
	dst = number(dst, "level", int64(f.Level))
	dst = jsonl.AppendString(key(dst, "file"), f.Name)
	dst = strconv.AppendBool(key(dst, "external"), f.ExternalPath != nil)
	dst = number(dst, "schemaId", f.SchemaID)
	dst = number(dst, "rowCount", f.Rows)
	dst = number(dst, "minSequence", f.MinSeq)
	dst = number(dst, "maxSequence", f.MaxSeq)
	dst = optional(dst, "deleteRowCount", f.DeleteRows)
	dst = optional(dst, "firstRowId", f.FirstRowID)
	dst = names(dst, "valueStatsCols", f.ValueStatsCols, f.HasStatsCols)
	dst = names(dst, "extraFiles", f.ExtraFiles, true)
	dst = number(dst, "bytes", f.Size)
	return append(dst, '}', '\n')
}

func appendNames(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, name := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonl.AppendString(dst, name)
	}
	return append(dst, ']')
}
