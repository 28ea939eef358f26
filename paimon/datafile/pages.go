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
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

const (
	readWindowBytes    = 1 << 20
	maxPageHeaderBytes = 1 << 20
	maxPageBytes       = 256 << 20
	// A page may claim freePageBytes without evidence; above that it must not
	// claim more than maxPageRatio times its compressed size.
	freePageBytes = 32 << 20
	maxPageRatio  = 1024
	// zstdSlack keeps klauspost's decoder out of its bounds-exact loop.
	zstdSlack = 16
	// Limits of DELTA encoded pages, whose decoders allocate by their headers.
	maxDeltaBlock     = 1 << 16
	maxDeltaMini      = 1 << 10
	maxDeltaPageCount = 1 << 22
)

// pageReader walks the pages of one column chunk. It implements the page
// source of the stock value decoders, and exists because the stock one
// allocates by unchecked sizes. Every size is checked against the chunk before
// memory is taken; page buffers are reused and never escape the chunk's decode.
//
//	file ──window──> compressed page ──codec──> page bytes ──> value decoder
type pageReader struct {
	src   io.ReaderAt
	at    int64 // file position behind the window
	end   int64 // end of the chunk
	buf   []byte
	pos   int // cursor in buf
	codec compress.Compression

	left  int64 // values that the chunk still owes
	page  file.Page
	plain []byte // decompressed data page, reused
	dict  []byte // decompressed dictionary page
	seen  bool   // a dictionary page was delivered
	width int    // bytes a PLAIN value takes at least; 0 for booleans

	levelRuns int // level runs before the values of a v1 page
	err       error
	ioErr     error // the file could not be read; not a sign of damage
}

func newPageReader(src io.ReaderAt, c chunkInfo) *pageReader {
	p := &pageReader{src: src, at: c.offset, end: c.offset + c.size, codec: c.codec, left: c.values, width: plainWidth(c.descr)}
	if c.descr.MaxDefinitionLevel() > 0 {
		p.levelRuns++
	}
	if c.descr.MaxRepetitionLevel() > 0 {
		p.levelRuns++
	}
	return p
}

var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}}

// pageBuffers serves the windows and pages of all readers: they live as long as
// the decode of one chunk.
var pageBuffers Pool

var errCutChunk = errors.New("the column chunk is cut off")

// need makes n contiguous bytes available at the cursor; fewer come back at
// the end of the chunk.
func (p *pageReader) need(n int) ([]byte, error) {
	if have := len(p.buf) - p.pos; have < n && p.at < p.end {
		fill := min(max(int64(n), readWindowBytes), int64(have)+p.end-p.at)
		p.slide(int(fill))
		got, err := p.src.ReadAt(p.buf[have:], p.at)
		if err != nil && !(errors.Is(err, io.EOF) && got == len(p.buf)-have) {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, errCutChunk
			}
			p.ioErr = err
			return nil, err
		}
		p.at += int64(got)
	}
	return p.buf[p.pos:min(len(p.buf), p.pos+n)], nil
}

// slide moves the unread bytes to the front of a window of the given size.
func (p *pageReader) slide(size int) {
	next := p.buf
	if cap(next) < size {
		next = pageBuffers.Allocate(size)
	}
	next = next[:size]
	copy(next, p.buf[p.pos:])
	if cap(p.buf) < size {
		pageBuffers.Free(p.buf)
	}
	p.buf, p.pos = next, 0
}

// Next moves to the next data or dictionary page.
func (p *pageReader) Next() bool {
	if p.page != nil {
		p.page.Release()
		p.page = nil
	}
	for p.err == nil && p.left > 0 {
		p.err = p.readPage()
		if p.page != nil {
			return true
		}
	}
	return false
}

