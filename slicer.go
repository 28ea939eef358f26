package tideline

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tideline-db/tideline/merge"
)

// slicer cuts the blocks of a source that merges nothing to at most rows rows,
// without copying. It keeps the contract of merge.Source: a slice is valid until
// the second following call.
type slicer struct {
	source merge.Source
	rows   int
	block  *merge.Block // being cut
	at     int
	live   [2]*merge.Block
}

func (s *slicer) Next(ctx context.Context) (*merge.Block, error) {
	for s.block == nil || s.at == s.block.Rows {
		block, err := s.source.Next(ctx)
		if err != nil {
			return nil, err
		}
		s.block, s.at = block, 0
	}
	drop(s.live[1])
	to := min(s.at+s.rows, s.block.Rows)
	piece := &merge.Block{Rows: to - s.at, Columns: make([]arrow.Array, len(s.block.Columns))}
	for i, c := range s.block.Columns {
		if c != nil {
			piece.Columns[i] = array.NewSlice(c, int64(s.at), int64(to))
		}
	}
	s.at = to
	s.live = [2]*merge.Block{piece, s.live[0]}
	return piece, nil
}

func (s *slicer) Close() error {
	drop(s.live[0])
	drop(s.live[1])
	s.live = [2]*merge.Block{}
	return s.source.Close()
}

func drop(b *merge.Block) {
	if b == nil {
		return
	}
	for _, c := range b.Columns {
		if c != nil {
			c.Release()
		}
	}
}
