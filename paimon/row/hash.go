package row

import (
	"encoding/binary"
	"math/bits"
)

// Constants of the 32-bit murmur3 hash (FORMAT §6).
const (
	hashSeed = 42
	hashC1   = 0xcc9e2d51
	hashC2   = 0x1b873593
)

// Hash is the bucket hash over the bytes of a row without arity. The length is
// a multiple of 8 for every encoded row; a tail shorter than a 4-byte word would
// be left out.
func Hash(row []byte) int32 {
	h := uint32(hashSeed)
	for w := row; len(w) >= 4; w = w[4:] {
		h = mix(h, binary.LittleEndian.Uint32(w))
	}
	return finish(h, len(row))
}

func mix(h, k uint32) uint32 {
	k *= hashC1
	k = bits.RotateLeft32(k, 15)
	k *= hashC2
	h ^= k
	h = bits.RotateLeft32(h, 13)
	return h*5 + 0xe6546b64
}

func finish(h uint32, n int) int32 {
	h ^= uint32(n)
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	return int32(h)
}

// BucketOf is the default bucket function, abs(hash % n) with the remainder
// truncated toward zero; 0 when n < 1.
func BucketOf(hash int32, n int) int {
	if n < 1 {
		return 0
	}
	b := int(hash) % n
	if b < 0 {
		return -b
	}
	return b
}

// BucketOfMod is the bucket function "mod" over one INT or BIGINT key, floorMod;
// 0 when n < 1.
func BucketOfMod(v int64, n int) int {
	if n < 1 {
		return 0
	}
	b := v % int64(n)
	if b < 0 {
		b += int64(n)
	}
	return int(b)
}
