package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// flatChunk decodes the chunks that nearly every file consists of: columns
// without nesting, PLAIN or dictionary encoded, of numbers or byte arrays. Text
// goes from the page straight into the block, where the library makes a slice
// header for each value first.
//
//	page   [length | definition levels]  values            PLAIN
//	       [length | definition levels]  width | indexes   dictionary
//
// Some writers begin a chunk with a dictionary and go on in PLAIN, so the
// encoding belongs to the page.
type flatChunk struct {
	pages    *pageReader
	width    int // bytes of a value, 0 for byte arrays
	optional bool

	left    int     // entries of the current page still to decode
	levels  hybrid  // its definition levels
	values  []byte  // what is left of its PLAIN values
	coded   bool    // its values are indexes
	indexes hybrid  // its dictionary indexes
	dict    []byte  // dictionary values in PLAIN
	starts  []int32 // of dictionary values that are byte arrays
	ends    []int32
	entries int      // values of the dictionary
	scratch []uint32 // indexes being looked up
}

// flat reports whether flatChunk decodes a chunk. The encodings are what the
// footer announces; a page of another one is damage.
func flat(c chunkInfo) bool {
	if c.descr.MaxRepetitionLevel() > 0 || c.descr.MaxDefinitionLevel() > 1 {
		return false
	}
	switch c.descr.PhysicalType() {
	case parquet.Types.Int32, parquet.Types.Int64, parquet.Types.Float, parquet.Types.Double, parquet.Types.ByteArray:
	default:
		return false
	}
	for _, e := range c.encodings {
		switch e {
		case parquet.Encodings.Plain, parquet.Encodings.PlainDict, parquet.Encodings.RLEDict,
			parquet.Encodings.RLE, parquet.Encodings.BitPacked: // the last two are of levels
		default:
			return false
		}
	}
	return len(c.encodings) > 0
}

func newFlatChunk(src io.ReaderAt, c chunkInfo) chunkDecoder {
	return &flatChunk{pages: newPageReader(src, c), width: physicalWidth(c.descr), optional: c.descr.MaxDefinitionLevel() > 0}
}

func (c *flatChunk) close() { _ = c.pages.Close() }

// decode appends entries up to the end of the page.
func (c *flatChunk) decode(n int, dst *leafBlock) (int, error) {
	for c.left == 0 {
		if !c.pages.Next() {
			if c.pages.ioErr != nil {
				return 0, c.pages.ioErr
			}
			return 0, c.pages.err
		}
		if err := c.open(c.pages.Page()); err != nil {
			return 0, err
		}
	}
	n = min(n, c.left)
	present := n
	if c.optional {
		var err error
		if present, err = c.levels.flags(extend(&dst.def, n)); err != nil {
			return 0, fmt.Errorf("definition levels: %w", err)
		}
	}
	if err := c.append(present, dst); err != nil {
		return 0, err
	}
	c.left -= n
	dst.entries += n
	dst.present += present
	return n, nil
}

// open starts a page.
func (c *flatChunk) open(page file.Page) error {
	body := page.Data()
	switch p := page.(type) {
	case *file.DictionaryPage:
		if e := parquet.Encoding(p.Encoding()); e != parquet.Encodings.Plain && e != parquet.Encodings.PlainDict {
			return fmt.Errorf("a dictionary in encoding %s", e)
		}
		return c.dictionary(body, int(p.NumValues()))
	case *file.DataPageV1:
		levels := []byte(nil)
		if c.optional {
			if e := p.DefinitionLevelEncoding(); e != parquet.Encodings.RLE {
				return fmt.Errorf("definition levels in encoding %s", e)
			}
			if len(body) < 4 || int64(binary.LittleEndian.Uint32(body)) > int64(len(body)-4) {
				return errors.New("definition levels longer than their page")
			}
			end := 4 + int(binary.LittleEndian.Uint32(body))
			levels, body = body[4:end], body[end:]
		}
		return c.data(int(p.NumValues()), parquet.Encoding(p.Encoding()), levels, body)
	case *file.DataPageV2: // the page reader checked the lengths of the levels
		from, to := int(p.RepetitionLevelByteLen()), int(p.RepetitionLevelByteLen()+p.DefinitionLevelByteLen())
		return c.data(int(p.NumValues()), parquet.Encoding(p.Encoding()), body[from:to], body[to:])
	}
	return fmt.Errorf("a page of type %s", page.Type())
}

