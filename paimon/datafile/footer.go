package datafile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
)

const (
	magic          = "PAR1"
	magicEncrypted = "PARE"
	tailBytes      = 8 // footer length, magic
	firstReadBytes = 64 << 10

	// maxFooterBytes bounds the one structure that is decoded as a whole.
	maxFooterBytes = 64 << 20
	maxSchemaDepth = 64
	maxLeaves      = 1 << 16
)

// readFooter reads and checks the footer of a Parquet file before and after the
// library decodes it:
//
//	"PAR1" | column chunks ... | footer | length (4, LE) | "PAR1"
func readFooter(ctx context.Context, f fs.File) (*metadata.FileMetaData, error) {
	raw, start, err := footerBytes(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := checkThrift(raw); err != nil {
		return nil, errs.Corrupt(f.Name(), start, "footer: %v", err)
	}
	var meta *metadata.FileMetaData
	err = guard("footer", func() (err error) {
		meta, err = metadata.NewFileMetaData(raw, nil)
		return err
	})
	if err != nil {
		return nil, errs.Corrupt(f.Name(), start, "%v", err)
	}
	err = guard("footer", func() error { return checkMeta(meta, start) })
	if errors.Is(err, errs.ErrUnsupported) {
		return nil, fmt.Errorf("data file %s: %w", f.Name(), err)
	}
	if err != nil {
		return nil, errs.Corrupt(f.Name(), start, "%v", err)
	}
	return meta, nil
}

// footerBytes returns the footer and its position.
func footerBytes(ctx context.Context, f fs.File) ([]byte, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	size := f.Size()
	if size < int64(len(magic))+tailBytes {
		return nil, 0, errs.Corrupt(f.Name(), 0, "%d bytes are no Parquet file", size)
	}
	tail := make([]byte, min(size, firstReadBytes))
	if err := readAt(f, tail, size-int64(len(tail))); err != nil {
		return nil, 0, err
	}
	end := tail[len(tail)-tailBytes:]
	switch string(end[4:]) {
	case magic:
	case magicEncrypted:
		return nil, 0, errs.Unsupported("data file %s is encrypted", f.Name())
	default:
		return nil, 0, errs.Corrupt(f.Name(), size-4, "no Parquet magic at the end")
	}
	length := int64(binary.LittleEndian.Uint32(end))
	start := size - tailBytes - length
	if start < int64(len(magic)) || length == 0 || length > maxFooterBytes {
		return nil, 0, errs.Corrupt(f.Name(), size-tailBytes, "a footer of %d bytes in a file of %d", length, size)
	}
	if have := int64(len(tail)) - tailBytes; length <= have {
		return tail[have-length : have], start, nil
	}
	raw := make([]byte, length)
	return raw, start, readAt(f, raw, start)
}

// readAt fills p; a file that is shorter than its size is damaged.
func readAt(f fs.File, p []byte, at int64) error {
	n, err := f.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errs.Corrupt(f.Name(), at+int64(n), "the file ends here, %d bytes were expected", len(p)-n)
	}
	return fmt.Errorf("read data file %s at %d: %w", f.Name(), at, err)
}

// checkThrift walks the footer: it must be well formed, and the schema tree
// must not be deeper than a recursive decoder can follow.
func checkThrift(raw []byte) error {
	c := compact{b: raw}
	return c.fields(func(id int16, wire byte) error {
		if id != 2 || wire != wireList {
			return c.skip(wire, 0)
		}
		n, elem, err := c.list()
		if err != nil {
			return err
		}
		if elem != wireStruct {
			return errThriftBad
		}
		return c.schemaTree(n)
	})
}

