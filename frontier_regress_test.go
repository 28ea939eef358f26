package tideline_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/mem"
)

// pausing holds up the first look at a file after it was armed.
type pausing struct {
	fs.FileIO
	armed   atomic.Bool
	reached chan struct{}
	resume  chan struct{}
}

func (p *pausing) pause() {
	if p.armed.CompareAndSwap(true, false) {
		close(p.reached)
		<-p.resume
	}
}

func (p *pausing) Open(ctx context.Context, name string) (fs.File, error) {
	p.pause()
	return p.FileIO.Open(ctx, name)
}

func (p *pausing) Stat(ctx context.Context, name string) (fs.Info, error) {
	p.pause()
	return p.FileIO.Stat(ctx, name)
}

func (p *pausing) List(ctx context.Context, dir string) ([]fs.Info, error) {
	p.pause()
	return p.FileIO.List(ctx, dir)
}

// A read that is overtaken by a commit sees the new snapshot, and with it writes
// after the frontier it began with: the frontier it reports must cover them.
func TestFrontierCoversTheSnapshotOfTheRead(t *testing.T) {
	ctx := t.Context()
	store := &pausing{FileIO: mem.New(), reached: make(chan struct{}), resume: make(chan struct{})}
	table, err := tideline.Create(ctx, "warehouse/people", tideline.Definition{Columns: people, PrimaryKey: []string{"id"}}, tideline.Options{IO: store})
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close(context.Background())) }()
	w, err := table.Writer(ctx)
	require.NoError(t, err)
	_, err = w.Write(ctx, rows(t, 1, "ada"))
	require.NoError(t, err)
	_, err = w.Commit(ctx)
	require.NoError(t, err)

	store.armed.Store(true)
	type answer struct {
		lines    []string
		frontier int64
		err      error
	}
	read := make(chan answer)
	go func() {
		r, err := table.Scan().Read(ctx)
		if err != nil {
			read <- answer{err: err}
			return
		}
		frontier := r.Frontier()
		read <- answer{lines: drain(t, r), frontier: frontier}
	}()
	<-store.reached
	ack, err := w.Write(ctx, rows(t, 2, "bob"))
	require.NoError(t, err)
	_, err = w.Commit(ctx)
	require.NoError(t, err)
	close(store.resume)
	got := <-read
	require.NoError(t, got.err)
	require.ElementsMatch(t, []string{"1=ada", "2=bob"}, got.lines)
	require.GreaterOrEqual(t, got.frontier, ack.Epoch)
	require.NoError(t, w.Close(ctx))
}
