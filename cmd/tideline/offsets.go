package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/internal/jsonl"
)

type offsetsFlags struct {
	listFlags
	snapshot int64
}

func newOffsets(s streams) *cobra.Command {
	f := &offsetsFlags{}
	c := &cobra.Command{
		Use:   "offsets TABLE",
		Short: "Print how far the input was committed",
		Long: `Prints the committed end of every bucket: rows of the input with a lower offset are
in the snapshot. The position is what the writing program stored with the snapshot,
in hexadecimal digits. In the jsonl form it stands, with the snapshot, in a last
line of its own.`,
		Example: `  tideline offsets shop.db/orders
  tideline offsets shop.db/orders --snapshot 12 --format jsonl`,
		Args: tableArgs(0),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), args[0], s) },
	}
	f.register(c)
	c.Flags().Int64Var(&f.snapshot, "snapshot", 0, "the snapshot; default the newest")
	return c
}

func (f *offsetsFlags) run(ctx context.Context, path string, s streams) error {
	if f.snapshot < 0 {
		return usage("--snapshot is not negative")
	}
	t, err := f.open(ctx, path)
	if err != nil {
		return err
	}
	defer t.Close(context.WithoutCancel(ctx))
	p, err := t.Progress(ctx, f.snapshot)
	if err != nil {
		return err
	}
	if f.format == "jsonl" {
		_, err := s.out.Write(progressJSON(t.Schema().PartitionKeys, p))
		return err
	}
	g := listing(s.out, "partition", "#bucket", "#offset")
	for _, o := range p.Offsets {
		if err := g.add(printable(partitionText(t.Schema().PartitionKeys, o.Partition)), strconv.Itoa(o.Bucket), strconv.FormatInt(o.Offset, 10)); err != nil {
			return err
		}
	}
	if err := g.close(); err != nil {
		return err
	}
	if p.Snapshot == 0 {
		_, err = fmt.Fprintln(s.out, "\nno snapshot yet")
		return err
	}
	_, err = fmt.Fprintf(s.out, "\nsnapshot %d, %s\n", p.Snapshot, positionText(p))
	return err
}

func positionText(p tideline.Progress) string {
	switch {
	case !p.Found:
		return "no progress is known"
	case p.Position == nil:
		return "no position"
	}
	return "position " + hex.EncodeToString(p.Position)
}

// partitionText is key=value/key=value in the order of the partition keys.
func partitionText(keys []string, texts map[string]string) string {
	parts := make([]string, 0, len(keys))
	for _, k := range keys {
		if v, ok := texts[k]; ok {
			parts = append(parts, k+"="+v)
		}
	}
	return strings.Join(parts, "/")
}

func progressJSON(keys []string, p tideline.Progress) []byte {
	var b []byte
	for _, o := range p.Offsets {
		b = fmt.Appendf(b, `{"snapshot":"snapshot-%d","partition":{`, p.Snapshot)
		first := true
		for _, k := range keys {
			v, ok := o.Partition[k]
			if !ok {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = jsonl.AppendString(append(jsonl.AppendString(b, k), ':'), v)
		}
		b = fmt.Appendf(b, `},"bucket":%d,"offset":%d}`+"\n", o.Bucket, o.Offset)
	}
	position := []byte("null")
	if p.Position != nil {
		position = jsonl.AppendString(nil, hex.EncodeToString(p.Position))
	}
	return fmt.Appendf(b, `{"snapshot":"snapshot-%d","found":%t,"position":%s}`+"\n", p.Snapshot, p.Found, position)
}
