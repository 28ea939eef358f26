package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tideline-db/tideline/merge"
)

// modelRow is one written row of the slow model.
type modelRow struct {
	epoch, seq int64
	kind       int8
	key        int
	text       string
	segment    int
}

// model keeps every row that was written, in the order of writing.
type model struct {
	pk         bool
	rows       []modelRow
	begin, end []int64 // of the segments, by number
	prepared   []bool
	dropped    int // segments reclaimed
	next, seq  int64
}

func (m *model) building() int { return len(m.begin) - 1 }

func (m *model) open() {
	m.begin, m.end, m.prepared = append(m.begin, m.next), append(m.end, m.next), append(m.prepared, false)
}

// visible are the rows from a committed end on, of epochs up to a frontier: as
// they came, or the newest of each key in key order.
func (m *model) visible(committedEnd, frontier int64) []string {
	var out []string
	newest := map[int]modelRow{}
	for _, r := range m.rows {
		if r.segment < m.dropped || m.end[r.segment] <= committedEnd || r.epoch > frontier {
			continue
		}
		if m.pk {
			if have, ok := newest[r.key]; !ok || have.seq < r.seq {
				newest[r.key] = r
			}
		} else {
			out = append(out, fmt.Sprintf("-1 0 %d|%s", r.key, r.text))
		}
	}
	var keys []int
	for k := range newest {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		r := newest[k]
		out = append(out, fmt.Sprintf("%d %d %d|%s", r.seq, r.kind, r.key, r.text))
	}
	return out
}

// seen reads the rows of runs and, with a key, merges them by sequence number.
func seen(t require.TestingT, runs []*Run, pk bool) []string {
	var out []string
	newest := map[int64]string{}
	seqs := map[int64]int64{}
	for _, r := range runs {
		b := r.Block(nil)
		require.Equal(t, b.Rows, r.Rows)
		last := int64(-1 << 62)
		keys := own(r.t.columns[0], b.Columns[0])
		for i := range b.Rows {
			key := int64(keys.fixed[i*8]) | int64(keys.fixed[i*8+1])<<8
			kind := merge.KindInsert
			if b.Kinds != nil {
				kind = b.Kinds[i]
			}
			cells := fmt.Sprintf("%d|%s|%s", key, b.Columns[1].ValueStr(i), b.Columns[2].ValueStr(i))
			if !pk {
				out = append(out, fmt.Sprintf("-1 %d %s", kind, cells))
				continue
			}
			require.LessOrEqual(t, last, key, "a run is in key order")
			last = key
			if have, ok := seqs[key]; !ok || have < b.Seq.At(i) {
				seqs[key] = b.Seq.At(i)
				newest[key] = fmt.Sprintf("%d %d %s", b.Seq.At(i), kind, cells)
			}
		}
	}
	var keys []int64
	for k := range newest {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		out = append(out, newest[k])
	}
	return out
}

// picture is a view with what it must show forever.
type picture struct {
	view             *View
	committed, epoch int64
	want             []string
	mayRetry         bool
}

func TestStateAgreesWithTheModel(t *testing.T) {
	tables := map[bool]*Table{false: plain(t), true: keyed(t)}
	rapid.Check(t, func(rt *rapid.T) { runModel(rt, tables[rapid.Bool().Draw(rt, "primary key")]) })
}

func runModel(t *rapid.T, table *Table) {
	m := &model{pk: table.IsPrimaryKey(), next: 3, seq: 5}
	m.open()
	s := NewState(table, &Part{PartitionRow: unpartitioned.PartitionRow}, Restore{NextOffset: 3, NextSeq: 5, CommittedEnd: 3})
	callers := rapid.Bool().Draw(t, "offsets of the caller")
	p := NewPreparer(table)
	epoch := int64(10)
	var pictures []picture
	var job *Job
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		epoch += int64(rapid.IntRange(1, 3).Draw(t, "epochs"))
		switch rapid.SampledFrom([]string{"write", "write", "write", "write", "seal", "prepare", "reclaim", "raise", "job", "done"}).Draw(t, "step") {
		case "write":
			m.write(t, p, s, epoch, callers)
		case "seal":
			seg := s.Seal(epoch)
			g := m.building()
			if m.begin[g] == m.end[g] {
				require.Nil(t, seg)
				break
			}
			require.Equal(t, [2]int64{m.begin[g], m.end[g]}, [2]int64{seg.Begin, seg.End})
			m.open()
		case "prepare":
			m.prepare(t, s)
		case "reclaim":
			end := rapid.Int64Range(0, m.next+1).Draw(t, "committed end")
			s.Reclaim(end)
			for m.dropped < m.building() && m.end[m.dropped] <= end {
				m.dropped++
			}
		case "raise":
			to := rapid.Int64Range(0, m.seq+20).Draw(t, "sequence")
			s.RaiseSequence(to)
			m.seq = max(m.seq, to+1)
		case "job":
			if job == nil {
				job = s.Consolidation(rapid.Int64Range(9, epoch).Draw(t, "frontier of the job"), rapid.Bool().Draw(t, "quiet"))
			}
		case "done":
			if job != nil {
				r, err := job.Run(context.Background(), nil)
				require.NoError(t, err)
				s.Consolidated(r)
				job = nil
			}
		}
		pictures = append(pictures, m.picture(t, s, epoch))
	}
	for _, p := range pictures {
		p.check(t, m.pk)
	}
	d := s.Describe()
	require.Equal(t, m.next, d.NextOffset)
	require.Equal(t, m.seq, d.NextSeq)
	bytes := int64(0)
	for _, g := range append([]*segment{s.building}, s.sealed...) {
		for _, r := range g.runs {
			bytes += r.Bytes
		}
		if g.open != nil {
			bytes += g.open.used
		}
	}
	require.Equal(t, bytes, d.BuildingBytes+d.SealedBytes)
}

