package datafile

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/tideline-db/tideline/internal/errs"
)

const (
	julianEpochDay = 2440588
	nanosPerDay    = 86400 * 1_000_000_000
)

// leafWriter writes present values and levels to column chunk writers. The
// scratch slices are reused between columns: chunk writers copy what they take.
type leafWriter struct {
	ones   []int16 // definition levels of an optional flat column without nulls
	def    []int16
	sel    []int32
	bools  []bool
	int32s []int32
	int64s []int64
	f32s   []float32
	f64s   []float64
	int96s []parquet.Int96
	bytes  []parquet.ByteArray
	fixed  []parquet.FixedLenByteArray
	slab   []byte
}

// flat writes a column without nesting. A column without nulls is handed over
// as it lies in memory.
func (w *leafWriter) flat(cw file.ColumnChunkWriter, name string, nullable bool, arr arrow.Array) error {
	if !nullable {
		if arr.NullN() > 0 {
			return errs.Invalid("column %s is NOT NULL and the batch holds %d nulls", name, arr.NullN())
		}
		return w.put(cw, arr, nil, nil, nil)
	}
	n := arr.Len()
	if arr.NullN() == 0 {
		for len(w.ones) < n {
			w.ones = append(w.ones, 1)
		}
		return w.put(cw, arr, nil, w.ones[:n], nil)
	}
	w.def, w.sel = resize(w.def, n), w.sel[:0]
	for i := range n {
		if arr.IsNull(i) {
			w.def[i] = 0
			continue
		}
		w.def[i] = 1
		w.sel = append(w.sel, int32(i))
	}
	if w.sel == nil {
		w.sel = []int32{}
	}
	return w.put(cw, arr, w.sel, w.def, nil)
}

// nested writes one leaf of a shredded column.
func (w *leafWriter) nested(cw file.ColumnChunkWriter, arr arrow.Array, lv levels) error {
	sel := make([]int32, 0, len(lv.idx))
	for _, i := range lv.idx {
		if i >= 0 {
			sel = append(sel, i)
		}
	}
	def, rep := lv.def, lv.rep
	if cw.Descr().MaxDefinitionLevel() == 0 {
		def = nil
	}
	if cw.Descr().MaxRepetitionLevel() == 0 {
		rep = nil
	}
	return w.put(cw, arr, sel, def, rep)
}

// put writes the values of arr that sel names, all of them when sel is nil.
func (w *leafWriter) put(cw file.ColumnChunkWriter, arr arrow.Array, sel []int32, def, rep []int16) error {
	var err error
	switch cw := cw.(type) {
	case *file.BooleanColumnChunkWriter:
		b := arr.(*array.Boolean)
		w.bools = convert(w.bools, arr.Len(), sel, func(i int) bool { return b.Value(i) })
		_, err = cw.WriteBatch(w.bools, def, rep)
	case *file.Int32ColumnChunkWriter:
		_, err = cw.WriteBatch(w.asInt32(arr, sel), def, rep)
	case *file.Int64ColumnChunkWriter:
		_, err = cw.WriteBatch(w.asInt64(arr, sel), def, rep)
	case *file.Float32ColumnChunkWriter:
		w.f32s, err = gatherWrite(w.f32s, arr.(*array.Float32).Float32Values(), sel, func(v []float32) error {
			_, err := cw.WriteBatch(v, def, rep)
			return err
		})
	case *file.Float64ColumnChunkWriter:
		w.f64s, err = gatherWrite(w.f64s, arr.(*array.Float64).Float64Values(), sel, func(v []float64) error {
			_, err := cw.WriteBatch(v, def, rep)
			return err
		})
	case *file.Int96ColumnChunkWriter:
		ts := arr.(*array.Timestamp).TimestampValues()
		w.int96s = convert(w.int96s, arr.Len(), sel, func(i int) parquet.Int96 { return toInt96(int64(ts[i])) })
		_, err = cw.WriteBatch(w.int96s, def, rep)
	case *file.ByteArrayColumnChunkWriter:
		w.asBytes(arr, sel)
		_, err = cw.WriteBatch(w.bytes, def, rep)
		clear(w.bytes)
	case *file.FixedLenByteArrayColumnChunkWriter:
		w.asFixed(arr.(*array.Decimal128).Values(), sel, cw.Descr().TypeLength())
		_, err = cw.WriteBatch(w.fixed, def, rep)
		clear(w.fixed)
	default:
		return errs.Unsupported("physical type %s", cw.Type())
	}
	return err
}

