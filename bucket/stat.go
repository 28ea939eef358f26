package bucket

import (
	"bytes"
	"cmp"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/paimon/row"
)

// ColumnStat is what is known of one column of a run.
type ColumnStat struct {
	Min, Max row.Value // nil when every row is null
	Nulls    int64
	Known    bool // Min and Max; never for nested columns, nor with a NaN
}

// columnStats are computed when somebody asks: most batches are merged or
// committed before a reader with a filter comes by.
type columnStats []atomic.Pointer[ColumnStat]

// Stat gives the statistics of a column of the layout. The first call reads
// the column, later ones do not.
func (r *Run) Stat(column int) ColumnStat {
	all := r.stats.Load()
	if all == nil {
		made := make(columnStats, len(r.t.columns))
		if r.stats.CompareAndSwap(nil, &made) {
			all = &made
		} else {
			all = r.stats.Load()
		}
	}
	if known := (*all)[column].Load(); known != nil {
		return *known
	}
	arr := r.Block(nil).Columns[column]
	n := r.t.columns[column]
	view := own(n, arr)
	stat := statOf(n, &view, arr)
	(*all)[column].Store(&stat)
	return stat
}

func statOf(n *node, r *raw, arr arrow.Array) ColumnStat {
	stat := ColumnStat{Nulls: int64(r.nulls)}
	low, high, ok := extremes(n, r)
	if !ok {
		return stat
	}
	stat.Known = true
	if low >= 0 {
		stat.Min, stat.Max = row.ValueAt(arr, n.typ, low), row.ValueAt(arr, n.typ, high)
	}
	return stat
}

// extremes are the rows with the lowest and the highest value, -1 without one; ok
// is false when the column has no order to prune by.
func extremes(n *node, r *raw) (low, high int, ok bool) {
	switch n.shape {
	case shapeBool:
		low, high = extreme(r, func(i, j int) int { return boolOf(r.bit(i)) - boolOf(r.bit(j)) })
		return low, high, true
	case shapeText:
		low, high = extreme(r, func(i, j int) int { return bytes.Compare(r.text(i), r.text(j)) })
		return low, high, true
	case shapeFixed:
	default:
		return -1, -1, false
	}
	switch n.dt.ID() {
	case arrow.FLOAT32:
		return extremeFloat(r, arrow.Float32Traits.CastFromBytes(r.fixed))
	case arrow.FLOAT64:
		return extremeFloat(r, arrow.Float64Traits.CastFromBytes(r.fixed))
	case arrow.DECIMAL128:
		v := castDecimals(r.fixed)
		low, high = extreme(r, func(i, j int) int { return v[i].Cmp(v[j]) })
		return low, high, true
	}
	switch n.width {
	case 1:
		low, high = extremeOf(r, arrow.Int8Traits.CastFromBytes(r.fixed))
	case 2:
		low, high = extremeOf(r, arrow.Int16Traits.CastFromBytes(r.fixed))
	case 4:
		low, high = extremeOf(r, arrow.Int32Traits.CastFromBytes(r.fixed))
	case 8:
		low, high = extremeOf(r, arrow.Int64Traits.CastFromBytes(r.fixed))
	}
	return low, high, true
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func extreme(r *raw, compare func(i, j int) int) (low, high int) {
	low, high = -1, -1
	for i := range r.rows {
		if r.isNull(i) {
			continue
		}
		if low < 0 || compare(i, low) < 0 {
			low = i
		}
		if high < 0 || compare(i, high) > 0 {
			high = i
		}
	}
	return low, high
}

func extremeOf[T cmp.Ordered](r *raw, v []T) (low, high int) {
	low, high = -1, -1
	for i, x := range v {
		if r.isNull(i) {
			continue
		}
		if low < 0 {
			low, high = i, i
		}
		if x < v[low] {
			low = i
		}
		if x > v[high] {
			high = i
		}
	}
	return low, high
}

// extremeFloat does not know a column with a NaN: comparisons with it are false
// whatever the bounds are.
func extremeFloat[T float32 | float64](r *raw, v []T) (low, high int, ok bool) {
	for i, x := range v {
		if x != x && !r.isNull(i) {
			return -1, -1, false
		}
	}
	low, high = extreme(r, func(i, j int) int { return row.CompareFloat(float64(v[i]), float64(v[j])) })
	return low, high, true
}
