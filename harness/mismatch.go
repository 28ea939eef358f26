package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// diffsMax bounds the differing rows of a report, historyMax the versions shown
// of each.
const (
	diffsMax   = 5
	historyMax = 6
)

// Mismatch is the error of a read that returned other rows than the model.
type Mismatch struct {
	Seed     uint64 `json:"seed"`
	Read     string `json:"read"` // which read, in words
	Frontier int64  `json:"frontier"`
	Snapshot int64  `json:"snapshot"`
	Writes   int64  `json:"writes"` // that the model had applied there
	Want     Digest `json:"want"`
	Got      Digest `json:"got"`
	Reason   string `json:"reason,omitempty"` // when it is not about single rows
	Diffs    []Diff `json:"diffs,omitempty"`
	More     int64  `json:"more,omitempty"` // differing rows left out
}

// Diff is one differing row.
type Diff struct {
	Problem string   `json:"problem"` // missing, extra, differs, duplicate
	Key     string   `json:"key"`
	Want    string   `json:"want,omitempty"`
	Got     string   `json:"got,omitempty"`
	History []string `json:"history,omitempty"` // what the writes did to the key, newest last
}

// Error is a report of several lines.
func (m *Mismatch) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mismatch: %s at frontier %d, snapshot %d, after %d writes (seed %d)", m.Read, m.Frontier, m.Snapshot, m.Writes, m.Seed)
	if m.Reason != "" {
		fmt.Fprintf(&b, ": %s", m.Reason)
	}
	fmt.Fprintf(&b, "\n  want %s\n  got  %s", m.Want, m.Got)
	for _, d := range m.Diffs {
		fmt.Fprintf(&b, "\n  %s: %s", d.Problem, d.Key)
		if d.Want != "" {
			fmt.Fprintf(&b, "\n    want %s", d.Want)
		}
		if d.Got != "" {
			fmt.Fprintf(&b, "\n    got  %s", d.Got)
		}
		for _, h := range d.History {
			fmt.Fprintf(&b, "\n    %s", h)
		}
	}
	if m.More > 0 {
		fmt.Fprintf(&b, "\n  and %d more rows", m.More)
	}
	return b.String()
}

// explain finds the differing rows by writing the input again to a map, up to
// the boundary of the read.
func explain(source Source, l layout, writes int64, got []arrow.RecordBatch, m *Mismatch) error {
	want := map[uint64]version{}
	err := replay(source, l, writes, func(write int64, _ *Batch, changes []Change) {
		for _, c := range changes {
			v := want[c.Key]
			v.row, v.count = c.Row, 1
			if l.append() {
				v.count = want[c.Key].count + 1
			}
			if want[c.Key] = v; c.Delete {
				delete(want, c.Key)
			}
		}
	})
	if err != nil {
		return err
	}
	found, err := compare(l, want, got, m)
	if err != nil {
		return err
	}
	return replay(source, l, writes, func(write int64, b *Batch, changes []Change) {
		for i, c := range changes {
			at, ok := found[c.Key]
			if !ok {
				continue
			}
			d := &m.Diffs[at]
			text := l.text(b.Record, i, nil)
			d.Key = l.text(b.Record, i, l.key)
			if _, live := want[c.Key]; live && !c.Delete {
				d.Want = text
			}
			verb := "upsert"
			if c.Delete {
				verb = "delete"
			}
			d.History = append(d.History, fmt.Sprintf("write %d row %d %s %s", write, i, verb, text))
			if len(d.History) > historyMax {
				d.History = d.History[1:]
			}
		}
	})
}

// version is what the model has of a key.
type version struct {
	row   uint64
	count int // rows that are alike, 1 unless it is an append table
	seen  int
}

// compare fills the diffs of m from the rows that were read, in their order, and
// then from those that are missing. It returns the index of the diff of each key.
func compare(l layout, want map[uint64]version, got []arrow.RecordBatch, m *Mismatch) (map[uint64]int, error) {
	found := map[uint64]int{}
	add := func(key uint64, d Diff) {
		if len(m.Diffs) == diffsMax {
			m.More++
			return
		}
		if _, twice := found[key]; !twice {
			found[key] = len(m.Diffs)
		}
		m.Diffs = append(m.Diffs, d)
	}
	for _, record := range got {
		changes, err := l.changes(record, nil, nil)
		if err != nil {
			return nil, err
		}
		for i, c := range changes {
			problem := ""
			v, there := want[c.Key]
			v.seen++
			switch {
			case !there:
				problem = "extra row"
			case v.seen > v.count:
				problem = "duplicate row"
			case v.row != c.Row:
				problem = "row differs"
			}
			if problem != "" {
				add(c.Key, Diff{Problem: problem, Key: l.text(record, i, l.key), Got: l.text(record, i, nil)})
			}
			if there {
				want[c.Key] = v
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		for range want[key].count - want[key].seen {
			add(key, Diff{Problem: "missing row"})
		}
	}
	return found, nil
}

// replay runs the first writes of a source.
func replay(source Source, l layout, writes int64, each func(write int64, b *Batch, changes []Change)) error {
	feed, err := source.Feed()
	if err != nil {
		return err
	}
	defer func() { _ = feed.Close() }() // only read from
	var changes []Change
	for write := int64(1); write <= writes; write++ {
		job, err := feed.Next()
		if err != nil || job == nil {
			return err
		}
		b, err := job()
		if err != nil {
			return err
		}
		changes, err = l.changes(b.Record, b.Kinds, changes[:0])
		if err == nil {
			each(write, b, changes)
		}
		b.Record.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
