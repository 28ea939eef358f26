package merge

import (
	"context"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline/paimon/predicate"
)

// NewFilter passes the rows of source on for which the predicate is true, exactly.
// p is bound to the layout's fields (nil: every row), and its columns are among
// those that the source yields. It works on the kinds of rows that come: below a
// merge only key predicates are allowed (predicate.SplitKey). Blocks keep kinds
// and numbers; whole blocks are passed without copying, others are copied to
// alloc (nil: the Go heap). The filter owns the source.
func NewFilter(layout Layout, source Source, p *predicate.Predicate, alloc memory.Allocator) Source {
	if p == nil {
		return source
	}
	return &filterSource{layout: layout, source: source, predicate: p, alloc: alloc}
}

type filterSource struct {
	layout    Layout
	source    Source
	predicate *predicate.Predicate
	alloc     memory.Allocator
	sel       []int32
	out       handed
	err       error
}

func (s *filterSource) Next(ctx context.Context) (*Block, error) {
	s.out.turn()
	for s.err == nil {
		var b *Block
		if b, s.err = s.source.Next(ctx); s.err != nil {
			break
		}
		mask := s.predicate.Eval(func(name string) arrow.Array {
			for i, f := range s.layout.Fields {
				if f.Name == name {
					return b.Columns[i]
				}
			}
			return nil
		}, b.Rows)
		if n := mask.Count(); n > 0 {
			s.sel = mask.Selection(s.sel[:0])
			s.out[0] = s.take(b, n)
			return s.out[0], nil
		}
	}
	return nil, s.err
}

// take copies the selected rows of b, all or n of them.
func (s *filterSource) take(b *Block, n int) *Block {
	sel := s.sel
	if n == b.Rows {
		sel = nil
	}
	out := &Block{Columns: GatherWith(s.alloc, b.Columns, sel), Rows: n, Unique: b.Unique}
	if b.Kinds != nil {
		out.Kinds = pick(b.Kinds, s.sel)
	}
	switch {
	case b.Seq.Explicit != nil:
		out.Seq.Explicit = pick(b.Seq.Explicit, s.sel)
	case b.Seq.Perm != nil:
		out.Seq = Numbers{Base: b.Seq.Base, Perm: pick(b.Seq.Perm, s.sel)}
	default:
		out.Seq = Numbers{Base: b.Seq.Base}
		if sel != nil {
			out.Seq.Perm = slices.Clone(sel)
		}
	}
	return out
}

// pick copies what sel names, also where that is all: the source may reuse its
// slices before the filter's block ends.
func pick[T any](from []T, sel []int32) []T {
	to := make([]T, len(sel))
	for i, r := range sel {
		to[i] = from[r]
	}
	return to
}

func (s *filterSource) Close() error {
	s.out.release()
	if s.err == nil {
		s.err = io.EOF
	}
	return s.source.Close()
}

// NewLimit passes the first rows rows of source on and then ends; it owns the
// source.
func NewLimit(source Source, rows int64) Source { return &limitSource{source: source, left: rows} }

type limitSource struct {
	source Source
	left   int64
	out    handed
}

func (s *limitSource) Next(ctx context.Context) (*Block, error) {
	s.out.turn()
	if s.left <= 0 {
		return nil, io.EOF
	}
	b, err := s.source.Next(ctx)
	if err != nil {
		return nil, err
	}
	if int64(b.Rows) <= s.left {
		s.left -= int64(b.Rows)
		return b, nil
	}
	n := int(s.left)
	s.left = 0
	cut := *b
	cut.Rows = n
	cut.Columns = make([]arrow.Array, len(b.Columns))
	for i, c := range b.Columns {
		if c != nil {
			cut.Columns[i] = array.NewSlice(c, 0, int64(n))
		}
	}
	if b.Kinds != nil {
		cut.Kinds = b.Kinds[:n]
	}
	if b.Seq.Perm != nil {
		cut.Seq.Perm = b.Seq.Perm[:n]
	}
	if b.Seq.Explicit != nil {
		cut.Seq.Explicit = b.Seq.Explicit[:n]
	}
	s.out[0] = &cut
	return s.out[0], nil
}

func (s *limitSource) Close() error {
	s.left = 0
	s.out.release()
	return s.source.Close()
}
