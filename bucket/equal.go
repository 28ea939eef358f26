package bucket

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/tideline-db/tideline/paimon/row"
	"github.com/tideline-db/tideline/paimon/schema"
)

// keyEqual compares rows of one key column.
type keyEqual struct {
	n   *node
	raw raw
}

// sameKey tells whether two rows have the same key: the same by the order of the
// format, in which all NaN are one.
func sameKey(keys []keyEqual, i, j int32) bool {
	for k := range keys {
		if !keys[k].same(int(i), int(j)) {
			return false
		}
	}
	return true
}

func (k *keyEqual) same(i, j int) bool {
	r := &k.raw
	if r.valid != nil {
		if a, b := r.isNull(i), r.isNull(j); a || b {
			return a && b
		}
	}
	switch k.n.shape {
	case shapeText:
		return bytes.Equal(r.text(i), r.text(j))
	case shapeBool:
		return r.bit(i) == r.bit(j)
	}
	w := k.n.width
	a, b := r.fixed[i*w:i*w+w], r.fixed[j*w:j*w+w]
	if w == 8 && binary.LittleEndian.Uint64(a) == binary.LittleEndian.Uint64(b) {
		return true
	}
	switch k.n.typ.Kind {
	case schema.Float:
		return row.CompareFloat(float64(float32At(a)), float64(float32At(b))) == 0
	case schema.Double:
		return row.CompareFloat(float64At(a), float64At(b)) == 0
	}
	return w != 8 && bytes.Equal(a, b)
}

func float32At(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

func float64At(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
