package harness

import (
	"fmt"
	"slices"
	"sort"
	"sync"
)

// State is the plain model of a table: the rows after a number of writes.
type State struct {
	append bool
	live   map[uint64]uint64 // key hash -> row hash; unused in append tables
	digest Digest
	writes int64 // applied
	rows   int64 // input rows of those
}

// NewState starts with an empty table.
func NewState(appendTable bool) *State {
	return &State{append: appendTable, live: map[uint64]uint64{}}
}

// Apply carries out one write.
func (s *State) Apply(changes []Change) {
	for _, c := range changes {
		if s.append {
			s.digest.add(c.Row)
			continue
		}
		old, there := s.live[c.Key]
		if there {
			s.digest.remove(old)
		}
		switch {
		case !c.Delete:
			s.live[c.Key] = c.Row
			s.digest.add(c.Row)
		case there:
			delete(s.live, c.Key)
		}
	}
	s.writes++
	s.rows += int64(len(changes))
}

// Digest stands for the rows of the table.
func (s *State) Digest() Digest { return s.digest }

// boundary is the state after a write.
type boundary struct {
	epoch  int64 // of the write
	writes int64 // up to and including it
	rows   int64 // input rows up to and including it
	digest Digest
}

// pruneAt is the number of boundaries from which on old ones are dropped.
const pruneAt = 1 << 18

// Model answers for every boundary between two writes what the table holds there.
// Writes are applied in order by one goroutine; any number of readers ask.
//
// A write becomes visible before its caller learns its epoch. So it is announced
// with Begin, and a question waits until every write that had begun when it was
// asked is settled, or a later epoch than the asked one is known.
type Model struct {
	mutex   sync.Mutex
	changed *sync.Cond
	state   *State
	bounds  []boundary // sorted; the first is the empty table or the oldest kept
	begun   int64
	settled int64
	failed  error
	keepAll bool
	proven  int64           // epoch of the newest boundary found in a snapshot
	pins    map[int64]int64 // reader -> oldest epoch that it may ask for
	pinned  int64           // readers so far
}

// NewModel models an empty table. Without readers only the newest boundary is
// worth keeping.
func NewModel(appendTable, readers bool) *Model {
	m := &Model{state: NewState(appendTable), keepAll: readers, bounds: []boundary{{}}, pins: map[int64]int64{}}
	m.changed = sync.NewCond(&m.mutex)
	return m
}

// Begin announces a write.
func (m *Model) Begin() {
	m.mutex.Lock()
	m.begun++
	m.mutex.Unlock()
}

// Cancel takes back an announcement: nothing was written.
func (m *Model) Cancel() {
	m.mutex.Lock()
	m.begun--
	m.changed.Broadcast()
	m.mutex.Unlock()
}

// Apply settles the oldest announced write: it has this epoch and these changes.
func (m *Model) Apply(epoch int64, changes []Change) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.state.Apply(changes)
	b := boundary{epoch: epoch, writes: m.state.writes, rows: m.state.rows, digest: m.state.digest}
	if !m.keepAll {
		m.bounds = m.bounds[:0]
	}
	m.bounds = append(m.bounds, b)
	m.settled++
	if len(m.bounds) >= pruneAt {
		m.prune()
	}
	m.changed.Broadcast()
}

// Fail wakes everybody: announced writes will never be settled.
func (m *Model) Fail(err error) {
	m.mutex.Lock()
	if m.failed == nil {
		m.failed = err
	}
	m.changed.Broadcast()
	m.mutex.Unlock()
}

// Pin keeps the boundaries that a read which starts now may need, until Unpin.
func (m *Model) Pin() (id int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.pinned++
	m.pins[m.pinned] = m.proven
	return m.pinned
}

// Unpin ends a Pin.
func (m *Model) Unpin(id int64) {
	m.mutex.Lock()
	delete(m.pins, id)
	m.mutex.Unlock()
}

// prune drops what nobody can ask for: snapshots only get newer, and a union read
// sees at least the newest snapshot. Half of the limit stays, so that pruning
// costs nothing a write.
func (m *Model) prune() {
	low := m.proven
	for _, epoch := range m.pins {
		low = min(low, epoch)
	}
	if at := m.find(low); at > len(m.bounds)/2 {
		m.bounds = slices.Clone(m.bounds[at:])
	}
}

// find is the index of the newest boundary at or below an epoch.
func (m *Model) find(epoch int64) int {
	return sort.Search(len(m.bounds), func(i int) bool { return m.bounds[i].epoch > epoch }) - 1
}

// settle waits until every boundary up to epoch is known.
func (m *Model) settle(epoch int64) error {
	target := m.begun
	for m.failed == nil && m.settled < min(target, m.begun) && m.bounds[len(m.bounds)-1].epoch < epoch {
		m.changed.Wait()
	}
	return m.failed
}

// At is the state after exactly the writes with epochs up to a frontier.
func (m *Model) At(frontier int64) (boundary, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := m.settle(frontier); err != nil {
		return boundary{}, err
	}
	at := m.find(frontier)
	if at < 0 {
		return boundary{}, fmt.Errorf("a read reports frontier %d, older than a snapshot read before it", frontier)
	}
	return m.bounds[at], nil
}

// AtRows is the state after a number of input rows; ok is false when that is no
// boundary between two writes.
func (m *Model) AtRows(rows int64) (b boundary, ok bool, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	target := m.begun
	for m.failed == nil && m.settled < min(target, m.begun) && m.bounds[len(m.bounds)-1].rows < rows {
		m.changed.Wait()
	}
	if m.failed != nil {
		return boundary{}, false, m.failed
	}
	at := sort.Search(len(m.bounds), func(i int) bool { return m.bounds[i].rows >= rows })
	if at == len(m.bounds) || m.bounds[at].rows != rows {
		return boundary{}, false, nil
	}
	return m.bounds[at], true, nil
}

// Proven says that a boundary was found in a snapshot: no later read asks for an
// older one.
func (m *Model) Proven(epoch int64) {
	m.mutex.Lock()
	m.proven = max(m.proven, epoch)
	m.mutex.Unlock()
}

// Newest is the state after all writes.
func (m *Model) Newest() boundary {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for m.failed == nil && m.settled < m.begun {
		m.changed.Wait()
	}
	return m.bounds[len(m.bounds)-1]
}
