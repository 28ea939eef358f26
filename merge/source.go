package merge

import "context"

// Source yields the blocks of one sorted run in key order (append tables: in
// write order). Next returns io.EOF at the end. A block stays valid until the
// second following call of Next or Close; who keeps rows longer copies or
// retains the arrays. Close releases everything, also after an error, and may be
// called twice.
type Source interface {
	Next(ctx context.Context) (*Block, error)
	Close() error
}
