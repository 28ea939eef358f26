package datafile

import (
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

const (
	// createdBy has the form "name version x.y.z (build n)": parquet-mr ignores
	// the statistics of binary columns whose writer it cannot parse.
	createdBy = "tideline version 0.1.0 (build 0)"

	// kindColumn is nearly constant in every file, so a dictionary always pays.
	kindColumn = "_VALUE_KIND"

	defaultPageBytes     = 1 << 20
	defaultRowGroupBytes = 128 << 20
	sliceRows            = 1 << 16
)

// WriterOptions shapes a data file; the zero value is Paimon's default layout
// except that dictionaries are off (FORMAT §7.4).
type WriterOptions struct {
	// Compression is the table's file.compression: zstd (default), snappy, lz4,
	// gzip, none.
	Compression string
	// ZstdLevel is file.compression.zstd-level, 1 when zero.
	ZstdLevel int
	// RowGroupBytes starts a new row group when a group's Arrow data reaches
	// this size (file.block-size, 128 MiB when zero).
	RowGroupBytes int64
	// PageBytes is the uncompressed page size, 1 MiB when zero.
	PageBytes int64
	// Dictionary names the columns that are dictionary encoded beside
	// _VALUE_KIND: top-level columns without nesting.
	Dictionary []string
	// Alloc serves the encoder's buffers; nil is Arrow's default allocator.
	Alloc memory.Allocator
}

// Result describes a finished file.
type Result struct {
	Rows    int64
	Bytes   int64
	Columns []ColumnStats // one for each physical column, in file order
}

// Writer encodes record batches into one Parquet data file. It is not safe for
// concurrent use and it does not close the destination.
type Writer struct {
	fields   []schema.Field
	leaves   []int // leaf columns below each field
	opts     WriterOptions
	root     *pqschema.GroupNode
	props    []parquet.WriterProperty
	sink     *countingWriter
	pq       *file.Writer // nil until the first rows have shown what compresses
	group    file.BufferedRowGroupWriter
	groupRaw int64 // Arrow bytes in the open row group
	rows     int64
	stats    []statsCollector
	leaf     leafWriter
	checked  *arrow.Schema // the schema last found to fit
	err      error         // first failure; the file is unusable after it
	closed   bool
}

// NewWriter starts a file of the given physical columns, in file order; system
// columns are ordinary fields with their reserved ids. Bytes reach dst as row
// groups fill up.
func NewWriter(dst io.Writer, fields []schema.Field, o WriterOptions) (*Writer, error) {
	root, err := fileSchema(fields)
	if err != nil {
		return nil, err
	}
	props, err := o.properties()
	if err != nil {
		return nil, err
	}
	w := &Writer{fields: fields, opts: o, root: root, props: props, sink: &countingWriter{w: dst}}
	if w.opts.RowGroupBytes <= 0 {
		w.opts.RowGroupBytes = defaultRowGroupBytes
	}
	for _, f := range fields {
		w.leaves = append(w.leaves, leafCount(f.Type))
		w.stats = append(w.stats, newStatsCollector(f.Type))
	}
	return w, nil
}

// start begins the file once its first rows, if any, are known.
func (w *Writer) start(first arrow.RecordBatch) (err error) {
	props := w.props
	if first != nil {
		for _, name := range w.opts.incompressible(w.fields, first) {
			props = append(props, parquet.WithCompressionFor(name, compress.Codecs.Uncompressed))
		}
	}
	w.pq, err = file.NewParquetWriterWithError(w.sink, w.root, file.WithWriterProps(parquet.NewWriterProperties(props...)))
	return err
}

func (o WriterOptions) properties() ([]parquet.WriterProperty, error) {
	codec, level := compress.Codecs.Zstd, o.ZstdLevel
	switch strings.ToLower(o.Compression) {
	case "", "zstd":
		if level == 0 {
			level = 1
		}
	case "snappy":
		codec = compress.Codecs.Snappy
	case "gzip":
		codec = compress.Codecs.Gzip
	case "lz4", "lz4_raw":
		codec = compress.Codecs.Lz4Raw
	case "none", "uncompressed":
		codec = compress.Codecs.Uncompressed
	default:
		return nil, errs.Unsupported("file.compression %q for Parquet", o.Compression)
	}
	page := o.PageBytes
	if page <= 0 {
		page = defaultPageBytes
	}
	props := []parquet.WriterProperty{
		parquet.WithCreatedBy(createdBy),
		parquet.WithRootName(rootName),
		parquet.WithVersion(parquet.V2_6), // INT(8), INT(16) and TIMESTAMP annotations
		parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithDataPageSize(page),
		parquet.WithCompression(codec),
		parquet.WithDictionaryDefault(false),
		parquet.WithEncoding(parquet.Encodings.Plain),
		parquet.WithStats(true),
		parquet.WithDictionaryFor(kindColumn, true),
		parquet.WithBatchSize(1 << 14),
	}
	if codec == compress.Codecs.Zstd {
		props = append(props, parquet.WithCompressionLevel(level))
	}
	if o.Alloc != nil {
		props = append(props, parquet.WithAllocator(o.Alloc))
	}
	for _, name := range o.Dictionary {
		props = append(props, parquet.WithDictionaryPath(parquet.ColumnPath{name}, true))
	}
	return props, nil
}

// Write appends a batch whose columns are the writer's fields in order, in the
// Arrow layout of schema.ArrowType. The batch is only read. A batch that does
// not fit is refused with ErrInvalid before anything is written; any other
// error makes the writer unusable.
func (w *Writer) Write(b arrow.RecordBatch) error {
	if w.closed {
		return errs.Wrap(errs.ErrClosed, "write to a finished data file")
	}
	if w.err != nil {
		return w.err
	}
	if err := w.check(b); err != nil {
		return err
	}
	for from := int64(0); from < b.NumRows(); from += sliceRows {
		to := min(from+sliceRows, b.NumRows())
		piece := b
		if from > 0 || to < b.NumRows() {
			piece = b.NewSlice(from, to)
		}
		err := guard("encode a batch", func() error { return w.writePiece(piece) })
		if piece != b {
			piece.Release()
		}
		if err != nil {
			w.err = err
			return err
		}
	}
	return nil
}

// check refuses batches of another shape, and nulls in required columns.
func (w *Writer) check(b arrow.RecordBatch) error {
	if int(b.NumCols()) != len(w.fields) {
		return errs.Invalid("a batch of %d columns for a file of %d", b.NumCols(), len(w.fields))
	}
	for i, f := range w.fields {
		if b.Schema() != w.checked {
			if err := checkLayout(f.Name, f.Type, b.Column(i).DataType()); err != nil {
				return err
			}
		}
		if !f.Type.Nullable && b.Column(i).NullN() > 0 {
			return errs.Invalid("column %s is NOT NULL and the batch holds %d nulls", f.Name, b.Column(i).NullN())
		}
	}
	w.checked = b.Schema()
	return nil
}

func (w *Writer) writePiece(b arrow.RecordBatch) error {
	if w.pq == nil {
		if err := w.start(b); err != nil {
			return err
		}
	}
	if w.group == nil {
		g, err := w.pq.AppendBufferedRowGroupChecked()
		if err != nil {
			return err
		}
		w.group, w.groupRaw = g, 0
	}
	leaf := 0
	for i, f := range w.fields {
		arr := b.Column(i)
		if err := w.writeColumn(f, arr, leaf); err != nil {
			return err
		}
		w.stats[i].add(arr)
		w.groupRaw += rawBytes(arr)
		leaf += w.leaves[i]
	}
	w.rows += b.NumRows()
	if w.groupRaw >= w.opts.RowGroupBytes {
		return w.endGroup()
	}
	return nil
}

func (w *Writer) writeColumn(f schema.Field, arr arrow.Array, leaf int) error {
	next := func() (file.ColumnChunkWriter, error) {
		cw, err := w.group.Column(leaf)
		leaf++
		return cw, err
	}
	if !f.Type.Kind.Nested() {
		cw, err := next()
		if err != nil {
			return err
		}
		return w.leaf.flat(cw, f.Name, f.Type.Nullable, arr)
	}
	return shredColumn(f.Name, f.Type, arr, func(values arrow.Array, lv levels) error {
		cw, err := next()
		if err != nil {
			return err
		}
		return w.leaf.nested(cw, values, lv)
	})
}

func (w *Writer) endGroup() error {
	err := w.group.Close()
	w.group = nil
	return err
}

// Size estimates the bytes the file would have if it were closed now: what is
// encoded, and what waits in the open row group at the compression seen so far.
func (w *Writer) Size() int64 {
	if w.group == nil {
		return w.sink.n
	}
	encoded := w.group.TotalBytesWritten()
	// Values that fill no page yet are held raw by the encoders, at most one
	// page a column.
	pending := min(w.groupRaw, int64(w.totalLeaves())*defaultPageBytes)
	return w.sink.n + min(encoded+pending, max(w.groupRaw, encoded))
}

func (w *Writer) totalLeaves() int {
	n := 0
	for _, l := range w.leaves {
		n += l
	}
	return n
}

// Close writes the footer and returns what was written. A file without rows is
// legal. Close is called once; the destination is left open.
func (w *Writer) Close() (Result, error) {
	if w.closed {
		return Result{}, errs.Wrap(errs.ErrClosed, "close a finished data file")
	}
	w.closed = true
	err := guard("finish the file", func() error {
		if w.pq == nil && w.err == nil { // no rows
			if err := w.start(nil); err != nil {
				return err
			}
		}
		if w.err == nil && w.group != nil {
			if err := w.endGroup(); err != nil {
				return err
			}
		}
		if w.pq == nil {
			return nil
		}
		return w.pq.Close()
	})
	if w.err != nil {
		return Result{}, w.err
	}
	if err != nil {
		return Result{}, err
	}
	res := Result{Rows: w.rows, Bytes: w.sink.n}
	for i := range w.stats {
		res.Columns = append(res.Columns, w.stats[i].result())
	}
	return res, nil
}

func leafCount(t schema.Type) int {
	switch t.Kind {
	case schema.Array:
		return leafCount(*t.Elem)
	case schema.Map, schema.Multiset:
		key, value := mapParts(t)
		return leafCount(key) + leafCount(value)
	case schema.Row:
		n := 0
		for _, f := range t.Fields {
			n += leafCount(f.Type)
		}
		return n
	}
	return 1
}

// checkLayout compares an Arrow type with the one of schema.ArrowType. Field
// names and metadata inside nested types do not matter, their order does.
func checkLayout(name string, t schema.Type, dt arrow.DataType) error {
	switch t.Kind {
	case schema.Array:
		if l, ok := dt.(*arrow.ListType); ok {
			return checkLayout(name+".element", *t.Elem, l.Elem())
		}
	case schema.Map, schema.Multiset:
		if m, ok := dt.(*arrow.MapType); ok {
			key, value := mapParts(t)
			if err := checkLayout(name+".key", key, m.KeyType()); err != nil {
				return err
			}
			return checkLayout(name+".value", value, m.ItemType())
		}
	case schema.Row:
		if s, ok := dt.(*arrow.StructType); ok && s.NumFields() == len(t.Fields) {
			for i, f := range t.Fields {
				if err := checkLayout(name+"."+f.Name, f.Type, s.Field(i).Type); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		want, err := schema.ArrowType(t)
		if err != nil {
			return err
		}
		if arrow.TypeEqual(want, dt) {
			return nil
		}
	}
	return errs.Invalid("column %s: Arrow type %s does not hold %s", name, dt, t)
}

// RawBytes is the size of a batch's values in memory, of a slice only its own.
func RawBytes(b arrow.RecordBatch) int64 {
	n := int64(0)
	for _, column := range b.Columns() {
		n += rawBytes(column)
	}
	return n
}

// rawBytes is the size of the values of an array that a slice refers to.
func rawBytes(arr arrow.Array) int64 {
	switch a := arr.(type) {
	case *array.String:
		return spanBytes(a.ValueOffsets(), a.Len())
	case *array.Binary:
		return spanBytes(a.ValueOffsets(), a.Len())
	case *array.Struct:
		n := int64(0)
		for i := range a.NumField() {
			n += rawBytes(a.Field(i))
		}
		return n
	case *array.Map:
		return rawList(a.List)
	case *array.List:
		return rawList(a)
	}
	if fw, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
		return int64(arr.Len()) * int64(fw.BitWidth()) / 8
	}
	return 0
}

func rawList(a *array.List) int64 {
	if a.Len() == 0 {
		return 0
	}
	start, _ := a.ValueOffsets(0)
	_, end := a.ValueOffsets(a.Len() - 1)
	part := array.NewSlice(a.ListValues(), start, end)
	defer part.Release()
	return rawBytes(part) + 4*int64(a.Len())
}

func spanBytes(offsets []int32, n int) int64 {
	if n == 0 {
		return 0
	}
	return int64(offsets[n]-offsets[0]) + 4*int64(n)
}

// countingWriter counts what reached the destination.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
