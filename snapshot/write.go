package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/merge"
	"github.com/tideline-db/tideline/paimon/datafile"
	"github.com/tideline-db/tideline/paimon/manifest"
	"github.com/tideline-db/tideline/paimon/path"
	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// FileSpec says whose rows WriteFiles writes and how.
type FileSpec struct {
	Schema       *schema.Schema
	Options      schema.Options
	PartitionKVs []path.KV // nil when unpartitioned
	Bucket       int
}

// writeBufferBytes is the buffer between the Parquet encoder and the store.
const writeBufferBytes = 1 << 20

// encodeBuffers serves the Parquet encoders of all files: they live as long as
// one row group.
var encodeBuffers datafile.Pool

// WriteFiles writes the rows of source to new level-0 data files of one
// partition-bucket and returns their metadata in key order. Files are split at
// target-file-size. For a primary-key table source is one sorted, key-unique run
// that keeps deletes; its blocks carry kinds and sequence numbers. On an error
// the files of this call are deleted as far as the store allows; nothing names
// them either way. Durability is the commit's affair (fs.FileIO.Sync).
func (t *Table) WriteFiles(ctx context.Context, spec FileSpec, source merge.Source) (files []manifest.FileMeta, err error) {
	w := newRolling(t, spec)
	defer func() {
		if err != nil {
			w.abandon(context.WithoutCancel(ctx))
			files = nil
		}
	}()
	for {
		block, err := source.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if block.Rows == 0 {
			continue
		}
		if err := w.write(ctx, block); err != nil {
			return nil, err
		}
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	return w.files, nil
}

// rolling writes a run of rows into files of about the target size.
//
//	physical columns of a primary-key file (FORMAT §7.1):
//	  _KEY_k1 … _KEY_km   (left out in thin mode)
//	  _SEQUENCE_NUMBER _VALUE_KIND
//	  all table columns
type rolling struct {
	table    *Table
	spec     FileSpec
	dir      string
	uuid     string
	fields   []schema.Field
	arrow    *arrow.Schema
	key      []int // positions of the trimmed key among the table columns
	keyTypes []schema.Type
	ordinary bool // append table: no system columns
	files    []manifest.FileMeta
	open     *openFile
	counter  int
}

type openFile struct {
	name    string
	out     fs.Writer
	buffer  *bufio.Writer
	writer  *datafile.Writer
	meta    manifest.FileMeta
	deletes int64
}

func newRolling(t *Table, spec FileSpec) *rolling {
	s := spec.Schema
	w := &rolling{
		table: t, spec: spec, uuid: t.Env.UUID(), key: s.TrimmedKey(), ordinary: !s.IsPrimaryKey(),
		dir: path.DataDir(t.Root, spec.Options, spec.PartitionKVs, spec.Bucket),
	}
	for _, k := range w.key {
		w.keyTypes = append(w.keyTypes, s.Fields[k].Type)
	}
	if !w.ordinary {
		if !spec.Options.ThinMode {
			for _, k := range w.key {
				w.fields = append(w.fields, schema.KeyField(s.Fields[k]))
			}
		}
		w.fields = append(w.fields, schema.SequenceField(), schema.ValueKindField())
	}
	w.fields = append(w.fields, s.Fields...)
	w.arrow = schema.ArrowSchema(w.fields)
	return w
}

// piecesPerFile is into how many pieces a block of at least the target size is
// cut: after each the size of the file is looked at.
const piecesPerFile = 8

func (w *rolling) write(ctx context.Context, block *merge.Block) error {
	record := w.record(block)
	defer record.Release()
	step := block.Rows
	if size, room := datafile.RawBytes(record), max(1, w.spec.Options.TargetFileSize/piecesPerFile); size > room {
		step = max(1, int(float64(block.Rows)*float64(room)/float64(size)))
	}
	for lo := 0; lo < block.Rows; lo += step {
		if err := w.writeRows(ctx, block, record, lo, min(lo+step, block.Rows)); err != nil {
			return err
		}
	}
	return nil
}

// writeRows writes the rows [lo, hi) of a block, whose columns record holds.
func (w *rolling) writeRows(ctx context.Context, block *merge.Block, record arrow.RecordBatch, lo, hi int) error {
	if w.open == nil {
		if err := w.begin(ctx); err != nil {
			return err
		}
	}
	f := w.open
	if !w.ordinary {
		w.note(f, block, lo, hi)
	}
	f.meta.Rows += int64(hi - lo)
	if lo > 0 || hi < block.Rows {
		record = record.NewSlice(int64(lo), int64(hi))
		defer record.Release()
	}
	if err := f.writer.Write(record); err != nil {
		return fmt.Errorf("data file %s: %w", f.name, err)
	}
	if f.writer.Size() >= w.spec.Options.TargetFileSize {
		return w.finish()
	}
	return nil
}

// note keeps what the manifest wants to know of the rows [lo, hi) of a block for a
// primary-key file.
func (w *rolling) note(f *openFile, block *merge.Block, lo, hi int) {
	if f.meta.Rows == 0 {
		f.meta.MinKey = w.keyRow(block, lo)
		f.meta.MinSeq = block.Seq.At(lo)
		f.meta.MaxSeq = f.meta.MinSeq
	}
	f.meta.MaxKey = w.keyRow(block, hi-1)
	for i := lo; i < hi; i++ {
		n := block.Seq.At(i)
		f.meta.MinSeq = min(f.meta.MinSeq, n)
		f.meta.MaxSeq = max(f.meta.MaxSeq, n)
	}
	if block.Kinds == nil {
		return
	}
	for _, kind := range block.Kinds[lo:hi] {
		if kind == merge.KindUpdateBefore || kind == merge.KindDelete {
			f.deletes++
		}
	}
}

func (w *rolling) keyRow(block *merge.Block, i int) []byte {
	columns := make([]arrow.Array, len(w.key))
	for c, k := range w.key {
		columns[c] = block.Columns[k]
	}
	return row.EncodeColumns(columns, w.keyTypes, i, nil)
}

// record lays a block out as the physical columns of the file.
func (w *rolling) record(block *merge.Block) arrow.RecordBatch {
	columns := make([]arrow.Array, 0, len(w.fields))
	if !w.ordinary {
		if !w.spec.Options.ThinMode {
			for _, k := range w.key {
				columns = append(columns, block.Columns[k])
			}
		}
		sequence, kinds := sequenceColumn(block), kindColumn(block)
		defer sequence.Release()
		defer kinds.Release()
		columns = append(columns, sequence, kinds)
	}
	columns = append(columns, block.Columns...)
	return array.NewRecordBatch(w.arrow, columns, int64(block.Rows))
}

func sequenceColumn(block *merge.Block) arrow.Array {
	numbers := block.Seq.Explicit
	if numbers == nil {
		numbers = make([]int64, block.Rows)
		for i := range numbers {
			numbers[i] = block.Seq.At(i)
		}
	}
	return fixed(arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(numbers), block.Rows)
}

func kindColumn(block *merge.Block) arrow.Array {
	kinds := block.Kinds
	if kinds == nil {
		kinds = make([]int8, block.Rows)
	}
	return fixed(arrow.PrimitiveTypes.Int8, arrow.Int8Traits.CastToBytes(kinds), block.Rows)
}

// fixed views values on the Go heap as a column without nulls.
func fixed(dt arrow.DataType, values []byte, rows int) arrow.Array {
	data := array.NewData(dt, rows, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

func (w *rolling) begin(ctx context.Context) error {
	o := w.spec.Options
	base := path.NewDataFile(o, w.uuid, w.counter)
	w.counter++
	f := &openFile{name: fs.Join(w.dir, base)}
	f.meta = manifest.FileMeta{Name: base, SchemaID: w.spec.Schema.ID}
	var err error
	if f.out, err = w.table.IO.Create(ctx, f.name); err != nil {
		return fmt.Errorf("data file %s was not created: %w", f.name, err)
	}
	w.open = f
	f.buffer = bufio.NewWriterSize(f.out, writeBufferBytes)
	f.writer, err = datafile.NewWriter(f.buffer, w.fields, datafile.WriterOptions{
		Compression: o.Compression, ZstdLevel: o.ZstdLevel, RowGroupBytes: o.BlockSize, Alloc: &encodeBuffers,
	})
	return err
}

// finish completes the open file, if any, and notes its metadata.
func (w *rolling) finish() error {
	f := w.open
	if f == nil {
		return nil
	}
	result, err := f.writer.Close()
	if err == nil {
		err = f.buffer.Flush()
	}
	if err == nil {
		err = f.out.Commit()
	}
	if err != nil {
		return fmt.Errorf("data file %s was not written: %w", f.name, err)
	}
	w.open = nil
	f.meta.Size = result.Bytes
	w.describe(f, result)
	w.files = append(w.files, f.meta)
	return nil
}

// describe fills the metadata of a finished level-0 file (FORMAT §4.5).
func (w *rolling) describe(f *openFile, result datafile.Result) {
	m := &f.meta
	created, source := w.table.Env.LocalMillis(), 0
	m.CreationTime, m.Source, m.DeleteRows = &created, &source, &f.deletes
	m.KeyArity = len(w.keyTypes)
	if w.ordinary {
		m.MinKey, m.MaxKey = row.EmptyRow, row.EmptyRow
		m.MinSeq, m.MaxSeq = 0, m.Rows-1 // positions in the file; the commit rebases them
		m.KeyArity = 0
	}
	columns := result.Columns[len(result.Columns)-len(w.spec.Schema.Fields):]
	m.ValueStats, m.ValueStatsCols, m.HasStatsCols = valueStats(w.spec, columns)
	keys := make([]datafile.ColumnStats, len(w.key))
	for i, k := range w.key {
		keys[i] = datafile.Truncate(columns[k], schema.KeyStatsMode)
	}
	m.KeyStats = encodeStats(w.keyTypes, keys)
}

// valueStats reduces the statistics of the table columns to what the table's
// modes keep. Columns of mode none are left out when the store is dense.
func valueStats(spec FileSpec, columns []datafile.ColumnStats) (manifest.Stats, []string, bool) {
	var types []schema.Type
	var kept []datafile.ColumnStats
	var names []string
	modes := spec.Options.StatsModes(spec.Schema.Fields)
	for i, f := range spec.Schema.Fields {
		mode := modes[i]
		if mode.Kind == schema.StatsNone && spec.Options.StatsDense {
			continue
		}
		types = append(types, f.Type)
		names = append(names, f.Name)
		kept = append(kept, datafile.Truncate(columns[i], mode))
	}
	left := len(names) < len(spec.Schema.Fields)
	if !left {
		names = nil
	}
	return encodeStats(types, kept), names, left
}

func encodeStats(types []schema.Type, columns []datafile.ColumnStats) manifest.Stats {
	low, high := make([]row.Value, len(types)), make([]row.Value, len(types))
	stats := manifest.Stats{Arity: len(types), NullCounts: make([]int64, len(types))}
	scalar := make([]schema.Type, len(types))
	for i, c := range columns {
		scalar[i] = types[i]
		scalar[i].Nullable = true
		if types[i].Kind.Nested() { // complex types are null in statistics; any scalar type holds a null
			scalar[i] = schema.Type{Kind: schema.BigInt, Nullable: true}
		}
		stats.NullCounts[i] = c.Nulls
		if c.HasMinMax {
			low[i], high[i] = c.Min, c.Max
		}
	}
	var err error
	if stats.Min, err = row.Encode(scalar, low); err == nil {
		stats.Max, err = row.Encode(scalar, high)
	}
	if err != nil { // no statistics are always legal, wrong ones never
		return manifest.Stats{Min: row.EmptyRow, Max: row.EmptyRow}
	}
	return stats
}

// abandon removes what the failed call left behind, as far as the store lets it.
func (w *rolling) abandon(ctx context.Context) {
	if w.open != nil && w.open.out != nil {
		_ = w.open.out.Abort() // a temporary file is an orphan at worst
	}
	for _, f := range w.files {
		_ = w.table.IO.Delete(ctx, fs.Join(w.dir, f.Name))
	}
}