// readPage reads one page; pages of other kinds leave page nil.
func (p *pageReader) readPage() error {
	h, err := p.header()
	if err != nil {
		return err
	}
	if h.compressed < 0 || h.uncompressed < 0 || h.values < 0 || h.uncompressed > maxPageBytes {
		return fmt.Errorf("a page of %d compressed and %d plain bytes with %d values", h.compressed, h.uncompressed, h.values)
	}
	if int64(h.compressed) > int64(len(p.buf)-p.pos)+p.end-p.at {
		return errCutChunk
	}
	if h.uncompressed > freePageBytes && int64(h.uncompressed) > maxPageRatio*int64(h.compressed) {
		return fmt.Errorf("a page claims to expand from %d to %d bytes", h.compressed, h.uncompressed)
	}
	body, err := p.need(int(h.compressed))
	if err != nil {
		return err
	}
	if len(body) < int(h.compressed) {
		return errCutChunk
	}
	switch h.kind {
	case pageData, pageDataV2, pageDictionary:
		if !h.hasBody {
			return errors.New("a page without its header")
		}
		err = p.build(h, body)
	}
	p.pos += int(h.compressed)
	return err
}

func (p *pageReader) header() (pageHeader, error) {
	for want := 256; ; want *= 8 {
		view, err := p.need(want)
		if err != nil {
			return pageHeader{}, err
		}
		h, size, err := parsePageHeader(view)
		if err == nil {
			p.pos += size
			return h, nil
		}
		if !errors.Is(err, errThriftShort) || len(view) < want || want >= maxPageHeaderBytes {
			return h, fmt.Errorf("page header: %w", err)
		}
	}
}

func (p *pageReader) build(h pageHeader, body []byte) error {
	enc := parquet.Encoding(h.encoding)
	switch h.kind {
	case pageDictionary:
		if p.seen {
			return errors.New("two dictionary pages in one column chunk")
		}
		p.seen = true
		var err error
		if p.dict, err = p.decompress(p.dict, body, int(h.uncompressed)); err != nil {
			return err
		}
		if int64(h.values)*int64(p.width) > int64(len(p.dict)) || p.width == 0 {
			return fmt.Errorf("a dictionary of %d bytes claims %d values", len(p.dict), h.values)
		}
		p.page = file.NewDictionaryPage(memory.NewBufferBytes(p.dict), h.values, enc)
		return nil
	case pageDataV2:
		return p.buildV2(h, body, enc)
	}
	var err error
	if p.plain, err = p.decompress(p.plain, body, int(h.uncompressed)); err != nil {
		return err
	}
	if err := p.count(h, p.plain, enc); err != nil {
		return err
	}
	p.page = file.NewDataPageV1(memory.NewBufferBytes(p.plain), h.values, enc,
		parquet.Encoding(h.defEncoding), parquet.Encoding(h.repEncoding), h.uncompressed)
	return nil
}

// buildV2 handles version 2 pages: levels lie uncompressed before the body.
func (p *pageReader) buildV2(h pageHeader, body []byte, enc parquet.Encoding) error {
	lv := int64(h.defBytes) + int64(h.repBytes)
	if h.defBytes < 0 || h.repBytes < 0 || lv > int64(len(body)) || lv > int64(h.uncompressed) {
		return errors.New("a page whose levels are longer than itself")
	}
	rest := body[lv:]
	size := int(h.uncompressed) - int(lv)
	if h.plainBody || size == 0 {
		if len(rest) < size {
			return errCutChunk
		}
		p.plain = append(append(p.plain[:0], body[:lv]...), rest[:size]...)
	} else {
		values, err := p.decompress(nil, rest, size)
		if err == nil {
			p.plain = append(append(p.plain[:0], body[:lv]...), values...)
		}
		pageBuffers.Free(values)
		if err != nil {
			return err
		}
	}
	if err := p.count(h, p.plain[lv:], enc); err != nil {
		return err
	}
	p.page = file.NewDataPageV2(memory.NewBufferBytes(p.plain), h.values, h.nulls, h.rows, enc, h.defBytes, h.repBytes,
		h.uncompressed, false)
	return nil
}

