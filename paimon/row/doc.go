// Package row is the BinaryRow of the Paimon format (FORMAT §5), the bucket
// hash over it (§6) and the order of its values (§7.3). Partitions, keys and
// statistics of manifests are BinaryRows, and the bucket of a row is the hash of
// the BinaryRow of its bucket key.
//
// # Layout
//
// A row of n fields; B = ((n + 63 + 8) / 64) * 8:
//
//	0        1                 B            B+8n
//	+--------+-----------------+------------+--------------------------+
//	| kind=0 | null bits       | n 8-byte   | variable part, each item |
//	| 1 byte | bit 8+i = null  | slots      | zero padded to 8 bytes   |
//	+--------+-----------------+------------+--------------------------+
//
// Everything is little-endian except the unscaled bytes of a DECIMAL with a
// precision above 18. Offsets in slots count from byte 0 of the row. In files
// the row follows a 4-byte big-endian field count (Serialize, Deserialize); the
// hash never includes that count.
//
// # Values
//
// A value is a Go scalar or nil (see Value). ARRAY, MAP, MULTISET, ROW and the
// other complex types never occur in keys and partitions, and statistics hold
// them as null. Hence: Encode refuses a non-nil value of a complex type, Decode
// and ValueAt give nil for it, EncodeColumns writes it as null.
//
// # Guarantees
//
//   - Encode and EncodeColumns give the bytes that Java Paimon gives, including
//     the space that null wide decimals and null fine timestamps keep; the bucket
//     of a row depends on it.
//   - Decode accepts any bytes: every offset and length is checked, the error is
//     errs.ErrCorrupt, and memory is bounded by the input plus 40 bytes a field.
//   - EncodeColumns and Buckets allocate nothing per row.
//
// # Caveats
//
// The caller hands in types that belong to the values: a Go type that does not
// match is an error from Encode and a panic from CompareValue. Nullability of a
// type plays no part in the layout.
package row
