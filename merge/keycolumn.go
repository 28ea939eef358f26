package merge

import (
	"bytes"
	"cmp"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tideline-db/tideline/internal/errs"
)

// keyKind is the physical shape of a key column.
type keyKind uint8

const (
	keyBool keyKind = iota + 1
	keyInt8
	keyInt16
	keyInt32
	keyInt64
	keyFloat32
	keyFloat64
	keyDecimal
	keyBytes
)

// keyColumn is a typed view of one key column. Exactly one of the value slices
// is set, the one of its kind; they alias the array's buffers.
type keyColumn struct {
	kind  keyKind
	nulls bool // the array has at least one null
	prec  int32

	i8   []int8
	i16  []int16
	i32  []int32
	i64  []int64
	f32  []float32
	f64  []float64
	dec  []decimal128.Num
	offs []int32 // keyBytes: rows+1 positions in data
	data []byte

	bits     []byte // keyBool: bit bitOff+i
	valid    []byte // with nulls: bit validOff+i
	bitOff   int
	validOff int
}

// newKeyColumn views arr as a key column. Types that cannot be keys are refused.
func newKeyColumn(arr arrow.Array) (keyColumn, error) {
	k := keyColumn{nulls: arr.NullN() > 0}
	if k.nulls {
		k.valid, k.validOff = arr.NullBitmapBytes(), arr.Data().Offset()
	}
	switch a := arr.(type) {
	case *array.Boolean:
		k.kind = keyBool
		if b := a.Data().Buffers()[1]; b != nil {
			k.bits, k.bitOff = b.Bytes(), a.Data().Offset()
		}
	case *array.Int8:
		k.kind, k.i8 = keyInt8, a.Int8Values()
	case *array.Int16:
		k.kind, k.i16 = keyInt16, a.Int16Values()
	case *array.Int32:
		k.kind, k.i32 = keyInt32, a.Int32Values()
	case *array.Date32:
		k.kind, k.i32 = keyInt32, arrow.Int32Traits.CastFromBytes(arrow.Date32Traits.CastToBytes(a.Date32Values()))
	case *array.Time32:
		k.kind, k.i32 = keyInt32, arrow.Int32Traits.CastFromBytes(arrow.Time32Traits.CastToBytes(a.Time32Values()))
	case *array.Int64:
		k.kind, k.i64 = keyInt64, a.Int64Values()
	case *array.Timestamp:
		k.kind, k.i64 = keyInt64, arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(a.TimestampValues()))
	case *array.Float32:
		k.kind, k.f32 = keyFloat32, a.Float32Values()
	case *array.Float64:
		k.kind, k.f64 = keyFloat64, a.Float64Values()
	case *array.Decimal128:
		k.kind, k.dec = keyDecimal, a.Values()
		k.prec = a.DataType().(*arrow.Decimal128Type).Precision
	case *array.String:
		k.kind = keyBytes
		k.offs, k.data = bytesView(a.Data())
	case *array.Binary:
		k.kind = keyBytes
		k.offs, k.data = bytesView(a.Data())
	default:
		return k, errs.Unsupported("a column of Arrow type %s cannot be a key", arr.DataType())
	}
	return k, nil
}

// bytesView returns the rows+1 offsets of a string or binary array and the whole
// value buffer they point into. An empty array may have no offsets at all.
func bytesView(d arrow.ArrayData) ([]int32, []byte) {
	var data []byte
	if b := d.Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	if d.Len() == 0 || d.Buffers()[1] == nil {
		return make([]int32, d.Len()+1), data
	}
	offs := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())
	return offs[d.Offset() : d.Offset()+d.Len()+1], data
}

func (k *keyColumn) null(i int) bool {
	return k.nulls && bitutil.BitIsNotSet(k.valid, k.validOff+i)
}

func (k *keyColumn) bytesAt(i int) []byte { return k.data[k.offs[i]:k.offs[i+1]] }