// count checks the number of values of a data page against the chunk, and the
// headers of DELTA encodings against that number.
func (p *pageReader) count(h pageHeader, values []byte, enc parquet.Encoding) error {
	if int64(h.values) > p.left {
		return fmt.Errorf("pages hold more values than the column chunk (%d in excess)", int64(h.values)-p.left)
	}
	p.left -= int64(h.values)
	switch enc {
	case parquet.Encodings.DeltaBinaryPacked, parquet.Encodings.DeltaLengthByteArray, parquet.Encodings.DeltaByteArray:
	default:
		return nil
	}
	if h.values > maxDeltaPageCount {
		return fmt.Errorf("a DELTA page of %d values", h.values)
	}
	if h.kind == pageData {
		values = skipLevels(values, p.levelRuns)
	}
	if len(values) == 0 {
		return nil
	}
	used, err := deltaSpan(values, int(h.values))
	if err == nil && enc == parquet.Encodings.DeltaByteArray {
		_, err = deltaSpan(values[used:], int(h.values))
	}
	return err
}

// skipLevels steps over the length-prefixed level runs of a v1 page.
func skipLevels(b []byte, runs int) []byte {
	for range runs {
		if len(b) < 4 {
			return nil
		}
		n := int64(binary.LittleEndian.Uint32(b))
		if n+4 > int64(len(b)) {
			return nil
		}
		b = b[n+4:]
	}
	return b
}

// deltaSpan walks one DELTA_BINARY_PACKED run of at most limit values and
// returns its length in bytes.
func deltaSpan(b []byte, limit int) (int, error) {
	c := compact{b: b}
	var head [3]uint64
	for i := range head {
		v, err := c.uvarint()
		if err != nil {
			return 0, fmt.Errorf("DELTA header: %w", err)
		}
		head[i] = v
	}
	block, minis, total := head[0], head[1], head[2]
	if _, err := c.uvarint(); err != nil {
		return 0, fmt.Errorf("DELTA header: %w", err)
	}
	if block == 0 || block > maxDeltaBlock || minis == 0 || minis > maxDeltaMini || block%minis != 0 || total > uint64(limit) {
		return 0, fmt.Errorf("a DELTA header of block %d, %d miniblocks, %d values", block, minis, total)
	}
	perMini := block / minis
	for left := int64(total) - 1; left > 0; {
		if _, err := c.uvarint(); err != nil {
			return 0, fmt.Errorf("DELTA block: %w", err)
		}
		at := c.at
		if err := c.advance(minis); err != nil {
			return 0, fmt.Errorf("DELTA block: %w", err)
		}
		for _, width := range b[at:c.at] {
			if left <= 0 {
				break
			}
			if width > 64 {
				return 0, fmt.Errorf("a DELTA bit width of %d", width)
			}
			if err := c.advance((uint64(width)*perMini + 7) / 8); err != nil {
				if left > int64(perMini) {
					return 0, fmt.Errorf("DELTA block: %w", err)
				}
				c.at = len(b) // the last miniblock may be cut
			}
			left -= int64(perMini)
		}
	}
	return c.at, nil
}

// decompress expands src to exactly size bytes, into dst where it fits.
func (p *pageReader) decompress(dst, src []byte, size int) ([]byte, error) {
	if p.codec == compress.Codecs.Uncompressed {
		if len(src) != size {
			return dst, fmt.Errorf("an uncompressed page of %d bytes claims %d", len(src), size)
		}
		if cap(dst) < size {
			pageBuffers.Free(dst)
			dst = pageBuffers.Allocate(size)
		}
		return append(dst[:0], src...), nil
	}
	if cap(dst) < size+zstdSlack {
		pageBuffers.Free(dst)
		dst = pageBuffers.Allocate(size + zstdSlack)
	}
	dst = dst[:size]
	got, err := p.expand(dst, src)
	if err == nil && got != size {
		err = fmt.Errorf("it expands to %d bytes instead of %d", got, size)
	}
	if err != nil {
		return dst, fmt.Errorf("decompress a page of %d bytes: %w", len(src), err)
	}
	return dst, nil
}

