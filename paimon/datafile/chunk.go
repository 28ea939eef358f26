package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"
)

// chunkDecoder decodes one column chunk from the front. It is the seam for
// other value decoders: openChunk picks one for each (column, chunk), and
// everything above sees only leaf blocks.
type chunkDecoder interface {
	// decode appends up to n entries (levels and their values) to dst and
	// returns how many; 0 means that the chunk is exhausted. A decoder stops
	// early where it likes (page ends).
	decode(n int, dst *leafBlock) (int, error)
	close()
}

// chunkInfo is what a decoder is chosen by.
type chunkInfo struct {
	descr  *pqschema.Column
	codec  compress.Compression
	offset int64 // first byte of the first page, dictionary included
	size   int64
	values int64 // entries, nulls included
	// encodings are all that pages and levels of the chunk use.
	encodings []parquet.Encoding
}

// openChunk returns the decoder of a chunk. The stock decoder supports every
// encoding, so it stands last.
func openChunk(src io.ReaderAt, c chunkInfo, pool *sync.Pool) (chunkDecoder, error) {
	if flat(c) {
		return newFlatChunk(src, c), nil
	}
	if supported(c) {
		return newStockChunk(src, c, pool)
	}
	return nil, fmt.Errorf("physical type %s", c.descr.PhysicalType())
}

// supported reports whether the stock decoder handles a chunk.
func supported(c chunkInfo) bool { return physicalWidth(c.descr) >= 0 }

// physicalWidth is the size of a decoded value in a leaf block: booleans take a
// byte, BYTE_ARRAY has none (0); -1 is an unknown type.
func physicalWidth(d *pqschema.Column) int {
	switch d.PhysicalType() {
	case parquet.Types.Boolean:
		return 1
	case parquet.Types.Int32, parquet.Types.Float:
		return 4
	case parquet.Types.Int64, parquet.Types.Double:
		return 8
	case parquet.Types.Int96:
		return 12
	case parquet.Types.FixedLenByteArray:
		if d.TypeLength() > 0 {
			return d.TypeLength()
		}
	case parquet.Types.ByteArray:
		return 0
	}
	return -1
}

// leafBlock holds decoded entries of one leaf column: levels, and the present
// values packed without gaps.
//
//	def  [1 1 0 1]          nil when the leaf is required all the way up
//	rep  [0 1 0 0]          nil when nothing above it repeats
//	data  a b c             width bytes each; or offsets [0 2 5 9] into data
type leafBlock struct {
	mem      memory.Allocator
	width    int // 0: variable width
	def, rep []int16
	entries  int
	present  int
	data     *memory.Buffer
	offsets  *memory.Buffer // int32, present+1 of them; variable width only
	used     int            // bytes of data in use
}

func newLeafBlock(mem memory.Allocator, width int) *leafBlock {
	b := &leafBlock{mem: mem, width: width, data: memory.NewResizableBuffer(mem)}
	if width == 0 {
		b.offsets = memory.NewResizableBuffer(mem)
	}
	return b
}

func (b *leafBlock) release() {
	if b.data != nil {
		b.data.Release()
		b.data = nil
	}
	if b.offsets != nil {
		b.offsets.Release()
		b.offsets = nil
	}
}

// grow makes room for n more fixed-width values and returns it.
func (b *leafBlock) grow(n int) []byte {
	need := (b.present + n) * b.width
	if b.data.Len() < need {
		b.data.ResizeNoShrink(max(need, min(2*b.data.Len(), need+1<<20)))
	}
	return b.data.Bytes()[b.present*b.width : need]
}

// growData returns room for n more bytes of variable-width data.
func (b *leafBlock) growData(n int) []byte {
	need := b.used + n
	if b.data.Len() < need {
		b.data.ResizeNoShrink(max(need, min(2*b.data.Len(), need+64<<20)))
	}
	return b.data.Bytes()[b.used:need]
}

// growOffsets makes room for the ends of n more values.
func (b *leafBlock) growOffsets(n int) []int32 {
	need := (b.present + n + 1) * 4
	if b.offsets.Len() < need {
		fresh := b.offsets.Len() == 0
		b.offsets.ResizeNoShrink(max(need, min(2*b.offsets.Len(), need+1<<20)))
		if fresh {
			clear(b.offsets.Bytes()[:4])
		}
	}
	return asInt32s(b.offsets.Bytes())[:b.present+n+1]
}

// errBlockFull: a block would pass what 32-bit offsets hold, or its bound of
// repeated entries.
var errBlockFull = errors.New("a column needs more than 2 GiB of text or 32 Mi elements in one batch; read smaller batches")

// stockChunk decodes values with the Parquet library on checked pages.
type stockChunk struct {
	pages   *pageReader
	values  file.ColumnChunkReader
	maxDef  int16
	hasRep  bool
	byteBuf []parquet.ByteArray
	fixBuf  []parquet.FixedLenByteArray
	boolBuf []bool
	i96Buf  []parquet.Int96
}

const stockBlock = 2048 // values decoded at once where they are copied

func newStockChunk(src io.ReaderAt, c chunkInfo, pool *sync.Pool) (chunkDecoder, error) {
	pages := newPageReader(src, c)
	// Some decoders never free their scratch, so it comes from the heap and not
	// from the caller's allocator. The constructor is marked deprecated because it
	// trusts its page source, which is the point here.
	//lint:ignore SA1019 its page source is ours and bounded
	values := file.NewColumnReader(c.descr, pages, memory.NewGoAllocator(), pool)
	return &stockChunk{pages: pages, values: values, maxDef: c.descr.MaxDefinitionLevel(), hasRep: c.descr.MaxRepetitionLevel() > 0}, nil
}

