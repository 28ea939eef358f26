package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/snapshot"
)

type snapshotsFlags struct {
	listFlags
	count    bool
	optional bool // count where the rows can be read
}

func newSnapshots(s streams) *cobra.Command {
	f := &snapshotsFlags{}
	c := &cobra.Command{
		Use:   "snapshots TABLE",
		Short: "List the snapshots of a table",
		Long: `Lists the retained snapshots, oldest first. "physical" (physicalRows in jsonl)
counts every row in the live files, older versions of a key and deletes too. "rows"
(visibleRows) are those that a read gives: every snapshot is read for them, which
--count asks for in a table and --count=false avoids in jsonl.`,
		Example: `  tideline snapshots shop.db/orders
  tideline snapshots shop.db/orders --format jsonl --count=false`,
		Args: tableArgs(0),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("count") {
				f.count = f.format == "jsonl"
				f.optional = true
			}
			return f.run(c.Context(), args[0], s)
		},
	}
	f.register(c)
	c.Flags().BoolVar(&f.count, "count", false, "read every snapshot and count its rows; default for jsonl")
	return c
}

// summary is one snapshot as it is listed.
type summary struct {
	*manifest.Snapshot
	files, partitions int
	levels            string
	visible           int64  // -1: not counted
	hidden            int64  // rows that deletion vectors delete
	indexes           []byte // JSON: number of index files by type, or null
}

func (f *snapshotsFlags) run(ctx context.Context, path string, s streams) error {
	t, err := f.open(ctx, path)
	if err != nil {
		return err
	}
	defer t.Close(context.WithoutCancel(ctx))
	ids, err := t.Committed().Snapshots(ctx)
	if err != nil {
		return err
	}
	g := listing(s.out, "#snapshot", "time", "kind", "user", "#identifier", "#schema", "#rows", "#physical", "#delta", "#files", "levels", "#partitions")
	for _, id := range ids {
		row, err := f.summarize(ctx, t, id)
		if err != nil {
			return err
		}
		if f.format == "jsonl" {
			if _, err := s.out.Write(row.json()); err != nil {
				return err
			}
			continue
		}
		visible := ""
		if row.visible >= 0 {
			visible = strconv.FormatInt(row.visible, 10)
		}
		when := time.UnixMilli(row.TimeMillis).UTC().Format("2006-01-02 15:04:05.000Z")
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		if err := g.add(number(id), when, row.CommitKind, printable(row.CommitUser), number(row.CommitIdentifier), number(row.SchemaID),
			visible, number(row.TotalRecordCount), number(row.DeltaRecordCount), strconv.Itoa(row.files), row.levels, strconv.Itoa(row.partitions)); err != nil {
			return err
		}
	}
	if f.format == "jsonl" {
		return nil
	}
	return g.close()
}

func (f *snapshotsFlags) summarize(ctx context.Context, t *tideline.Table, id int64) (summary, error) {
	row := summary{visible: -1}
	var err error
	if row.Snapshot, err = t.Committed().Snapshot(ctx, id); err != nil {
		return row, err
	}
	entries, err := t.Committed().Indexes(ctx, row.Snapshot)
	if err != nil {
		return row, err
	}
	var byType map[string]int
	for _, e := range entries {
		if byType == nil {
			byType = map[string]int{}
		}
		byType[e.Type]++
		for _, v := range e.Vectors {
			if v.Cardinality != nil {
				row.hidden += *v.Cardinality
			}
		}
	}
	if row.indexes, err = json.Marshal(byType); err != nil {
		return row, err
	}
	buckets, err := t.Committed().Files(ctx, row.Snapshot, snapshot.Filter{})
	if err != nil {
		return row, err
	}
	partitions := map[string]bool{}
	var perLevel []int
	for _, b := range buckets {
		partitions[string(b.Partition)] = true
		for _, file := range b.Files {
			row.files++
			for len(perLevel) <= file.Level {
				perLevel = append(perLevel, 0)
			}
			perLevel[file.Level]++
		}
	}
	row.partitions = len(partitions)
	var levels []string
	for level, n := range perLevel {
		if n > 0 {
			levels = append(levels, fmt.Sprintf("L%d:%d", level, n))
		}
	}
	row.levels = strings.Join(levels, " ")
	if f.count {
		row.visible, err = countRows(ctx, t.Scan().AtSnapshot(id))
		if f.optional && errors.Is(err, tideline.ErrUnsupported) {
			row.visible, err = -1, nil
		}
	}
	return row, err
}

func countRows(ctx context.Context, scan tideline.Scan) (int64, error) {
	r, err := scan.Select().Read(ctx)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	n := int64(0)
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	return n, r.Err()
}

func (s summary) json() []byte {
	b := fmt.Appendf(nil, `{"name":"snapshot-%d","schemaId":%d,"commitKind":`, s.ID, s.SchemaID)
	b = jsonl.AppendString(b, s.CommitKind)
	visible := "null"
	if s.visible >= 0 {
		visible = strconv.FormatInt(s.visible, 10)
	}
	b = fmt.Appendf(b, `,"visibleRows":%s`, visible)
	b = fmt.Appendf(b, `,"physicalRows":%d,"liveFiles":%d,"filesPerLevel":`, s.TotalRecordCount, s.files)
	b = jsonl.AppendString(b, s.levels)
	b = fmt.Appendf(b, `,"partitions":%d,"rowsHiddenByDeletionVectors":%d,"indexManifestEntries":%s`, s.partitions, s.hidden, s.indexes)
	b = fmt.Appendf(b, `,"timeMillis":%d,"commitUser":`, s.TimeMillis)
	b = jsonl.AppendString(b, s.CommitUser)
	return fmt.Appendf(b, `,"commitIdentifier":%d,"deltaRows":%d}`+"\n", s.CommitIdentifier, s.DeltaRecordCount)
}
