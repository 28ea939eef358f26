package manifest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/tideline-db/tideline/internal/errs"
)

// Codec names as they stand in avro.codec.
const (
	codecNull    = "null"
	codecDeflate = "deflate"
	codecSnappy  = "snappy"
	codecZstd    = "zstandard"
)

var errTooLarge = errors.New("decompresses to more than the file's size allows")

// decompressor keeps the zstd decoder of one file; its zero value is ready.
type decompressor struct {
	zstd *zstd.Decoder
}

// decompress gives at most limit bytes. The result aliases packed for codec
// null and is new memory otherwise.
func (d *decompressor) decompress(codec string, packed []byte, limit int) ([]byte, error) {
	switch codec {
	case codecNull:
		if len(packed) > limit {
			return nil, errTooLarge
		}
		return packed, nil
	case codecDeflate:
		return inflate(packed, limit)
	case codecSnappy:
		return unsnappy(packed, limit)
	case codecZstd:
		return d.unzstd(packed, limit)
	}
	return nil, errs.Unsupported("Avro codec %q", codec)
}

func (d *decompressor) unzstd(packed []byte, limit int) ([]byte, error) {
	if d.zstd == nil {
		// The limit of the first block is the whole file's: it bounds what a
		// frame header can make the decoder allocate, later blocks are checked
		// after the fact.
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(max(limit, zstd.MinWindowSize))))
		if err != nil {
			return nil, err
		}
		d.zstd = z
	}
	out, err := d.zstd.DecodeAll(packed, nil)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, errs.Unsupported("a zstd window above %d bytes", limit)
	}
	if err != nil {
		return nil, err
	}
	if len(out) > limit {
		return nil, errTooLarge
	}
	return out, nil
}

func (d *decompressor) close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}

func inflate(packed []byte, limit int) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(out) > limit {
		return nil, errTooLarge
	}
	return out, nil
}

// unsnappy: a snappy block, then the big-endian CRC-32 of the decoded bytes.
func unsnappy(packed []byte, limit int) ([]byte, error) {
	if len(packed) < 4 {
		return nil, errors.New("no room for the checksum")
	}
	body, sum := packed[:len(packed)-4], binary.BigEndian.Uint32(packed[len(packed)-4:])
	n, err := snappy.DecodedLen(body)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, errTooLarge
	}
	out, err := snappy.Decode(nil, body)
	if err != nil {
		return nil, err
	}
	if got := crc32.ChecksumIEEE(out); got != sum {
		return nil, fmt.Errorf("checksum %08x, stored %08x", got, sum)
	}
	return out, nil
}

// encoders keeps zstd encoders, which are costly to build; EncodeAll leaves no
// state behind.
var encoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	return e
}}

// compress packs a block with a codec that this package writes.
func compress(codec string, block []byte) ([]byte, error) {
	switch codec {
	case codecNull:
		return block, nil
	case codecZstd:
		switch e := encoders.Get().(type) {
		case *zstd.Encoder:
			defer encoders.Put(e)
			return e.EncodeAll(block, nil), nil
		case error:
			return nil, e
		}
	}
	return nil, errs.Unsupported("writing Avro codec %q", codec)
}

func isSentinel(err error) bool {
	return errors.Is(err, errs.ErrUnsupported) || errors.Is(err, errs.ErrCorrupt)
}
