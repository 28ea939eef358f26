package tideline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/bucket"
	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/datafile"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// fileBatchRows is the batch size of one data file under a merge: large, because
// a decoder pays per batch; the merge cuts its output to the reader's size.
const fileBatchRows = 32 << 10

// decodeBuffers serves the decoders of files that are merged: the merge copies
// what it returns, so their batches live only as long as a window of it.
var decodeBuffers datafile.Pool

// decodeAllocator is where the batches of a split's files live. An allocator
// that the caller chose is never replaced, and rows that may be handed out as
// they were decoded come from it as well.
func (p *Plan) decodeAllocator(split *Split) memory.Allocator {
	chosen := p.scan.table.options.Allocator
	merged := len(split.Files) > 1 || split.memory != nil
	if chosen == memory.DefaultAllocator && merged && p.schema.IsPrimaryKey() {
		return &decodeBuffers
	}
	return chosen
}

// check refuses a split that cannot be read right, before anything is read.
func (p *Plan) check(ctx context.Context, split *Split) error {
	for _, f := range split.Files {
		if format := path.Format(f.Name); format != "parquet" {
			return errs.Unsupported("data file %s: format %q", f.Name, format)
		}
		if _, err := p.scan.table.committed.DataPath(split.files, f); err != nil {
			return err
		}
		s, err := p.scan.table.committed.Schema(ctx, f.SchemaID)
		if err != nil {
			return err
		}
		if _, err := p.view.evolve(p.schema, s); err != nil {
			return err
		}
	}
	return nil
}

