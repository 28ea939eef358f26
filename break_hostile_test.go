package tideline_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/mem"
)

func treeOf(t *testing.T, io fs.FileIO, dir string) (names []string) {
	infos, err := io.List(t.Context(), dir)
	require.NoError(t, err)
	for _, i := range infos {
		if i.IsDir {
			names = append(names, treeOf(t, io, fs.Join(dir, i.Name))...)
		} else {
			names = append(names, fs.Join(dir, i.Name))
		}
	}
	return names
}

// use does with a table what a reader and a writer do.
func use(ctx context.Context, w *world) (err error) {
	table, err := tideline.Open(ctx, w.path, tideline.Options{IO: w.disk, CommitUser: "ours"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.Close(context.Background())) }()
	scan := func(s tideline.Scan) error {
		r, err := s.Read(ctx)
		if err != nil {
			return err
		}
		defer r.Release()
		for r.Next() {
			for i := range int(r.RecordBatch().NumRows()) {
				_ = line(r.RecordBatch(), i)
			}
		}
		return r.Err()
	}
	err = errors.Join(scan(table.Scan()), scan(table.Scan().Select()), scan(table.Scan().AtSnapshot(1)))
	_, perr := table.Progress(ctx, 0)
	err = errors.Join(err, perr)
	writer, werr := table.Writer(ctx)
	if werr != nil {
		return errors.Join(err, werr)
	}
	r := rand.New(rand.NewPCG(1, 1))
	batch := randomRows(w.t, w.def.Columns, r, 5)
	if _, werr = writer.Write(ctx, batch); werr == nil {
		_, werr = writer.Commit(ctx)
	}
	err = errors.Join(err, werr, scan(table.Scan()))
	_ = writer.Discard(ctx)
	return err
}

// Damaged bytes anywhere are an error of a known kind, never a panic, a hang or
// a huge allocation.
func TestDamagedBytesAnywhere(t *testing.T) {
	rounds := 150
	if n, err := strconv.Atoi(os.Getenv("TIDELINE_DAMAGE")); err == nil {
		rounds = n
	}
	known := []error{tideline.ErrInvalid, tideline.ErrUnsupported, tideline.ErrConflict, tideline.ErrFenced, tideline.ErrCorrupt, tideline.ErrSnapshotExpired, tideline.ErrPoisoned, tideline.ErrOverloaded, fs.ErrNotExist}
	for _, pk := range []bool{true, false} {
		def := tideline.Definition{Columns: everything, Options: map[string]string{"bucket": "1", "bucket-key": "s"}}
		if pk {
			def.PrimaryKey = []string{"f", "s"}
		}
		seed := uint64(time.Now().UnixNano())
		if os.Getenv("TIDELINE_DAMAGE") == "" {
			seed = 7
		}
		r := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(t, def)
		table, writer := w.session()
		for range 3 {
			_, err := writer.Write(t.Context(), randomRows(t, def.Columns, r, 90))
			require.NoError(t, err)
			commit(t, writer)
		}
		require.NoError(t, writer.Close(t.Context()))
		require.NoError(t, table.Close(t.Context()))
		names := treeOf(t, w.disk, w.path)
		for round := range rounds {
			sound := w.disk
			w.disk = sound.CrashClone(mem.KeepAll)
			name := names[r.IntN(len(names))]
			data, err := fs.ReadAll(t.Context(), w.disk, name, 1<<24)
			require.NoError(t, err)
			data = append([]byte(nil), data...)
			damage(r, data, &data)
			require.NoError(t, w.disk.Overwrite(t.Context(), name, data))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			err = use(ctx, w)
			cancel()
			runtime.ReadMemStats(&after)
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("seed %d round %d: %s took %s", seed, round, name, took)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 400<<20 {
				t.Errorf("seed %d round %d: %s allocated %d MiB: %v", seed, round, name, n>>20, err)
			}
			if err != nil {
				ok := !strings.Contains(err.Error(), "panick")
				if list, is := err.(interface{ Unwrap() []error }); is {
					for _, e := range list.Unwrap() {
						ok = ok && isAny(e, known)
					}
				}
				if !ok || !isAny(err, known) {
					t.Errorf("seed %d round %d: %s: %v", seed, round, name, err)
				}
			}
			w.disk = sound
		}
	}
}

func isAny(err error, known []error) bool {
	for _, k := range known {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

func damage(r *rand.Rand, data []byte, out *[]byte) {
	if len(data) == 0 {
		*out = []byte{1}
		return
	}
	switch r.IntN(5) {
	case 0:
		*out = data[:r.IntN(len(data))]
	case 1:
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
	case 2:
		for range 1 + r.IntN(8) {
			data[r.IntN(len(data))] = byte(r.Uint32())
		}
	case 3: // near the end, where footers are
		data[len(data)-1-r.IntN(min(len(data), 3000))] = byte(r.Uint32())
	case 4:
		at, n := r.IntN(len(data)), 1+r.IntN(16)
		*out = append(append([]byte(nil), data[:at]...), data[min(at+n, len(data)):]...)
	}
}