// keys is a typed view of the key columns of one block.
type keys struct {
	cols []keyColumn
	i64  []int64 // the values when the key is one BIGINT or timestamp without nulls
}

func newKeys(layout Layout, cols []arrow.Array) (keys, error) {
	k := keys{cols: make([]keyColumn, len(layout.Key))}
	for i, p := range layout.Key {
		if p >= len(cols) || cols[p] == nil {
			return k, errs.Invalid("key column %s is missing in a block that has to be merged", layout.Fields[p].Name)
		}
		var err error
		if k.cols[i], err = newKeyColumn(cols[p]); err != nil {
			return k, err
		}
	}
	if len(k.cols) == 1 && k.cols[0].kind == keyInt64 && !k.cols[0].nulls {
		k.i64 = k.cols[0].i64
	}
	return k, nil
}

// compareKeys compares row i of a with row j of b column by column, nulls first.
func compareKeys(a *keys, i int, b *keys, j int) int {
	if a.i64 != nil && b.i64 != nil {
		return cmp.Compare(a.i64[i], b.i64[j])
	}
	for c := range a.cols {
		if r := compareColumn(&a.cols[c], i, &b.cols[c], j); r != 0 {
			return r
		}
	}
	return 0
}

func compareColumn(a *keyColumn, i int, b *keyColumn, j int) int {
	if an, bn := a.null(i), b.null(j); an || bn {
		return boolInt(bn) - boolInt(an)
	}
	switch a.kind {
	case keyBool:
		return boolInt(bitutil.BitIsSet(a.bits, a.bitOff+i)) - boolInt(bitutil.BitIsSet(b.bits, b.bitOff+j))
	case keyInt8:
		return cmp.Compare(a.i8[i], b.i8[j])
	case keyInt16:
		return cmp.Compare(a.i16[i], b.i16[j])
	case keyInt32:
		return cmp.Compare(a.i32[i], b.i32[j])
	case keyInt64:
		return cmp.Compare(a.i64[i], b.i64[j])
	case keyFloat32:
		return cmp.Compare(orderFloat32(a.f32[i]), orderFloat32(b.f32[j]))
	case keyFloat64:
		return cmp.Compare(orderFloat64(a.f64[i]), orderFloat64(b.f64[j]))
	case keyDecimal:
		return a.dec[i].Cmp(b.dec[j])
	default:
		return bytes.Compare(a.bytesAt(i), b.bytesAt(j))
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// orderFloat32 maps a float to an unsigned number of the same order in Java's
// sense: -0.0 before 0.0, all NaN one value above +Inf.
func orderFloat32(f float32) uint32 {
	b := math.Float32bits(f)
	if f != f {
		b = 0x7fc00000
	}
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

// orderFloat64 is orderFloat32 for DOUBLE.
func orderFloat64(f float64) uint64 {
	b := math.Float64bits(f)
	if f != f {
		b = 0x7ff8000000000000
	}
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// upperBound returns the first position in [lo, hi) of a whose key is greater
// than row j of b, hi when there is none. It gallops from lo, since in a merge
// the answer is usually near.
func upperBound(a *keys, lo, hi int, b *keys, j int) int {
	if a.i64 != nil && b.i64 != nil {
		return upperBoundInt64(a.i64, lo, hi, b.i64[j])
	}
	step := 1
	for lo < hi && compareKeys(a, lo, b, j) <= 0 {
		lo++
		if lo+step >= hi {
			break
		}
		if compareKeys(a, lo+step, b, j) > 0 {
			hi = lo + step
			break
		}
		lo += step
		step *= 2
	}
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		if compareKeys(a, m, b, j) <= 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

func upperBoundInt64(v []int64, lo, hi int, key int64) int {
	step := 1
	for lo+step < hi && v[lo+step] <= key {
		lo += step
		step *= 2
	}
	hi = min(hi, lo+step)
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		if v[m] <= key {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}
