package datafile

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema"
)

// levels is the Dremel form of (a part of) one column on the way down to a
// leaf. Entry i is one future level pair; idx[i] is the position in the array
// of the current node, or -1 where the path already ended in a null or an
// empty list and def[i] is final.
type levels struct {
	def, rep []int16
	idx      []int32
}

// leafSink takes one finished leaf: its array, and the levels whose idx select
// the present values in order.
type leafSink func(arr arrow.Array, lv levels) error

// shredColumn turns a nested column into its leaves, in file order.
func shredColumn(name string, t schema.Type, arr arrow.Array, sink leafSink) error {
	n := arr.Len()
	lv := levels{def: make([]int16, n), rep: make([]int16, n), idx: make([]int32, n)}
	for i := range lv.idx {
		lv.idx[i] = int32(i)
	}
	return shred(name, t, arr, lv, 0, sink)
}

func shred(name string, t schema.Type, arr arrow.Array, lv levels, repLevel int16, sink leafSink) error {
	lv, err := presence(name, t.Nullable, arr, lv)
	if err != nil {
		return err
	}
	switch t.Kind {
	case schema.Row:
		st := arr.(*array.Struct)
		for i, f := range t.Fields {
			if err := shred(name+"."+f.Name, f.Type, st.Field(i), lv, repLevel, sink); err != nil {
				return err
			}
		}
		return nil
	case schema.Array:
		list := arr.(*array.List)
		return shred(name+".element", *t.Elem, list.ListValues(), expand(list, lv, repLevel+1), repLevel+1, sink)
	case schema.Map, schema.Multiset:
		m := arr.(*array.Map)
		key, value := mapParts(t)
		key.Nullable = false
		entries := expand(m.List, lv, repLevel+1)
		if err := shred(name+".key", key, m.Keys(), entries, repLevel+1, sink); err != nil {
			return err
		}
		return shred(name+".value", value, m.Items(), entries, repLevel+1, sink)
	}
	return sink(arr, lv)
}

// presence steps into one node: nulls of an optional node end there, the
// others gain one definition level.
func presence(name string, nullable bool, arr arrow.Array, lv levels) (levels, error) {
	if !nullable {
		if arr.NullN() > 0 {
			for _, i := range lv.idx {
				if i >= 0 && arr.IsNull(int(i)) {
					return lv, errs.Invalid("column %s is NOT NULL and row %d of the batch holds a null", name, i)
				}
			}
		}
		return lv, nil
	}
	out := levels{def: make([]int16, len(lv.def)), rep: lv.rep, idx: make([]int32, len(lv.idx))}
	copy(out.def, lv.def)
	nulls := arr.NullN() > 0
	for k, i := range lv.idx {
		switch {
		case i < 0 || nulls && arr.IsNull(int(i)):
			out.idx[k] = -1
		default:
			out.idx[k] = i
			out.def[k]++
		}
	}
	return out, nil
}

// expand steps through the repeated group of a list: one entry an element, and
// one for each list that is null or empty.
func expand(list *array.List, lv levels, repLevel int16) levels {
	total := 0
	for _, i := range lv.idx {
		total++
		if i >= 0 {
			start, end := list.ValueOffsets(int(i))
			total += max(int(end-start)-1, 0)
		}
	}
	out := levels{def: make([]int16, 0, total), rep: make([]int16, 0, total), idx: make([]int32, 0, total)}
	for k, i := range lv.idx {
		start, end := int64(0), int64(0)
		if i >= 0 {
			start, end = list.ValueOffsets(int(i))
		}
		if start == end {
			out.def, out.rep, out.idx = append(out.def, lv.def[k]), append(out.rep, lv.rep[k]), append(out.idx, -1)
			continue
		}
		for e := start; e < end; e++ {
			rep := repLevel
			if e == start {
				rep = lv.rep[k]
			}
			out.def, out.rep, out.idx = append(out.def, lv.def[k]+1), append(out.rep, rep), append(out.idx, int32(e))
		}
	}
	return out
}
