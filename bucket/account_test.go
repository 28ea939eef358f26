package bucket

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

// consolidate runs jobs until there is none.
func consolidate(t testing.TB, s *State, frontier int64) (jobs int) {
	t.Helper()
	for {
		j := s.Consolidation(frontier, true)
		if j == nil {
			return jobs
		}
		require.Nil(t, s.Consolidation(frontier, true), "one job at a time")
		r, err := j.Run(context.Background(), nil)
		require.NoError(t, err)
		require.True(t, s.Consolidated(r))
		jobs++
	}
}

// retained walks everything that the runs of a bucket keep alive and adds up the
// capacities of the buffers.
func retained(s *State) (n int64) {
	for _, g := range append([]*segment{s.building}, s.sealed...) {
		for _, r := range g.runs {
			if r.chunk != nil {
				n += chunkBytesOf(r.chunk.prefix)
				continue
			}
			for _, c := range r.block.Columns {
				n += dataBytes(c.Data())
			}
			n += int64(cap(r.block.Kinds) + 4*cap(r.block.Seq.Perm) + 8*cap(r.block.Seq.Explicit))
		}
		if g.open != nil {
			n += chunkBytesOf(g.open.prefix)
		}
	}
	return n
}

func dataBytes(d arrow.ArrayData) (n int64) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(cap(b.Bytes()))
		}
	}
	for _, c := range d.Children() {
		n += dataBytes(c)
	}
	return n
}

func chunkBytesOf(p prefix) int64 {
	n := int64(cap(p.buffers.kinds) + 8*cap(p.marks) + 16*cap(p.jumps))
	for _, c := range p.buffers.columns {
		n += int64(cap(c.values) + 4*cap(c.offsets) + cap(c.text) + cap(c.valid))
	}
	return n
}
