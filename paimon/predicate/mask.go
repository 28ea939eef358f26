package predicate

// Mask is the answer of a predicate for a number of rows, in three-valued logic.
type Mask struct {
	truth []byte // one of isFalse, isNull, isTrue a row
}

// The values are ordered so that AND is the minimum, OR the maximum and NOT the
// distance from isTrue.
const (
	isFalse byte = iota
	isNull
	isTrue
)

// Len is the number of rows.
func (m *Mask) Len() int { return len(m.truth) }

// Matches tells whether row i passes the filter, that is, whether the predicate is
// true for it (neither false nor NULL).
func (m *Mask) Matches(i int) bool { return m.truth[i] == isTrue }

// Count is the number of rows that pass.
func (m *Mask) Count() int {
	n := 0
	for _, t := range m.truth {
		n += int(t >> 1)
	}
	return n
}

// Selection appends the numbers of the rows that pass to dst, ascending.
func (m *Mask) Selection(dst []int32) []int32 {
	at := len(dst)
	n := at + m.Count()
	if cap(dst) < n+1 {
		grown := make([]int32, at, n+1)
		copy(grown, dst)
		dst = grown
	}
	out := dst[:n+1] // one more: the slot behind the last is written in vain
	for i, t := range m.truth {
		out[at] = int32(i)
		at += int(t >> 1)
	}
	return out[:n]
}

func newMask(n int, truth byte) *Mask {
	m := &Mask{truth: make([]byte, n)}
	if truth != isFalse {
		for i := range m.truth {
			m.truth[i] = truth
		}
	}
	return m
}

func (m *Mask) and(o *Mask) {
	for i, t := range o.truth {
		m.truth[i] = min(m.truth[i], t)
	}
}

func (m *Mask) or(o *Mask) {
	for i, t := range o.truth {
		m.truth[i] = max(m.truth[i], t)
	}
}

func (m *Mask) not() {
	for i, t := range m.truth {
		m.truth[i] = isTrue - t
	}
}
