package datafile

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/tideline-db/tideline/paimon/schema"
)

// converter turns packed physical values into packed Arrow values. run is nil
// where the stored bytes already are Arrow's; variable says that Arrow wants
// offsets and data.
type converter struct {
	ok       bool
	width    int // bytes of an Arrow value; booleans 1, packed to bits at the end
	variable bool
	run      func(dst, src []byte, n int) error
}

var errTimestampRange = errors.New("a timestamp outside the years 1677 to 2262 does not fit nanoseconds")

// converterFor chooses how a stored leaf becomes the Arrow values of t. Other
// writers use wider layouts than FORMAT §7.4 has; ok is false where none fits.
func converterFor(t schema.Type, n *pqschema.PrimitiveNode) converter {
	phys := n.PhysicalType()
	same := func(want parquet.Type, width int) converter {
		return converter{ok: phys == want, width: width}
	}
	switch t.Kind {
	case schema.Boolean:
		return same(parquet.Types.Boolean, 1)
	case schema.TinyInt:
		return converter{ok: phys == parquet.Types.Int32, width: 1, run: narrow8}
	case schema.SmallInt:
		return converter{ok: phys == parquet.Types.Int32, width: 2, run: narrow16}
	case schema.Int, schema.Date:
		return same(parquet.Types.Int32, 4)
	case schema.Time:
		return timeConverter(n)
	case schema.BigInt:
		if phys == parquet.Types.Int32 {
			return converter{ok: true, width: 8, run: widen64}
		}
		return same(parquet.Types.Int64, 8)
	case schema.Float:
		return same(parquet.Types.Float, 4)
	case schema.Double:
		return same(parquet.Types.Double, 8)
	case schema.Char, schema.VarChar, schema.Binary, schema.VarBinary:
		return converter{ok: phys == parquet.Types.ByteArray || phys == parquet.Types.FixedLenByteArray, variable: true}
	case schema.Decimal:
		return decimalConverter(t, n)
	case schema.Timestamp, schema.TimestampLTZ:
		return timestampConverter(t, n)
	}
	return converter{}
}

func narrow8(dst, src []byte, n int) error {
	bad := int32(0)
	for i, v := range asInt32s(src)[:n] {
		dst[i] = byte(v)
		bad |= v ^ int32(int8(v))
	}
	if bad != 0 {
		return errors.New("a TINYINT outside -128..127")
	}
	return nil
}

func narrow16(dst, src []byte, n int) error {
	out, bad := arrow.GetData[int16](dst), int32(0)
	for i, v := range asInt32s(src)[:n] {
		out[i] = int16(v)
		bad |= v ^ int32(int16(v))
	}
	if bad != 0 {
		return errors.New("a SMALLINT outside -32768..32767")
	}
	return nil
}

func widen64(dst, src []byte, n int) error {
	out := asInt64s(dst)
	for i, v := range asInt32s(src)[:n] {
		out[i] = int64(v)
	}
	return nil
}

// timeConverter accepts milliseconds in INT32 and other units in INT64.
func timeConverter(n *pqschema.PrimitiveNode) converter {
	if n.PhysicalType() == parquet.Types.Int32 {
		return converter{ok: true, width: 4}
	}
	logical, ok := n.LogicalType().(pqschema.TimeLogicalType)
	if !ok || n.PhysicalType() != parquet.Types.Int64 {
		return converter{}
	}
	per := int64(1000)
	if logical.TimeUnit() == pqschema.TimeUnitNanos {
		per = 1_000_000
	}
	return converter{ok: true, width: 4, run: func(dst, src []byte, n int) error {
		out := asInt32s(dst)
		for i, v := range asInt64s(src)[:n] {
			out[i] = int32(v / per)
		}
		return nil
	}}
}

// decimalConverter accepts every layout of the unscaled value at t's scale.
func decimalConverter(t schema.Type, n *pqschema.PrimitiveNode) converter {
	if d := n.DecimalMetadata(); d.IsSet && int(d.Scale) != t.Scale {
		return converter{}
	}
	c := converter{ok: true, width: 16}
	switch n.PhysicalType() {
	case parquet.Types.Int32:
		c.run = func(dst, src []byte, n int) error {
			out := asInt64s(dst)
			for i, v := range asInt32s(src)[:n] {
				out[2*i], out[2*i+1] = int64(v), int64(v)>>63
			}
			return nil
		}
	case parquet.Types.Int64:
		c.run = func(dst, src []byte, n int) error {
			out := asInt64s(dst)
			for i, v := range asInt64s(src)[:n] {
				out[2*i], out[2*i+1] = v, v>>63
			}
			return nil
		}
	case parquet.Types.FixedLenByteArray:
		width := n.TypeLength()
		c.run = func(dst, src []byte, n int) error {
			for i := range n {
				if err := bigEndian128(dst[16*i:16*i+16], src[i*width:(i+1)*width]); err != nil {
					return err
				}
			}
			return nil
		}
	case parquet.Types.ByteArray:
		// Runs value by value from the offsets, see fixedFromBytes.
		c.run = func([]byte, []byte, int) error { return nil }
	default:
		return converter{}
	}
	return c
}