func (m *model) write(t *rapid.T, p *Preparer, s *State, epoch int64, callers bool) {
	rows := rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(64, 70), rapid.IntRange(600, 620)).Draw(t, "rows")
	keys := rapid.SampledFrom([]int{3, 50, 1000}).Draw(t, "keys")
	seed := rapid.Uint64().Draw(t, "seed")
	var json strings.Builder
	var kinds []int8
	var offsets []int64
	for i := range rows {
		x := mix(seed + uint64(i))
		r := modelRow{epoch: epoch, seq: m.seq, key: int(x % uint64(keys)), segment: m.building()}
		if m.pk {
			r.kind = int8(x >> 20 % 16)
			if r.kind > 3 {
				r.kind = 0
			}
		}
		a, text := fmt.Sprint(x>>32%1000), `"`+strings.Repeat("x", int(x>>40%9))+`"`
		if x>>50%5 == 0 {
			a = "null"
		}
		if x>>55%5 == 0 {
			text = "null"
		}
		fmt.Fprintf(&json, `,{"k":%d,"a":%s,"s":%s}`, r.key, a, text)
		r.text = strings.ReplaceAll(strings.ReplaceAll(a+"|"+text, "null", "(null)"), `"`, "")
		if callers {
			m.next += int64(x >> 60)
			offsets = append(offsets, m.next)
		}
		if b := m.building(); m.begin[b] == m.end[b] {
			m.begin[b] = m.next
		}
		m.next++
		m.end[m.building()] = m.next
		m.seq++
		m.rows = append(m.rows, r)
		kinds = append(kinds, r.kind)
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, s.t.ArrowSchema(), strings.NewReader("["+json.String()[1:]+"]"))
	require.NoError(t, err)
	prepared, err := p.Prepare(rec, kinds, offsets)
	require.NoError(t, err)
	require.NoError(t, s.Append(prepared.Parts[0], epoch))
}

func (m *model) prepare(t *rapid.T, s *State) {
	taken := s.TakePrepare()
	for g := m.dropped; g < m.building(); g++ {
		if m.prepared[g] {
			continue
		}
		require.NotEmpty(t, taken)
		require.Equal(t, [2]int64{m.begin[g], m.end[g]}, [2]int64{taken[0].Begin, taken[0].End})
		m.prepared[g] = true
		if rapid.Bool().Draw(t, "aborted") {
			s.Rejoin(taken[0])
			m.prepared[g] = false
		}
		taken = taken[1:]
	}
	require.Empty(t, taken)
}

// picture takes a view and decides what a plan over it must see.
func (m *model) picture(t *rapid.T, s *State, epoch int64) picture {
	p := picture{view: s.View(), epoch: rapid.Int64Range(9, epoch).Draw(t, "frontier")}
	g := rapid.IntRange(m.dropped, m.building()).Draw(t, "first segment")
	p.committed = m.begin[g]
	p.want = m.visible(p.committed, p.epoch)
	p.mayRetry = p.epoch < p.view.ConsolidatedTo
	require.Equal(t, m.next, p.view.End)
	if rapid.Bool().Draw(t, "looked at early") {
		p.check(t, m.pk)
	}
	return p
}

func (p *picture) check(t *rapid.T, pk bool) {
	runs, err := p.view.Runs(p.committed, p.epoch)
	if p.mayRetry && errors.Is(err, ErrRetryPlan) {
		return
	}
	require.NoError(t, err)
	require.Equal(t, p.want, seen(t, runs, pk))
}
