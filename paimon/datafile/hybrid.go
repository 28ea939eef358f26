package datafile

import (
	"encoding/binary"
	"errors"
	"math"
)

// hybrid decodes Parquet's mix of run lengths and bit packing, little-endian:
//
//	count<<1     | value in whole bytes             a run of equal values
//	groups<<1|1  | groups * 8 values of width bits  packed values
type hybrid struct {
	data  []byte
	width int // bits of a value, at most 32

	run    int    // values left in the current run
	value  uint32 // of a run of equal values
	packed []byte // of a run of packed values
	bit    int    // position in packed
}

var errShortRuns = errors.New("the runs end early")

// next starts the next run.
func (h *hybrid) next() error {
	head, size := binary.Uvarint(h.data)
	if size <= 0 {
		return errShortRuns
	}
	h.data = h.data[size:]
	count := head >> 1
	if head&1 == 0 {
		bytes := (h.width + 7) / 8
		if len(h.data) < bytes {
			return errShortRuns
		}
		h.value = 0
		for i, b := range h.data[:bytes] {
			h.value |= uint32(b) << (8 * i)
		}
		h.data, h.packed = h.data[bytes:], nil
		h.run = int(min(count, math.MaxInt32))
		return nil
	}
	if h.width == 0 {
		h.value, h.packed = 0, nil
		h.run = int(min(count, math.MaxInt32/8)) * 8
		return nil
	}
	// The last group may be cut where its values end.
	bytes := int(min(count, math.MaxInt32)) * h.width
	bytes = min(bytes, len(h.data))
	h.packed, h.bit, h.data = h.data[:bytes], 0, h.data[bytes:]
	h.run = bytes * 8 / h.width
	return nil
}

// numbers decodes len(dst) values.
func (h *hybrid) numbers(dst []uint32) error {
	for len(dst) > 0 {
		if h.run == 0 {
			if err := h.next(); err != nil {
				return err
			}
			continue
		}
		n := min(h.run, len(dst))
		if h.packed == nil {
			for i := range dst[:n] {
				dst[i] = h.value
			}
		} else {
			h.unpack(dst[:n])
		}
		h.run -= n
		dst = dst[n:]
	}
	return nil
}

// unpack decodes packed values, whose bits are there.
func (h *hybrid) unpack(dst []uint32) {
	mask := uint64(1)<<h.width - 1
	for i := range dst {
		at := h.bit >> 3
		var word uint64
		if at+8 <= len(h.packed) {
			word = binary.LittleEndian.Uint64(h.packed[at:])
		} else {
			for k, b := range h.packed[at:] {
				word |= uint64(b) << (8 * k)
			}
		}
		dst[i] = uint32(word >> (h.bit & 7) & mask)
		h.bit += h.width
	}
}

// flags decodes len(dst) values of one bit and counts the ones.
func (h *hybrid) flags(dst []int16) (ones int, err error) {
	for len(dst) > 0 {
		if h.run == 0 {
			if err := h.next(); err != nil {
				return 0, err
			}
			continue
		}
		n := min(h.run, len(dst))
		if h.packed == nil {
			if h.value > 1 {
				return 0, errors.New("a level above 1")
			}
			repeat(dst[:n], int16(h.value))
			ones += n * int(h.value)
		} else {
			for i := range dst[:n] {
				v := int16(h.packed[h.bit>>3] >> (h.bit & 7) & 1)
				dst[i] = v
				ones += int(v)
				h.bit++
			}
		}
		h.run -= n
		dst = dst[n:]
	}
	return ones, nil
}

// repeat fills s with v, in moves that double.
func repeat(s []int16, v int16) {
	if len(s) == 0 {
		return
	}
	s[0] = v
	for n := 1; n < len(s); n *= 2 {
		copy(s[n:], s[:n])
	}
}
