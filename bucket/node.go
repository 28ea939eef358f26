package bucket

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// shape is how the values of a column lie in memory. The flat shapes come
// first.
type shape uint8

const (
	shapeFixed  shape = iota // width bytes a value
	shapeBool                // one bit a value
	shapeText                // 32-bit positions into bytes: strings and binary
	shapeList                // 32-bit positions into one child: lists and maps
	shapeStruct              // one child a field
)

// node describes one column, or one part of a nested column.
type node struct {
	name     string // path of names from the column down, for messages
	typ      schema.Type
	dt       arrow.DataType
	shape    shape
	width    int // shapeFixed: bytes a value
	children []*node
	limit    limit
}

// layOut describes a column of a type and its Arrow form.
func layOut(name string, t schema.Type, dt arrow.DataType) (*node, error) {
	n := &node{name: name, typ: t, dt: dt, limit: limitOf(t, dt)}
	switch d := dt.(type) {
	case *arrow.BooleanType:
		n.shape = shapeBool
	case *arrow.StringType, *arrow.BinaryType:
		n.shape = shapeText
	case *arrow.ListType:
		n.shape = shapeList
		return n, n.add(name+".element", *t.Elem, d.Elem())
	case *arrow.MapType:
		n.shape = shapeList
		key, value := mapTypes(t)
		entries := &node{name: name, typ: schema.Type{Kind: schema.Row}, dt: d.Elem(), shape: shapeStruct}
		n.children = []*node{entries}
		if err := entries.add(name+".key", key, d.KeyType()); err != nil {
			return nil, err
		}
		return n, entries.add(name+".value", value, d.ItemType())
	case *arrow.StructType:
		n.shape = shapeStruct
		for i := range t.Fields {
			f := &t.Fields[i]
			if err := n.add(name+"."+f.Name, f.Type, d.Field(i).Type); err != nil {
				return nil, err
			}
		}
	case arrow.FixedWidthDataType:
		n.shape, n.width = shapeFixed, d.BitWidth()/8
		switch n.width {
		case 1, 2, 4, 8, 16:
		default:
			return nil, errs.Unsupported("column %s: values of %d bits have no layout in memory", name, d.BitWidth())
		}
	default:
		return nil, errs.Unsupported("column %s: %s has no layout in memory", name, dt)
	}
	return n, nil
}

func (n *node) add(name string, t schema.Type, dt arrow.DataType) error {
	child, err := layOut(name, t, dt)
	if err == nil {
		n.children = append(n.children, child)
	}
	return err
}

// mapTypes are the key and value types of a MAP or MULTISET; their keys are
// never null in Arrow, the count of a MULTISET neither.
func mapTypes(t schema.Type) (key, value schema.Type) {
	if t.Kind == schema.Multiset {
		key, value = *t.Elem, schema.Type{Kind: schema.Int}
	} else {
		key, value = *t.Key, *t.Elem
	}
	key.Nullable = false
	return key, value
}

// cellBytes is what one value takes in a packed row, without the bytes of a
// text.
func (n *node) cellBytes() int {
	switch n.shape {
	case shapeFixed:
		return n.width
	case shapeBool:
		return 1
	}
	return 4
}
