package manifest

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/tideline-db/tideline/internal/errs"
)

// Limits of what a container may ask for. They bound memory by the size of the
// input, and are far above what engines write.
const (
	maxHeaderKeys   = 64
	maxDecodedRatio = 256     // decoded bytes for one byte of the file
	decodedFloor    = 8 << 20 // allowance of tiny files
	maxDecoded      = 1 << 30
	maxSchemaText   = 1 << 20
)

const avroMagic = "Obj\x01"

// container is an Avro object container file split into its parts:
//
//	"Obj" 01 | map of metadata | 16-byte sync | block block ...
//	block = record count | byte length | bytes | the sync again
//
// It reads blocks one by one and never trusts a count.
type container struct {
	file   string
	data   []byte
	at     int
	schema string
	codec  string
	sync   [16]byte
	budget int // decoded bytes that blocks may still give
	codecs decompressor
}

// openContainer reads the header. ORC and Parquet manifests, which old engines
// could be told to write, are refused by name.
func openContainer(data []byte, file string) (*container, error) {
	switch {
	case bytes.HasPrefix(data, []byte("ORC")):
		return nil, errs.Unsupported("%s is an ORC manifest, only Avro manifests are read", file)
	case bytes.HasPrefix(data, []byte("PAR1")):
		return nil, errs.Unsupported("%s is a Parquet manifest, only Avro manifests are read", file)
	case !bytes.HasPrefix(data, []byte(avroMagic)):
		return nil, errs.Corrupt(file, 0, "no Avro container: the file starts with %q", data[:min(4, len(data))])
	}
	c := &container{file: file, data: data, at: len(avroMagic), codec: "null"}
	c.budget = decodedFloor + maxDecoded
	if len(data) < maxDecoded/maxDecodedRatio {
		c.budget = decodedFloor + maxDecodedRatio*len(data)
	}
	if err := c.header(); err != nil {
		return nil, err
	}
	if c.at+len(c.sync) > len(data) {
		return nil, c.corrupt("the header ends before its sync marker")
	}
	c.at += copy(c.sync[:], data[c.at:])
	return c, nil
}

func (c *container) corrupt(format string, args ...any) error {
	return errs.Corrupt(c.file, int64(c.at), format, args...)
}

func (c *container) header() error {
	keys := 0
	for {
		n, err := c.long("the number of header keys")
		if err != nil {
			return err
		}
		if n < 0 { // the negative form carries the byte length of the block
			if n = -n; n < 0 {
				return c.corrupt("a header of 2^63 keys")
			}
			if _, err := c.long("the size of the header"); err != nil {
				return err
			}
		}
		if n == 0 {
			break
		}
		if n > maxHeaderKeys || keys+int(n) > maxHeaderKeys {
			return c.corrupt("more than %d header keys", maxHeaderKeys)
		}
		keys += int(n)
		for range n {
			if err := c.headerPair(); err != nil {
				return err
			}
		}
	}
	if c.schema == "" {
		return c.corrupt("the header has no avro.schema")
	}
	return nil
}

func (c *container) headerPair() error {
	key, err := c.bytes("a header key")
	if err != nil {
		return err
	}
	val, err := c.bytes("a header value")
	if err != nil {
		return err
	}
	switch string(key) {
	case "avro.schema":
		if len(val) > maxSchemaText {
			return c.corrupt("a schema of %d bytes", len(val))
		}
		c.schema = strings.Clone(string(val))
	case "avro.codec":
		c.codec = string(val)
	}
	return nil
}

func (c *container) long(what string) (int64, error) {
	v, n := binary.Varint(c.data[c.at:])
	if n <= 0 {
		return 0, c.corrupt("%s is cut off or too long", what)
	}
	c.at += n
	return v, nil
}

func (c *container) bytes(what string) ([]byte, error) {
	n, err := c.long("the length of " + what)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(c.data)-c.at) {
		return nil, c.corrupt("%s of %d bytes does not fit into the file", what, n)
	}
	b := c.data[c.at : c.at+int(n)]
	c.at += int(n)
	return b, nil
}

// next gives record count and decoded bytes of the next block, and false at the
// end of the file. The bytes may alias the file.
func (c *container) next() (count int64, block []byte, ok bool, err error) {
	if c.at == len(c.data) {
		return 0, nil, false, nil
	}
	if count, err = c.long("the record count of a block"); err != nil {
		return 0, nil, false, err
	}
	start := c.at
	packed, err := c.bytes("a block")
	if err != nil {
		return 0, nil, false, err
	}
	if count < 0 {
		return 0, nil, false, c.corrupt("a block of %d records", count)
	}
	if !bytes.HasPrefix(c.data[c.at:], c.sync[:]) {
		return 0, nil, false, c.corrupt("no sync marker behind a block")
	}
	c.at += len(c.sync)
	block, err = c.codecs.decompress(c.codec, packed, c.budget)
	if err != nil {
		if !isSentinel(err) {
			err = errs.Corrupt(c.file, int64(start), "block of %d bytes, codec %s: %v", len(packed), c.codec, err)
		}
		return 0, nil, false, err
	}
	c.budget -= len(block)
	// No record that is read here is shorter than a byte.
	if count > int64(len(block)) {
		return 0, nil, false, errs.Corrupt(c.file, int64(start), "%d records in %d bytes", count, len(block))
	}
	return count, block, true, nil
}

// buildContainer frames encoded records, cutting blocks at ends[i], the byte
// positions in body where records end.
func buildContainer(schema, codec string, sync [16]byte, body []byte, ends []int) ([]byte, error) {
	out := make([]byte, 0, len(schema)+len(body)/2+128)
	out = append(out, avroMagic...)
	out = binary.AppendVarint(out, 2)
	out = appendText(out, "avro.schema")
	out = appendText(out, schema)
	out = appendText(out, "avro.codec")
	out = appendText(out, codec)
	out = append(out, 0)
	out = append(out, sync[:]...)
	start, count := 0, int64(0)
	for i, end := range ends {
		count++
		if end-start < blockBytes && i < len(ends)-1 {
			continue
		}
		packed, err := compress(codec, body[start:end])
		if err != nil {
			return nil, err
		}
		out = binary.AppendVarint(out, count)
		out = binary.AppendVarint(out, int64(len(packed)))
		out = append(out, packed...)
		out = append(out, sync[:]...)
		start, count = end, 0
	}
	return out, nil
}

// blockBytes is the decoded size at which a written block is closed; readers
// commonly refuse blocks of 64 MiB.
const blockBytes = 1 << 20

func appendText[T string | []byte](dst []byte, s T) []byte {
	dst = binary.AppendVarint(dst, int64(len(s)))
	return append(dst, s...)
}