func (p *pageReader) expand(dst, src []byte) (int, error) {
	switch p.codec {
	case compress.Codecs.Zstd:
		d := zstdDecoders.Get().(*zstd.Decoder)
		out, err := d.DecodeAll(src, dst[:0])
		zstdDecoders.Put(d)
		return len(out), err
	case compress.Codecs.Snappy:
		n, err := snappy.DecodedLen(src)
		if err != nil || n != len(dst) {
			return n, err
		}
		out, err := snappy.Decode(dst, src)
		return len(out), err
	}
	if p.codec == compress.Codecs.Lz4 {
		return expandHadoopLZ4(dst, src)
	}
	codec, err := compress.GetCodec(p.codec)
	if err != nil {
		return 0, err
	}
	if p.codec == compress.Codecs.Lz4Raw { // bounded by the destination
		out, err := compress.Decode(codec, dst, src)
		return len(out), err
	}
	streaming, ok := codec.(compress.StreamingCodec)
	if !ok {
		return 0, fmt.Errorf("codec %s", p.codec)
	}
	r := streaming.NewReader(&byteSource{b: src})
	defer r.Close()
	n, err := io.ReadFull(r, dst)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && len(dst) == 0 {
		err = nil
	}
	return n, err
}

// expandHadoopLZ4 reads the framing that parquet-mr puts around LZ4 blocks under
// the deprecated codec LZ4, all numbers big-endian:
//
//	plain size of the frame (4) | { block size (4) | LZ4 block } ... | next frame
func expandHadoopLZ4(dst, src []byte) (int, error) {
	raw, err := compress.GetCodec(compress.Codecs.Lz4Raw)
	if err != nil {
		return 0, err
	}
	n := 0
	for len(src) > 0 {
		if len(src) < 4 {
			return n, errCutChunk
		}
		frame := int64(binary.BigEndian.Uint32(src))
		src = src[4:]
		for done := int64(0); done < frame; {
			if len(src) < 4 || int64(binary.BigEndian.Uint32(src)) > int64(len(src)-4) {
				return n, errCutChunk
			}
			size := int(binary.BigEndian.Uint32(src))
			out, err := compress.Decode(raw, dst[n:], src[4:4+size])
			if err != nil {
				return n, err
			}
			if len(out) == 0 {
				return n, errors.New("an empty LZ4 block")
			}
			n, done, src = n+len(out), done+int64(len(out)), src[4+size:]
		}
	}
	return n, nil
}

// byteSource is a plain reader over a slice.
type byteSource struct{ b []byte }

func (s *byteSource) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b)
	s.b = s.b[n:]
	return n, nil
}

// The rest of the library's page source interface.

// Page returns the current page, nil at the end.
func (p *pageReader) Page() file.Page { return p.page }

// Err returns why Next stopped early.
func (p *pageReader) Err() error { return p.err }

// SetMaxPageHeaderSize has no effect: the limit is a constant.
func (p *pageReader) SetMaxPageHeaderSize(int) {}

// Reset is not part of a chunk's life: a reader serves one chunk.
func (p *pageReader) Reset(parquet.BufferedReader, int64, compress.Compression, *file.CryptoContext) {
	p.err = errors.New("a page reader serves one column chunk")
}

// GetDictionaryPage returns none: Next delivers the dictionary in its place.
func (p *pageReader) GetDictionaryPage() (*file.DictionaryPage, error) { return nil, nil }

// SeekToPageWithRow is refused: chunks are read from the front.
func (p *pageReader) SeekToPageWithRow(int64) error {
	return errors.New("a page reader moves forward only")
}

// Close drops the current page and gives the buffers back.
func (p *pageReader) Close() error {
	if p.page != nil {
		p.page.Release()
		p.page = nil
	}
	for _, b := range [][]byte{p.buf, p.plain, p.dict} {
		pageBuffers.Free(b)
	}
	p.buf, p.plain, p.dict, p.left = nil, nil, nil, 0
	return nil
}
