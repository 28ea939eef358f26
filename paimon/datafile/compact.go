package datafile

import (
	"encoding/binary"
	"errors"
)

// compact reads the Thrift compact protocol of Parquet footers and page headers
// without building anything: it only walks, so that sizes can be checked before
// a library allocates by them.
type compact struct {
	b  []byte
	at int
}

// Wire types of the compact protocol.
const (
	wireTrue   = 1
	wireFalse  = 2
	wireByte   = 3
	wireI16    = 4
	wireI32    = 5
	wireI64    = 6
	wireDouble = 7
	wireBinary = 8
	wireList   = 9
	wireSet    = 10
	wireMap    = 11
	wireStruct = 12
	wireUUID   = 13

	maxThriftDepth = 24
)

var (
	errThriftShort = errors.New("the structure is cut off")
	errThriftBad   = errors.New("the structure is malformed")
)

func (c *compact) byte() (byte, error) {
	if c.at >= len(c.b) {
		return 0, errThriftShort
	}
	c.at++
	return c.b[c.at-1], nil
}

func (c *compact) uvarint() (uint64, error) {
	v, n := binary.Uvarint(c.b[c.at:])
	switch {
	case n == 0:
		return 0, errThriftShort
	case n < 0:
		return 0, errThriftBad
	}
	c.at += n
	return v, nil
}

func (c *compact) varint() (int64, error) {
	v, err := c.uvarint()
	return int64(v>>1) ^ -int64(v&1), err
}

// fields calls visit for each field of the struct at the cursor. visit must
// consume the value; skip does for values of no interest.
func (c *compact) fields(visit func(id int16, wire byte) error) error {
	id := int16(0)
	for {
		head, err := c.byte()
		if err != nil {
			return err
		}
		if head == 0 {
			return nil
		}
		if delta := head >> 4; delta != 0 {
			id += int16(delta)
		} else {
			v, err := c.varint()
			if err != nil {
				return err
			}
			id = int16(v)
		}
		if err := visit(id, head&15); err != nil {
			return err
		}
	}
}

// list reads a list header. The count never exceeds the bytes that are left,
// because every element takes at least one.
func (c *compact) list() (count int, wire byte, err error) {
	head, err := c.byte()
	if err != nil {
		return 0, 0, err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = c.uvarint(); err != nil {
			return 0, 0, err
		}
	}
	if n > uint64(len(c.b)-c.at) {
		return 0, 0, errThriftBad
	}
	return int(n), head & 15, nil
}

// skip consumes one value.
func (c *compact) skip(wire byte, depth int) error {
	if depth > maxThriftDepth {
		return errThriftBad
	}
	switch wire {
	case wireTrue, wireFalse:
		return nil
	case wireByte:
		return c.advance(1)
	case wireI16, wireI32, wireI64:
		_, err := c.uvarint()
		return err
	case wireDouble:
		return c.advance(8)
	case wireUUID:
		return c.advance(16)
	case wireBinary:
		n, err := c.uvarint()
		if err != nil {
			return err
		}
		return c.advance(n)
	case wireList, wireSet:
		n, elem, err := c.list()
		if err != nil {
			return err
		}
		return c.skipElements(n, elem, depth)
	case wireMap:
		return c.skipMap(depth)
	case wireStruct:
		return c.fields(func(_ int16, wire byte) error { return c.skip(wire, depth+1) })
	}
	return errThriftBad
}

func (c *compact) skipElements(n int, elem byte, depth int) error {
	for range n {
		var err error
		if elem == wireTrue || elem == wireFalse { // one byte each inside a list
			err = c.advance(1)
		} else {
			err = c.skip(elem, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *compact) skipMap(depth int) error {
	n, err := c.uvarint()
	if err != nil || n == 0 {
		return err
	}
	if n > uint64(len(c.b)-c.at) {
		return errThriftBad
	}
	types, err := c.byte()
	if err != nil {
		return err
	}
	for range n {
		if err := c.skipElements(1, types>>4, depth); err != nil {
			return err
		}
		if err := c.skipElements(1, types&15, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *compact) advance(n uint64) error {
	if n > uint64(len(c.b)-c.at) {
		return errThriftShort
	}
	c.at += int(n)
	return nil
}

// pageHeader is what the decoder needs of a Parquet page header.
type pageHeader struct {
	kind                     int32
	uncompressed, compressed int32
	values                   int32
	encoding                 int32
	defEncoding, repEncoding int32
	nulls, rows              int32
	defBytes, repBytes       int32
	plainBody                bool // v2 only: is_compressed is false
	hasBody                  bool // the header of its own kind is there
}

// Page kinds and encodings of the Parquet format.
const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3
)

// parsePageHeader reads the header at the start of b and its length.
func parsePageHeader(b []byte) (h pageHeader, size int, err error) {
	c := compact{b: b}
	h.kind = -1
	err = c.fields(func(id int16, wire byte) error {
		switch {
		case id == 1 && wire == wireI32:
			return c.i32(&h.kind)
		case id == 2 && wire == wireI32:
			return c.i32(&h.uncompressed)
		case id == 3 && wire == wireI32:
			return c.i32(&h.compressed)
		case id == 5 && wire == wireStruct && h.kind == pageData:
			h.hasBody = true
			return c.members(&h, &h.values, &h.encoding, &h.defEncoding, &h.repEncoding)
		case id == 7 && wire == wireStruct && h.kind == pageDictionary:
			h.hasBody = true
			return c.members(&h, &h.values, &h.encoding)
		case id == 8 && wire == wireStruct && h.kind == pageDataV2:
			h.hasBody = true
			return c.members(&h, &h.values, &h.nulls, &h.rows, &h.encoding, &h.defBytes, &h.repBytes)
		}
		return c.skip(wire, 0)
	})
	return h, c.at, err
}

func (c *compact) i32(dst *int32) error {
	v, err := c.varint()
	*dst = int32(v)
	return err
}

// members reads the leading i32 fields of a nested header; a boolean field 7 is
// is_compressed of a v2 page.
func (c *compact) members(h *pageHeader, dst ...*int32) error {
	return c.fields(func(id int16, wire byte) error {
		switch {
		case wire == wireI32 && id >= 1 && int(id) <= len(dst):
			return c.i32(dst[id-1])
		case id == 7 && wire == wireFalse:
			h.plainBody = true
			return nil
		}
		return c.skip(wire, 0)
	})
}