func (w *leafWriter) asInt32(arr arrow.Array, sel []int32) []int32 {
	n := arr.Len()
	switch a := arr.(type) {
	case *array.Int8:
		v := a.Int8Values()
		w.int32s = convert(w.int32s, n, sel, func(i int) int32 { return int32(v[i]) })
	case *array.Int16:
		v := a.Int16Values()
		w.int32s = convert(w.int32s, n, sel, func(i int) int32 { return int32(v[i]) })
	case *array.Decimal128:
		v := a.Values()
		w.int32s = convert(w.int32s, n, sel, func(i int) int32 { return int32(v[i].LowBits()) })
	default:
		v := fixedValues[int32](arr)
		if sel == nil {
			return v
		}
		w.int32s = convert(w.int32s, n, sel, func(i int) int32 { return v[i] })
	}
	return w.int32s
}

func (w *leafWriter) asInt64(arr arrow.Array, sel []int32) []int64 {
	n := arr.Len()
	if a, ok := arr.(*array.Decimal128); ok {
		v := a.Values()
		w.int64s = convert(w.int64s, n, sel, func(i int) int64 { return int64(v[i].LowBits()) })
		return w.int64s
	}
	v := fixedValues[int64](arr)
	if sel == nil {
		return v
	}
	w.int64s = convert(w.int64s, n, sel, func(i int) int64 { return v[i] })
	return w.int64s
}

func (w *leafWriter) asBytes(arr arrow.Array, sel []int32) {
	offsets, data := binaryParts(arr)
	w.bytes = convert(w.bytes, arr.Len(), sel, func(i int) parquet.ByteArray {
		return data[offsets[i]:offsets[i+1]:offsets[i+1]]
	})
}

func (w *leafWriter) asFixed(values []decimal128.Num, sel []int32, width int) {
	n := len(values)
	if sel != nil {
		n = len(sel)
	}
	w.slab = resize(w.slab, n*16)
	k := 0
	w.fixed = convert(w.fixed, len(values), sel, func(i int) parquet.FixedLenByteArray {
		cell := w.slab[k*16 : k*16+16]
		k++
		binary.BigEndian.PutUint64(cell, uint64(values[i].HighBits()))
		binary.BigEndian.PutUint64(cell[8:], values[i].LowBits())
		return cell[16-width:]
	})
}

// toInt96 is the floor division of FORMAT §7.4: nanos of the day are never
// negative, which every reader decodes equally.
func toInt96(nanos int64) (out parquet.Int96) {
	day := nanos / nanosPerDay
	rest := nanos % nanosPerDay
	if rest < 0 {
		day, rest = day-1, rest+nanosPerDay
	}
	binary.LittleEndian.PutUint64(out[:8], uint64(rest))
	binary.LittleEndian.PutUint32(out[8:], uint32(day+julianEpochDay))
	return out
}

// convert fills dst with one value for each selected position.
func convert[T any](dst []T, n int, sel []int32, at func(int) T) []T {
	if sel == nil {
		dst = resize(dst, n)
		for i := range dst {
			dst[i] = at(i)
		}
		return dst
	}
	dst = resize(dst, len(sel))
	for k, i := range sel {
		dst[k] = at(int(i))
	}
	return dst
}

func gatherWrite[T any](scratch, values []T, sel []int32, write func([]T) error) ([]T, error) {
	if sel == nil {
		return scratch, write(values)
	}
	scratch = convert(scratch, len(values), sel, func(i int) T { return values[i] })
	return scratch, write(scratch)
}

// resize returns a slice of length n, reusing the memory of s where it fits.
// The content is not defined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// fixedValues views the value buffer of a 4- or 8-byte primitive array.
func fixedValues[T int32 | int64](arr arrow.Array) []T {
	d := arr.Data()
	buf := d.Buffers()[1]
	if buf == nil {
		return nil
	}
	return arrow.GetData[T](buf.Bytes())[d.Offset() : d.Offset()+d.Len()]
}

// binaryParts returns the offsets (one more than values) and the data that
// they point into.
func binaryParts(arr arrow.Array) (offsets []int32, data []byte) {
	switch a := arr.(type) {
	case *array.String:
		offsets = a.ValueOffsets()
	case *array.Binary:
		offsets = a.ValueOffsets()
	}
	if buf := arr.Data().Buffers()[2]; buf != nil {
		data = buf.Bytes()
	}
	return offsets, data
}