// plainWidth is the least number of bytes of a PLAIN value, 0 for booleans.
func plainWidth(d *pqschema.Column) int {
	switch d.PhysicalType() {
	case parquet.Types.Boolean:
		return 0
	case parquet.Types.ByteArray:
		return 4
	}
	return physicalWidth(d)
}

func (s *stockChunk) close() { _ = s.pages.Close() }

func (s *stockChunk) decode(n int, dst *leafBlock) (got int, err error) {
	if !s.values.HasNext() {
		return 0, s.failure(s.values.Err())
	}
	if s.copied() {
		n = min(n, stockBlock)
	}
	var def, rep []int16
	if s.maxDef > 0 {
		def = extend(&dst.def, n)
	}
	if s.hasRep {
		rep = extend(&dst.rep, n)
	}
	lvls, read, err := s.readPage(n, dst, def, rep)
	if s.maxDef > 0 {
		dst.def = dst.def[:len(dst.def)-n+int(lvls)]
	}
	if s.hasRep {
		dst.rep = dst.rep[:len(dst.rep)-n+int(lvls)]
	}
	if err != nil {
		return 0, s.failure(err)
	}
	if lvls <= 0 || int(lvls) > n || read > int(lvls) {
		return 0, errors.New("a page ends before its values")
	}
	dst.entries += int(lvls)
	dst.present += read
	return int(lvls), nil
}

// failure prefers the reason that the page source knows.
func (s *stockChunk) failure(err error) error {
	switch {
	case s.pages.ioErr != nil:
		return s.pages.ioErr
	case s.pages.err != nil:
		return s.pages.err
	}
	return err
}

// copied reports whether values go through a scratch slice.
func (s *stockChunk) copied() bool {
	switch s.values.Type() {
	case parquet.Types.ByteArray, parquet.Types.FixedLenByteArray, parquet.Types.Boolean, parquet.Types.Int96:
		return true
	}
	return false
}

func (s *stockChunk) readPage(n int, dst *leafBlock, def, rep []int16) (int64, int, error) {
	count := int64(n)
	switch r := s.values.(type) {
	case *file.Int32ColumnChunkReader:
		return r.ReadBatchInPage(count, asInt32s(dst.grow(n)), def, rep)
	case *file.Int64ColumnChunkReader:
		return r.ReadBatchInPage(count, asInt64s(dst.grow(n)), def, rep)
	case *file.Float32ColumnChunkReader:
		return r.ReadBatchInPage(count, asFloat32s(dst.grow(n)), def, rep)
	case *file.Float64ColumnChunkReader:
		return r.ReadBatchInPage(count, asFloat64s(dst.grow(n)), def, rep)
	case *file.Int96ColumnChunkReader:
		s.i96Buf = resize(s.i96Buf, n)
		lvls, read, err := r.ReadBatchInPage(count, s.i96Buf, def, rep)
		out := dst.grow(n)
		for i, v := range s.i96Buf[:read] {
			copy(out[i*12:], v[:])
		}
		return lvls, read, err
	case *file.BooleanColumnChunkReader:
		s.boolBuf = resize(s.boolBuf, n)
		lvls, read, err := r.ReadBatchInPage(count, s.boolBuf, def, rep)
		out := dst.grow(n)
		for i, v := range s.boolBuf[:read] {
			out[i] = 0
			if v {
				out[i] = 1
			}
		}
		return lvls, read, err
	case *file.FixedLenByteArrayColumnChunkReader:
		s.fixBuf = resize(s.fixBuf, n)
		lvls, read, err := r.ReadBatchInPage(count, s.fixBuf, def, rep)
		out := dst.grow(n)
		for i, v := range s.fixBuf[:read] {
			if len(v) != dst.width {
				return 0, 0, fmt.Errorf("a fixed-width value of %d bytes instead of %d", len(v), dst.width)
			}
			copy(out[i*dst.width:], v)
		}
		return lvls, read, err
	case *file.ByteArrayColumnChunkReader:
		s.byteBuf = resize(s.byteBuf, n)
		lvls, read, err := r.ReadBatchInPage(count, s.byteBuf, def, rep)
		if err != nil {
			return lvls, read, err
		}
		return lvls, read, dst.appendBytes(s.byteBuf[:read])
	}
	return 0, 0, fmt.Errorf("physical type %s", s.values.Type())
}

// appendBytes copies values that alias a page into the block.
func (b *leafBlock) appendBytes(values []parquet.ByteArray) error {
	total := 0
	for _, v := range values {
		total += len(v)
	}
	if b.used+total > maxBlockBytes {
		return errBlockFull
	}
	data := b.growData(total)
	ends := b.growOffsets(len(values))[b.present+1:]
	at, base := 0, int32(b.used)
	for i, v := range values {
		at += copy(data[at:], v)
		ends[i] = base + int32(at)
	}
	b.used += total
	return nil
}

const maxBlockBytes = 1<<31 - 1

// extend lengthens a level slice by n and returns the new part.
func extend(s *[]int16, n int) []int16 {
	at := len(*s)
	if cap(*s) < at+n {
		next := make([]int16, at, max(at+n, 2*at))
		copy(next, *s)
		*s = next
	}
	*s = (*s)[:at+n]
	return (*s)[at:]
}

// int96Parts splits a stored INT96 into days since 1970 and nanos of the day,
// which old writers let be negative (FORMAT §7.4).
func int96Parts(v []byte) (days, nanos int64) {
	nanos = int64(binary.LittleEndian.Uint64(v))
	days = int64(int32(binary.LittleEndian.Uint32(v[8:]))) - julianEpochDay
	return days, nanos
}
