package row

import (
	"encoding/binary"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// EmptyRow is the row of zero fields, without arity: the partition of an
// unpartitioned table and the keys of an append table. It must not be changed.
var EmptyRow = []byte{0, 0, 0, 0, 0, 0, 0, 0}

// Widest values that fit into a slot (FORMAT §5.1).
const (
	inlineBytes     = 7  // CHAR .. VARBINARY
	compactDecimal  = 18 // digits
	compactTime     = 3  // fractional digits of a timestamp
	wideDecimalSize = 16 // variable part of a decimal that is not compact
	nanosPerMilli   = 1_000_000
)

// Serialize puts the 4-byte big-endian field count in front of a row, the form
// that manifests store (FORMAT §5.3).
func Serialize(row []byte, arity int) []byte {
	return AppendSerialized(make([]byte, 0, 4+len(row)), row, arity)
}

// AppendSerialized is Serialize onto the end of dst.
func AppendSerialized(dst, row []byte, arity int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(arity))
	return append(dst, row...)
}

// Deserialize splits the stored form into row bytes, which alias data, and
// field count. It checks that the row is long enough for its count.
func Deserialize(data []byte) (row []byte, arity int, err error) {
	if len(data) < 4 {
		return nil, 0, corrupt(0, "%d bytes are too few for a field count", len(data))
	}
	n := binary.BigEndian.Uint32(data)
	row = data[4:]
	// Eight bytes a field at least, so the count is bounded by the input
	// before it is used in arithmetic.
	if uint64(n) > uint64(len(row))/8 || FixedSize(int(n)) > len(row) {
		return nil, 0, corrupt(0, "%d bytes are too few for a row of %d fields", len(row), n)
	}
	return row, int(n), nil
}

// nullBytes is the size of header and null bits of n fields.
func nullBytes(n int) int { return (n + 63 + 8) / 64 * 8 }

// FixedSize is the size of everything before the variable part, and so the
// least size of a row of n fields without arity.
func FixedSize(n int) int { return nullBytes(n) + 8*n }

// complexKind says whether values of a kind are nested or opaque and so never
// stand in keys, partitions or statistics.
func complexKind(k schema.Kind) bool {
	switch k {
	case schema.Boolean, schema.TinyInt, schema.SmallInt, schema.Int, schema.BigInt,
		schema.Float, schema.Double, schema.Decimal, schema.Char, schema.VarChar,
		schema.Binary, schema.VarBinary, schema.Date, schema.Time,
		schema.Timestamp, schema.TimestampLTZ:
		return false
	}
	return true
}

// where is what a CorruptError names: a row does not know its file.
const where = "binary row"

func corrupt(offset int, format string, args ...any) error {
	return errs.Corrupt(where, int64(offset), format, args...)
}
