package row

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tideline-db/tideline/paimon/schema"
)

// Buckets fills dst[i] with the bucket of row i under the default bucket
// function; cols are the bucket-key columns in bucket-key order, n is the number
// of buckets and len(dst) the number of rows. Nothing is allocated per row.
func Buckets(cols []arrow.Array, types []schema.Type, n int, dst []int32) {
	if n <= 1 {
		clear(dst)
		return
	}
	if len(cols) == 1 {
		switch a := cols[0].(type) {
		case *array.Int32:
			bucketsInt32(a, n, dst)
			return
		case *array.Int64:
			bucketsInt64(a, n, dst)
			return
		case *array.String:
			bucketsString(a, n, dst)
			return
		}
	}
	var buf []byte
	for i := range dst {
		buf = EncodeColumns(cols, types, i, buf[:0])
		dst[i] = int32(BucketOf(Hash(buf), n))
	}
}

// BucketsMod fills dst[i] with the bucket of row i under the bucket function
// "mod"; col is the single bucket-key column, INT or BIGINT. A null key, which
// that function does not define, goes to bucket 0.
func BucketsMod(col arrow.Array, n int, dst []int32) {
	clear(dst)
	switch a := col.(type) {
	case *array.Int32:
		for i := range dst {
			if a.IsValid(i) {
				dst[i] = int32(BucketOfMod(int64(a.Value(i)), n))
			}
		}
	case *array.Int64:
		for i := range dst {
			if a.IsValid(i) {
				dst[i] = int32(BucketOfMod(a.Value(i), n))
			}
		}
	}
}

// A one-field row is 8 bytes of header and null bits, all zero for a value that
// is not null, and the slot. The hash after that header is a constant.
var (
	hashedHeader = mix(mix(hashSeed, 0), 0)
	nullHash     = Hash([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
)

func bucketsInt32(a *array.Int32, n int, dst []int32) {
	vals, nulls := a.Int32Values(), a.NullN() > 0
	for i := range dst {
		h := nullHash
		if !nulls || a.IsValid(i) {
			h = finish(mix(mix(hashedHeader, uint32(vals[i])), 0), 16)
		}
		dst[i] = bucket32(h, int32(n))
	}
}

func bucketsInt64(a *array.Int64, n int, dst []int32) {
	vals, nulls := a.Int64Values(), a.NullN() > 0
	for i := range dst {
		h := nullHash
		if !nulls || a.IsValid(i) {
			v := uint64(vals[i])
			h = finish(mix(mix(hashedHeader, uint32(v)), uint32(v>>32)), 16)
		}
		dst[i] = bucket32(h, int32(n))
	}
}

func bucketsString(a *array.String, n int, dst []int32) {
	nulls := a.NullN() > 0
	for i := range dst {
		h := nullHash
		if !nulls || a.IsValid(i) {
			h = hashText(a.Value(i))
		}
		dst[i] = bucket32(h, int32(n))
	}
}

// hashText is the hash of the one-field row of s without building the row.
func hashText(s string) int32 {
	if len(s) <= inlineBytes {
		var slot uint64
		for i := range len(s) {
			slot |= uint64(s[i]) << (8 * i)
		}
		slot |= uint64(0x80|len(s)) << 56
		return finish(mix(mix(hashedHeader, uint32(slot)), uint32(slot>>32)), 16)
	}
	// The slot says: length, and offset 16, right behind the slot itself.
	h := mix(mix(hashedHeader, uint32(len(s))), 16)
	padded := (len(s) + 7) / 8 * 8
	words := padded / 4
	for ; len(s) >= 4; s = s[4:] {
		h = mix(h, uint32(s[0])|uint32(s[1])<<8|uint32(s[2])<<16|uint32(s[3])<<24)
		words--
	}
	var tail uint32
	for i := range len(s) {
		tail |= uint32(s[i]) << (8 * i)
	}
	for ; words > 0; words-- {
		h = mix(h, tail)
		tail = 0
	}
	return finish(h, 16+padded)
}

func bucket32(h, n int32) int32 {
	b := h % n
	if b < 0 {
		return -b
	}
	return b
}