func (c *flatChunk) data(n int, encoding parquet.Encoding, levels, body []byte) error {
	c.left, c.levels = n, hybrid{data: levels, width: 1}
	switch encoding {
	case parquet.Encodings.Plain:
		c.coded, c.values = false, body
		return nil
	case parquet.Encodings.PlainDict, parquet.Encodings.RLEDict:
		c.coded, c.indexes = true, hybrid{}
		if len(body) > 0 { // a page of nulls may have no width
			if body[0] > 32 {
				return fmt.Errorf("dictionary indexes of %d bits", body[0])
			}
			c.indexes = hybrid{data: body[1:], width: int(body[0])}
		}
		return nil
	}
	return fmt.Errorf("a page in encoding %s, which its column chunk does not announce", encoding)
}

// dictionary keeps the values of a dictionary page, which the page reader holds
// until it is closed.
func (c *flatChunk) dictionary(body []byte, n int) error {
	c.dict, c.entries = body, n
	if c.width > 0 {
		if n*c.width > len(body) {
			return errors.New("a dictionary shorter than its values")
		}
		return nil
	}
	c.starts, c.ends = resize(c.starts, n), resize(c.ends, n)
	at := 0
	for i := range n {
		size, err := plainLength(body, at)
		if err != nil {
			return err
		}
		c.starts[i], c.ends[i] = int32(at+4), int32(at+4+size)
		at += 4 + size
	}
	return nil
}

// plainLength is the length of the PLAIN byte array at a position.
func plainLength(b []byte, at int) (int, error) {
	if len(b)-at < 4 || int64(binary.LittleEndian.Uint32(b[at:])) > int64(len(b)-at-4) {
		return 0, errShortValues
	}
	return int(binary.LittleEndian.Uint32(b[at:])), nil
}

var errShortValues = errors.New("a page ends before its values")

// append decodes n present values.
func (c *flatChunk) append(n int, dst *leafBlock) error {
	if c.coded {
		return c.lookup(n, dst)
	}
	if c.width == 0 {
		used, err := dst.appendPlain(c.values, n)
		c.values = c.values[used:]
		return err
	}
	size := n * c.width
	if len(c.values) < size {
		return errShortValues
	}
	copy(dst.grow(n), c.values[:size])
	c.values = c.values[size:]
	return nil
}

// lookup decodes n indexes and appends their dictionary values.
func (c *flatChunk) lookup(n int, dst *leafBlock) error {
	c.scratch = resize(c.scratch, n)
	if err := c.indexes.numbers(c.scratch); err != nil {
		return fmt.Errorf("dictionary indexes: %w", err)
	}
	for _, at := range c.scratch {
		if int64(at) >= int64(c.entries) {
			return fmt.Errorf("dictionary index %d of %d values", at, c.entries)
		}
	}
	switch c.width {
	case 4:
		spreadDictionary(asInt32s(dst.grow(n)), asInt32s(c.dict), c.scratch)
	case 8:
		spreadDictionary(asInt64s(dst.grow(n)), asInt64s(c.dict), c.scratch)
	default:
		return c.lookupBytes(n, dst)
	}
	return nil
}

func spreadDictionary[T any](dst, dict []T, indexes []uint32) {
	for i, at := range indexes {
		dst[i] = dict[at]
	}
}

func (c *flatChunk) lookupBytes(n int, dst *leafBlock) error {
	total := 0
	for _, at := range c.scratch {
		total += int(c.ends[at] - c.starts[at])
	}
	if total > maxBlockBytes-dst.used {
		return errBlockFull
	}
	ends, data := dst.growOffsets(n)[dst.present+1:], dst.growData(total)
	to := 0
	for i, at := range c.scratch {
		to += copy(data[to:], c.dict[c.starts[at]:c.ends[at]])
		ends[i] = int32(dst.used + to)
	}
	dst.used += total
	return nil
}

// shortText is how many bytes are moved at once: a move of known size costs less
// than a call that looks at the size.
const shortText = 16

// appendPlain appends n PLAIN byte arrays and returns the bytes they took.
func (b *leafBlock) appendPlain(src []byte, n int) (used int, err error) {
	ends := b.growOffsets(n)[b.present+1:]
	at, total := 0, 0
	for i := range ends {
		size, err := plainLength(src, at)
		if err != nil {
			return 0, err
		}
		at += 4 + size
		total += size
		ends[i] = int32(total)
	}
	if total > maxBlockBytes-shortText-b.used {
		return 0, errBlockFull
	}
	data := b.growData(total + shortText)
	from, to, base := 4, 0, int32(b.used)
	for i, end := range ends {
		size := int(end) - to
		if size <= shortText && len(src)-from >= shortText {
			*(*[shortText]byte)(data[to:]) = *(*[shortText]byte)(src[from:])
		} else {
			copy(data[to:to+size], src[from:])
		}
		to = int(end)
		from += size + 4
		ends[i] = base + end
	}
	b.used += total
	return at, nil
}
