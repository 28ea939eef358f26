package merge

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// shape is how a column's values lie in memory.
type shape uint8

const (
	shapeBits   shape = iota + 1 // one bit a value
	shapeFixed                   // width bytes a value
	shapeBytes                   // int32 offsets into a byte buffer
	shapeList                    // int32 offsets into a child: list, map
	shapeStruct                  // children side by side
	shapeOther                   // whatever else Arrow knows
)

// column is a raw view of an array, the form in which copying code sees all
// types. Slices alias the array's buffers and are already moved to its offset,
// bit positions are not.
type column struct {
	shape    shape
	width    int
	rows     int
	values   []byte  // shapeFixed: rows*width bytes; shapeBytes: the value buffer
	offsets  []int32 // shapeBytes, shapeList: rows+1
	bits     []byte  // shapeBits: bit bitOff+i
	valid    []byte  // nil: no nulls; else bit validOff+i
	bitOff   int
	validOff int
	array    arrow.Array // the array itself, for nested and other shapes
}

func shapeOf(dt arrow.DataType) (shape, int) {
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return shapeBits, 0
	case *arrow.StringType, *arrow.BinaryType:
		return shapeBytes, 0
	case *arrow.ListType, *arrow.MapType:
		return shapeList, 0
	case *arrow.StructType:
		return shapeStruct, 0
	case *arrow.DictionaryType, arrow.ExtensionType:
		return shapeOther, 0
	case arrow.FixedWidthDataType:
		if w := t.BitWidth(); w > 0 && w%8 == 0 {
			if _, ok := dt.(*arrow.FixedSizeListType); !ok {
				return shapeFixed, w / 8
			}
		}
	}
	return shapeOther, 0
}

func viewColumn(arr arrow.Array) column {
	d := arr.Data()
	c := column{rows: d.Len(), array: arr}
	c.shape, c.width = shapeOf(arr.DataType())
	if arr.NullN() > 0 && d.Buffers()[0] != nil {
		c.valid, c.validOff = d.Buffers()[0].Bytes(), d.Offset()
	}
	switch c.shape {
	case shapeBits:
		if b := d.Buffers()[1]; b != nil {
			c.bits, c.bitOff = b.Bytes(), d.Offset()
		}
	case shapeFixed:
		if b := d.Buffers()[1]; b != nil {
			c.values = b.Bytes()[d.Offset()*c.width : (d.Offset()+c.rows)*c.width]
		}
	case shapeBytes:
		c.offsets, c.values = bytesView(d)
	case shapeList:
		if b := d.Buffers()[1]; c.rows > 0 && b != nil {
			c.offsets = arrow.Int32Traits.CastFromBytes(b.Bytes())[d.Offset() : d.Offset()+c.rows+1]
		} else {
			c.offsets = make([]int32, c.rows+1)
		}
	}
	return c
}

// child returns the values of a list or map array.
func (c *column) child() arrow.Array { return c.array.(array.ListLike).ListValues() }

// newBuffer allocates n bytes; a nil allocator means the Go heap. The content is
// not defined.
func newBuffer(alloc memory.Allocator, n int) *memory.Buffer {
	if alloc == nil {
		return memory.NewBufferBytes(make([]byte, n))
	}
	b := memory.NewResizableBuffer(alloc)
	b.Resize(n)
	return b
}

// makeArray builds an array that owns the buffers and children: it takes over the
// caller's references.
func makeArray(dt arrow.DataType, rows int, buffers []*memory.Buffer, children []arrow.Array, nulls int) arrow.Array {
	var data *array.Data
	if len(children) > 0 {
		cd := make([]arrow.ArrayData, len(children))
		for i, c := range children {
			cd[i] = c.Data()
		}
		data = array.NewData(dt, rows, buffers, cd, nulls, 0)
	} else {
		data = array.NewData(dt, rows, buffers, nil, nulls, 0)
	}
	a := array.MakeFromData(data)
	data.Release()
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range children {
		c.Release()
	}
	return a
}