// schemaTree checks a flattened schema of n elements.
func (c *compact) schemaTree(n int) error {
	var open []int64 // children that the open groups still expect
	for i := range n {
		children := int64(0)
		err := c.fields(func(id int16, wire byte) (err error) {
			if id == 5 && wire == wireI32 {
				children, err = c.varint()
				return err
			}
			return c.skip(wire, 0)
		})
		if err != nil {
			return err
		}
		if children < 0 || children > int64(n) {
			return fmt.Errorf("a schema element with %d children", children)
		}
		if i > 0 {
			if len(open) == 0 {
				return errors.New("a schema element outside of the tree")
			}
			open[len(open)-1]--
		}
		if children > 0 {
			open = append(open, children)
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
		if len(open) > maxSchemaDepth {
			return fmt.Errorf("a schema deeper than %d", maxSchemaDepth)
		}
	}
	if len(open) > 0 {
		return errors.New("the schema misses elements")
	}
	return nil
}

// checkMeta compares row groups and column chunks with the schema and with the
// space before the footer.
func checkMeta(meta *metadata.FileMetaData, end int64) error {
	leaves := meta.Schema.NumColumns()
	if leaves > maxLeaves {
		return errs.Unsupported("a file of %d leaf columns", leaves)
	}
	if meta.IsSetEncryptionAlgorithm() {
		return errs.Unsupported("an encrypted file")
	}
	rows := int64(0)
	for g, rg := range meta.RowGroups {
		if rg == nil || len(rg.Columns) != leaves {
			return fmt.Errorf("row group %d has %d column chunks for %d columns", g, len(rg.Columns), leaves)
		}
		if rg.NumRows < 0 || rows+rg.NumRows < rows {
			return fmt.Errorf("row group %d has %d rows", g, rg.NumRows)
		}
		rows += rg.NumRows
		for i := range rg.Columns {
			c, err := chunkOf(meta, g, i)
			if err != nil {
				return fmt.Errorf("row group %d, column %s: %w", g, meta.Schema.Column(i).Path(), err)
			}
			if c.offset < int64(len(magic)) || c.size < 0 || c.offset > end || c.size > end-c.offset {
				return fmt.Errorf("row group %d, column %s: a chunk at %d of %d bytes lies outside of the data",
					g, meta.Schema.Column(i).Path(), c.offset, c.size)
			}
			if flat := c.descr.MaxRepetitionLevel() == 0; c.values < 0 || flat && c.values != rg.NumRows ||
				!flat && c.values < rg.NumRows {
				return fmt.Errorf("row group %d, column %s: %d values for %d rows", g, meta.Schema.Column(i).Path(), c.values, rg.NumRows)
			}
		}
	}
	if rows != meta.NumRows {
		return fmt.Errorf("the file says %d rows, its row groups %d", meta.NumRows, rows)
	}
	return nil
}

// chunkOf extracts what decoding a chunk needs.
func chunkOf(meta *metadata.FileMetaData, group, leaf int) (chunkInfo, error) {
	col := meta.RowGroups[group].Columns[leaf]
	if col == nil || col.MetaData == nil {
		return chunkInfo{}, errors.New("no metadata")
	}
	if col.FilePath != nil && *col.FilePath != "" {
		return chunkInfo{}, errs.Unsupported("a column chunk in another file")
	}
	m := col.MetaData
	c := chunkInfo{
		descr:  meta.Schema.Column(leaf),
		codec:  compress.Compression(m.Codec),
		offset: m.DataPageOffset,
		size:   m.TotalCompressedSize,
		values: m.NumValues,
	}
	for _, e := range m.Encodings {
		c.encodings = append(c.encodings, parquet.Encoding(e))
	}
	if m.DictionaryPageOffset != nil && *m.DictionaryPageOffset > 0 && *m.DictionaryPageOffset < c.offset {
		c.offset = *m.DictionaryPageOffset
	}
	if int(m.Type) != int(c.descr.PhysicalType()) {
		return c, fmt.Errorf("stored as %v, declared as %v", m.Type, c.descr.PhysicalType())
	}
	if _, err := compress.GetCodec(c.codec); err != nil && c.codec != compress.Codecs.Lz4 {
		return c, errs.Unsupported("compression codec %v", m.Codec)
	}
	return c, nil
}

// columnNames lists the top-level columns with their ids, -1 for none.
func columnNames(sc *pqschema.Schema) []Column {
	root := sc.Root()
	out := make([]Column, root.NumFields())
	for i := range out {
		out[i] = Column{Name: root.Field(i).Name(), ID: int(root.Field(i).FieldID())}
	}
	return out
}
