package merge

import (
	"context"
	"errors"
	"io"
)

// Source yields the blocks of one sorted run in key order (append tables: in
// write order). Next returns io.EOF at the end. A block stays valid until the
// second following call of Next or Close; who keeps rows longer copies or
// retains the arrays. Close releases everything, also after an error, and may be
// called twice.
type Source interface {
	Next(ctx context.Context) (*Block, error)
	Close() error
}

// NewBlockSource yields blocks that are in memory already. It takes no ownership:
// the blocks must outlive what is read from it.
func NewBlockSource(blocks ...*Block) Source { return &blockSource{blocks: blocks} }

type blockSource struct {
	blocks []*Block
	closed bool
}

func (s *blockSource) Next(ctx context.Context) (*Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.last() {
		return nil, io.EOF
	}
	b := s.blocks[0]
	s.blocks = s.blocks[1:]
	return b, nil
}

// last tells that Next would return io.EOF, so that a union need not ask.
func (s *blockSource) last() bool { return s.closed || len(s.blocks) == 0 }

func (s *blockSource) Close() error {
	s.closed = true
	return nil
}

// NewConcat yields the blocks of the sources one after the other, as append
// tables are read. It closes each source when it is read to its end, and all of
// them with Close.
func NewConcat(sources []Source) Source { return &concatSource{sources: sources} }

type concatSource struct {
	sources []Source
	// A block outlives one further Next, which may be the first of the next
	// source, so an exhausted source is closed one step late.
	spent []Source
	err   error
}

func (s *concatSource) Next(ctx context.Context) (*Block, error) {
	if s.err != nil {
		return nil, s.err
	}
	closing := s.spent
	s.spent = nil
	if err := closeAll(closing); err != nil {
		return nil, s.fail(err)
	}
	for len(s.sources) > 0 {
		b, err := s.sources[0].Next(ctx)
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, s.fail(err)
		}
		s.spent = append(s.spent, s.sources[0])
		s.sources = s.sources[1:]
	}
	return nil, s.fail(io.EOF)
}

func (s *concatSource) fail(err error) error {
	s.err = err
	return err
}

func (s *concatSource) Close() error {
	err := errors.Join(closeAll(s.spent), closeAll(s.sources))
	s.spent, s.sources, s.err = nil, nil, io.EOF
	return err
}

func closeAll(sources []Source) error {
	var err error
	for _, s := range sources {
		err = errors.Join(err, s.Close())
	}
	return err
}
