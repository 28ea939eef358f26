package row

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/paimon/schema"
)

// Decode reads a row without arity as values of the given types. The values
// are copies. A field of a complex type gives nil. errs.ErrCorrupt when data is
// shorter than the types need, or a slot points outside of it.
func Decode(types []schema.Type, data []byte) ([]Value, error) {
	n := len(types)
	if len(data) < FixedSize(n) {
		return nil, corrupt(0, "%d bytes are too few for a row of %d fields", len(data), n)
	}
	if len(data) > math.MaxInt32 {
		return nil, corrupt(0, "%d bytes are more than offsets can address", len(data))
	}
	vals := make([]Value, n)
	for i := range types {
		if data[(8+i)/8]&(1<<((8+i)%8)) != 0 {
			continue
		}
		v, err := decodeField(&types[i], data, nullBytes(n)+8*i)
		if err != nil {
			return nil, err
		}
		vals[i] = v
	}
	return vals, nil
}

// decodeField reads the value whose slot starts at byte at.
func decodeField(t *schema.Type, data []byte, at int) (Value, error) {
	slot := binary.LittleEndian.Uint64(data[at:])
	switch t.Kind {
	case schema.Boolean:
		return byte(slot) != 0, nil
	case schema.TinyInt:
		return int8(slot), nil
	case schema.SmallInt:
		return int16(slot), nil
	case schema.Int, schema.Date, schema.Time:
		return int32(slot), nil
	case schema.BigInt:
		return int64(slot), nil
	case schema.Float:
		return math.Float32frombits(uint32(slot)), nil
	case schema.Double:
		return math.Float64frombits(slot), nil
	case schema.Char, schema.VarChar:
		b, err := decodeText(data, at, slot)
		if err != nil {
			return nil, err
		}
		return string(b), nil
	case schema.Binary, schema.VarBinary:
		b, err := decodeText(data, at, slot)
		if err != nil {
			return nil, err
		}
		return append([]byte{}, b...), nil
	case schema.Decimal:
		return decodeDecimal(t.Prec, data, at, slot)
	case schema.Timestamp, schema.TimestampLTZ:
		return decodeTimestamp(t.Prec, data, at, slot)
	}
	return nil, nil
}

// variable gives the n bytes that a slot points to.
func variable(data []byte, at int, slot, n uint64) ([]byte, error) {
	off := slot >> 32
	if off > uint64(len(data)) || n > uint64(len(data))-off {
		return nil, corrupt(at, "%d bytes at offset %d do not lie inside a row of %d bytes", n, off, len(data))
	}
	return data[off : off+n], nil
}

func decodeText(data []byte, at int, slot uint64) ([]byte, error) {
	if slot>>63 == 0 {
		return variable(data, at, slot, slot&math.MaxUint32)
	}
	n := int(slot >> 56 & 0x7f)
	if n > inlineBytes {
		return nil, corrupt(at+7, "an inline value of %d bytes", n)
	}
	return data[at : at+n], nil
}

func decodeDecimal(prec int, data []byte, at int, slot uint64) (Value, error) {
	if prec <= compactDecimal {
		return decimal128.FromI64(int64(slot)), nil
	}
	n := slot & math.MaxUint32
	if n == 0 || n > wideDecimalSize {
		return nil, corrupt(at, "a decimal of %d bytes", n)
	}
	b, err := variable(data, at, slot, n)
	if err != nil {
		return nil, err
	}
	be := bytes.Repeat([]byte{byte(int8(b[0]) >> 7)}, wideDecimalSize)
	copy(be[wideDecimalSize-len(b):], b)
	return decimal128.New(int64(binary.BigEndian.Uint64(be)), binary.BigEndian.Uint64(be[8:])), nil
}

func decodeTimestamp(prec int, data []byte, at int, slot uint64) (Value, error) {
	if prec <= compactTime {
		return Timestamp{Millis: int64(slot)}, nil
	}
	nanos := slot & math.MaxUint32
	if nanos >= nanosPerMilli {
		return nil, corrupt(at, "%d nanoseconds above a millisecond", nanos)
	}
	b, err := variable(data, at, slot, 8)
	if err != nil {
		return nil, err
	}
	return Timestamp{Millis: int64(binary.LittleEndian.Uint64(b)), Nanos: int32(nanos)}, nil
}