// open builds the merge of one split.
//
//	append table    files in order of sequence, then memory in write order
//	primary key     sections by key range; in each section one source a sorted
//	                run, files before memory, merged unless it is alone
func (p *Plan) open(split *Split) merge.Source {
	batch := p.scan.batchRows
	if batch == 0 {
		batch = p.scan.table.options.ReadBatchRows
	}
	if !p.schema.IsPrimaryKey() {
		return &slicer{source: merge.NewConcat(p.all(split)), rows: batch}
	}
	items := p.items(split)
	types := p.view.keyTypes()
	sections := merge.Sections(len(items),
		func(i, j int) int { return row.Compare(types, items[i].low, items[j].low) },
		func(i, j int) int { return row.Compare(types, items[i].low, items[j].high) },
		func(i, j int) int { return row.Compare(types, items[i].high, items[j].high) })
	options := merge.Options{BatchRows: batch, Alloc: p.scan.table.options.Allocator}
	var parts []merge.Source
	for _, section := range sections {
		var runs []merge.Source
		for _, run := range section {
			var sources []merge.Source
			for _, i := range run {
				sources = append(sources, items[i].source)
			}
			if len(sources) == 1 {
				runs = append(runs, sources[0])
			} else {
				runs = append(runs, merge.NewConcat(sources))
			}
		}
		parts = append(parts, merge.NewUnion(p.view.layout, runs, options))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return merge.NewConcat(parts)
}

// all are the sources of an append split, one after the other.
func (p *Plan) all(split *Split) []merge.Source {
	var sources []merge.Source
	for _, f := range split.Files {
		sources = append(sources, p.file(split, f))
	}
	if split.memory == nil {
		return sources
	}
	for _, run := range split.memory.Runs {
		if p.mayMatch(run) {
			sources = append(sources, merge.NewBlockSource(p.view.block(p.schema, run.Block(nil))))
		}
	}
	return sources
}

// item is one file or memory run with its key range.
type item struct {
	low, high []row.Value
	source    merge.Source
}

// items lists files, oldest first, then memory runs, oldest first: of two rows
// with equal sequence numbers the later item wins.
func (p *Plan) items(split *Split) []item {
	types := p.view.keyTypes()
	var items []item
	for _, f := range split.Files {
		low, err := row.Decode(types, f.MinKey)
		high, err2 := row.Decode(types, f.MaxKey)
		if err = errors.Join(err, err2); err != nil {
			err = errs.Corrupt(f.Name, -1, "key range in the manifest: %v", err)
			return []item{{source: failing{err}}}
		}
		items = append(items, item{low, high, p.file(split, f)})
	}
	if split.memory == nil {
		return items
	}
	for _, run := range split.memory.Runs {
		if p.view.keyOnly != nil && !p.mayMatchKey(run) {
			continue
		}
		low, high := run.KeyRange()
		items = append(items, item{low, high, merge.NewBlockSource(p.view.block(p.schema, run.Block(nil)))})
	}
	return items
}

// mayMatch prunes a memory run of an append table by its statistics.
func (p *Plan) mayMatch(run *bucket.Run) bool {
	return p.view.where == nil || p.view.where.MayMatch(p.stats(run))
}

// mayMatchKey prunes a memory run of a primary-key table by key columns only: a
// value predicate could drop a newer version and uncover an older one.
func (p *Plan) mayMatchKey(run *bucket.Run) bool { return p.view.keyOnly.MayMatch(p.stats(run)) }

// stats answers a predicate from the statistics of a memory run.
func (p *Plan) stats(run *bucket.Run) func(string) (low, high row.Value, nulls, rows int64, known bool) {
	return func(name string) (row.Value, row.Value, int64, int64, bool) {
		at := p.schema.FieldIndex(name)
		if at < 0 {
			return nil, nil, 0, 0, false
		}
		s := run.Stat(at)
		return s.Min, s.Max, s.Nulls, int64(run.Rows), s.Known
	}
}

// file is the source of one committed file, opened when it is first read.
func (p *Plan) file(split *Split, f manifest.FileMeta) merge.Source {
	return &fileSource{plan: p, split: split, meta: f}
}

// fileSource opens its file late, so that a split of many files holds few open,
// and closes it as soon as it is read.
type fileSource struct {
	plan   *Plan
	split  *Split
	meta   manifest.FileMeta
	inner  merge.Source
	file   fs.File
	closed bool
}

func (s *fileSource) Next(ctx context.Context) (*merge.Block, error) {
	if s.closed {
		return nil, io.EOF
	}
	if s.inner == nil {
		if err := s.open(ctx); err != nil {
			return nil, fmt.Errorf("data file %s: %w", s.meta.Name, err)
		}
	}
	return s.inner.Next(ctx)
}

func (s *fileSource) open(ctx context.Context) error {
	p := s.plan
	t := p.scan.table
	name, err := t.committed.DataPath(s.split.files, s.meta)
	if err != nil {
		return err
	}
	old, err := t.committed.Schema(ctx, s.meta.SchemaID)
	if err != nil {
		return err
	}
	mapping, err := p.view.evolve(p.schema, old)
	if err != nil {
		return err
	}
	if s.file, err = t.options.IO.Open(ctx, name); err != nil {
		return err
	}
	reader, err := datafile.Open(ctx, s.file, datafile.ReaderOptions{Alloc: p.decodeAllocator(s.split)})
	if err != nil {
		return err
	}
	if reader.Rows() != s.meta.Rows {
		return errs.Corrupt(name, -1, "the file has %d rows, its manifest says %d", reader.Rows(), s.meta.Rows)
	}
	batches, err := reader.ReadAs(ctx, mapping, datafile.ReadOptions{BatchRows: fileBatchRows})
	if err != nil {
		return err
	}
	s.inner = merge.NewFileSource(p.view.layout, &filled{Batches: batches, plan: p, split: s.split}, name)
	return nil
}

func (s *fileSource) Close() error {
	s.closed = true
	var err error
	if s.inner != nil {
		err = s.inner.Close()
		s.inner = nil
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
		s.file = nil
	}
	return err
}

// evolve maps the layout and the system columns to the schema that a file was
// written with. Partition columns come from the manifest, not from the file.
func (v *projection) evolve(s *schema.Schema, file *schema.Schema) (*datafile.Mapping, error) {
	var want []schema.Field
	for _, f := range v.layout.Fields {
		if !slices.Contains(s.PartitionKeys, f.Name) {
			want = append(want, f)
		}
	}
	if s.IsPrimaryKey() {
		want = append(want, schema.SequenceField(), schema.ValueKindField())
	}
	return datafile.Evolve(file, want)
}

// filled adds the partition columns, constant for a split, to what a file holds.
type filled struct {
	*datafile.Batches
	plan  *Plan
	split *Split
}

func (f *filled) Close() error {
	f.Batches.Close()
	return nil
}

func (f *filled) Next(ctx context.Context) (arrow.RecordBatch, error) {
	batch, err := f.Batches.Next(ctx)
	if err != nil || len(f.plan.schema.PartitionKeys) == 0 {
		return batch, err
	}
	defer batch.Release()
	s := f.plan.schema
	fields := append([]arrow.Field(nil), batch.Schema().Fields()...)
	columns := append([]arrow.Array(nil), batch.Columns()...)
	for i, key := range s.PartitionKeys {
		at := f.plan.view.find(key)
		if at < 0 { // neither asked for nor needed
			continue
		}
		field := f.plan.view.layout.Fields[at]
		column, err := row.Constant(field.Type, f.split.files.PartitionValues[i], int(batch.NumRows()), f.plan.scan.table.options.Allocator)
		if err != nil {
			return nil, err
		}
		defer column.Release()
		fields = append(fields, schema.ArrowField(field))
		columns = append(columns, column)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, batch.NumRows()), nil
}

// failing is a source that has only an error.
type failing struct{ err error }

func (f failing) Next(context.Context) (*merge.Block, error) { return nil, f.err }
func (f failing) Close() error                               { return nil }