// bigEndian128 reads a sign-extended big-endian number of any width.
func bigEndian128(dst, b []byte) error {
	sign := byte(0)
	if len(b) > 0 && b[0]&0x80 != 0 {
		sign = 0xFF
	}
	for len(b) > 16 {
		if b[0] != sign || (b[1]^sign)&0x80 != 0 {
			return errors.New("a decimal of more than 128 bits")
		}
		b = b[1:]
	}
	var wide [16]byte
	for i := range 16 - len(b) {
		wide[i] = sign
	}
	copy(wide[16-len(b):], b)
	binary.LittleEndian.PutUint64(dst[:8], binary.BigEndian.Uint64(wide[8:]))
	binary.LittleEndian.PutUint64(dst[8:16], binary.BigEndian.Uint64(wide[:8]))
	return nil
}

// nanosPer is the length of a unit step in nanoseconds, by precision.
func nanosPer(prec int) int64 {
	switch {
	case prec <= 3:
		return 1_000_000
	case prec <= 6:
		return 1000
	}
	return 1
}

func timestampConverter(t schema.Type, n *pqschema.PrimitiveNode) converter {
	to := nanosPer(t.Prec)
	c := converter{ok: true, width: 8}
	switch n.PhysicalType() {
	case parquet.Types.Int96:
		c.run = func(dst, src []byte, n int) error { return int96ToUnit(asInt64s(dst), src, n, to) }
	case parquet.Types.Int64:
		from := to
		if logical, ok := n.LogicalType().(pqschema.TimestampLogicalType); ok {
			switch logical.TimeUnit() {
			case pqschema.TimeUnitMillis:
				from = 1_000_000
			case pqschema.TimeUnitMicros:
				from = 1000
			case pqschema.TimeUnitNanos:
				from = 1
			}
		}
		if from != to {
			c.run = func(dst, src []byte, n int) error { return rescale(asInt64s(dst), asInt64s(src)[:n], from, to) }
		}
	default:
		return converter{}
	}
	return c
}

// int96ToUnit computes days*86400 s + nanos in units of per nanoseconds. The
// nanos may be negative; units round down.
func int96ToUnit(dst []int64, src []byte, n int, per int64) error {
	unitsPerDay := nanosPerDay / per
	limit := math.MaxInt64/unitsPerDay + 1
	for i := range n {
		days, nanos := int96Parts(src[12*i:])
		if nanos < -nanosPerDay || nanos > nanosPerDay {
			return errors.New("an INT96 timestamp of more than one day of nanoseconds")
		}
		if nanos < 0 {
			days, nanos = days-1, nanos+nanosPerDay
		}
		if nanos == nanosPerDay {
			days, nanos = days+1, 0
		}
		// The product may wrap on the first and the last day of the range only,
		// and then the sum comes back or has the wrong sign.
		v := days*unitsPerDay + nanos/per
		if days < -limit || days > limit || (v < 0) != (days < 0) {
			return errTimestampRange
		}
		dst[i] = v
	}
	return nil
}

// rescale changes the unit of timestamps, rounding down.
func rescale(dst, src []int64, from, to int64) error {
	if from < to {
		per := to / from
		for i, v := range src {
			q := v / per
			if v%per < 0 {
				q--
			}
			dst[i] = q
		}
		return nil
	}
	by := from / to
	for i, v := range src {
		dst[i] = v * by
		if dst[i]/by != v {
			return errTimestampRange
		}
	}
	return nil
}

// fixedFromBytes converts decimals in BYTE_ARRAY layout.
func fixedFromBytes(dst []byte, offsets []int32, data []byte, n int) error {
	for i := range n {
		v := data[offsets[i]:offsets[i+1]]
		if len(v) == 0 {
			return errors.New("a decimal of no bytes")
		}
		if err := bigEndian128(dst[16*i:16*i+16], v); err != nil {
			return err
		}
	}
	return nil
}
