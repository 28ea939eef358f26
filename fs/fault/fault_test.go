package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/fstest"
	"github.com/tideline-db/tideline/fs/local"
	"github.com/tideline-db/tideline/fs/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformanceWithoutFaults(t *testing.T) {
	fstest.Run(t, func(t *testing.T) (fs.FileIO, string) {
		return Wrap(local.New(local.Options{Sync: local.SyncNone}), Plan{}), t.TempDir()
	})
}

// script publishes one small table the way a commit does and reads it back. It
// returns the first error and checks nothing.
func script(ctx context.Context, store fs.FileIO) error {
	w, err := store.Create(ctx, "t/data")
	if err != nil {
		return err
	}
	if _, err := fs.WriteAll(w, []byte("rows")); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.Commit(); err != nil {
		return err
	}
	if err := store.Sync(ctx, "t/data"); err != nil {
		return err
	}
	if err := store.CreateIfAbsent(ctx, "t/snapshot-1", []byte("data")); err != nil {
		return err
	}
	if err := store.Overwrite(ctx, "t/LATEST", []byte("1")); err != nil {
		return err
	}
	_, err = fs.ReadAll(ctx, store, "t/LATEST", 10)
	if err != nil {
		return err
	}
	if _, err := store.List(ctx, "t"); err != nil {
		return err
	}
	if _, err := store.Stat(ctx, "t/data"); err != nil {
		return err
	}
	return store.Delete(ctx, "t/LATEST")
}

func holds(t *testing.T, store fs.FileIO) string {
	t.Helper()
	infos, err := store.List(t.Context(), "t")
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	list := []string{}
	for _, info := range infos {
		list = append(list, info.Name)
	}
	return strings.Join(list, " ")
}

func TestLogNumbersEveryOperation(t *testing.T) {
	f := Wrap(mem.New(), Plan{})
	require.NoError(t, script(t.Context(), f))
	require.Equal(t, `[0 create t/data 1 write t/data 2 commit t/data 3 sync t/data 4 create-if-absent t/snapshot-1 `+
		`5 overwrite t/LATEST 6 open t/LATEST 7 read t/LATEST 8 list t 9 stat t/data 10 delete t/LATEST]`,
		fmt.Sprint(f.Log()))
	require.Equal(t, 11, f.Count())
	require.Empty(t, f.Injected())
}

// After the fault at each index, the files that exist under final names.
func TestFaultAtEveryIndex(t *testing.T) {
	before := []string{"", "", "", "data", "data", "data snapshot-1", "LATEST data snapshot-1", "LATEST data snapshot-1",
		"LATEST data snapshot-1", "LATEST data snapshot-1", "LATEST data snapshot-1", "data snapshot-1"}
	for k := range len(before) - 1 {
		for _, c := range []struct {
			name string
			plan Plan
			want string
		}{
			{"once", FailOnce(k), before[k]},
			{"onward", FailFrom(k), before[k]},
			{"lost reply", LostReply(k), before[k+1]},
		} {
			inner := mem.New()
			f := Wrap(inner, c.plan)
			require.ErrorIs(t, script(t.Context(), f), ErrInjected, "%s %d", c.name, k)
			require.Equal(t, k, f.Injected()[0].Index)
			require.Equal(t, c.want, holds(t, inner), "%s %d", c.name, k)
			f.SetPlan(Plan{})
			if k < 2 {
				require.NoError(t, script(t.Context(), f), "the fault is gone and left nothing in the way")
			}
		}
	}
}

func TestFailFromKeepsFailing(t *testing.T) {
	f := Wrap(mem.New(), FailFrom(1))
	_, err := f.List(t.Context(), "/")
	require.NoError(t, err)
	for range 3 {
		_, err = f.List(t.Context(), "/")
		require.ErrorIs(t, err, ErrInjected)
		require.EqualError(t, err, "list /: injected fault")
	}
	f = Wrap(mem.New(), FailOnce(0))
	_, err = f.List(t.Context(), "/")
	require.ErrorIs(t, err, ErrInjected)
	_, err = f.List(t.Context(), "/")
	require.NoError(t, err)
}

func TestShortReadsAndWrites(t *testing.T) {
	inner := mem.New()
	f := Wrap(inner, Plan{Rules: []Rule{{Kinds: []Kind{Write, Read}, Onward: true, Do: Decision{Action: Short}}}})
	w, err := f.Create(t.Context(), "f")
	require.NoError(t, err)
	n, err := w.Write([]byte("0123456789"))
	require.NoError(t, err)
	require.Equal(t, 5, n)
	_, err = fs.WriteAll(w, []byte("56789"))
	require.ErrorIs(t, err, io.ErrShortWrite, "half of the last byte is nothing")
	require.NoError(t, w.Commit())
	data, err := fs.ReadAll(t.Context(), inner, "f", 100)
	require.NoError(t, err)
	require.Equal(t, "012345678", string(data))
	_, err = fs.ReadAll(t.Context(), f, "f", 100)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	f.SetPlan(ShortOnce(0))
	require.ErrorIs(t, f.CreateIfAbsent(t.Context(), "g", []byte("x")), io.ErrShortWrite)
	_, err = inner.Stat(t.Context(), "g")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestNoSpaceStrikesOnlyWhatTakesSpace(t *testing.T) {
	inner := mem.New()
	require.NoError(t, script(t.Context(), inner))
	f := Wrap(inner, NoSpaceFrom(0))
	require.True(t, fs.IsNoSpace(f.Overwrite(t.Context(), "t/LATEST", nil)))
	_, err := f.Create(t.Context(), "t/new")
	require.True(t, fs.IsNoSpace(err))
	_, err = fs.ReadAll(t.Context(), f, "t/data", 100)
	require.NoError(t, err)
	require.NoError(t, f.Delete(t.Context(), "t/data"))
	f = Wrap(inner, NoSpaceFrom(1))
	w, err := f.Create(t.Context(), "t/new")
	require.NoError(t, err)
	_, err = w.Write([]byte("x"))
	require.True(t, fs.IsNoSpace(err))
	require.NoError(t, w.Abort())
}

func TestReadOnlyStore(t *testing.T) {
	inner := mem.New()
	require.NoError(t, script(t.Context(), inner))
	f := Wrap(inner, ReadOnly())
	_, err := f.Create(t.Context(), "t/x")
	require.True(t, fs.IsReadOnly(err))
	require.True(t, fs.IsReadOnly(f.CreateIfAbsent(t.Context(), "t/x", nil)))
	require.True(t, fs.IsReadOnly(f.Overwrite(t.Context(), "t/x", nil)))
	require.True(t, fs.IsReadOnly(f.Delete(t.Context(), "t/data")))
	require.ErrorIs(t, f.Sync(t.Context(), "t/data"), syscall.EROFS)
	data, err := fs.ReadAll(t.Context(), f, "t/data", 100)
	require.NoError(t, err)
	require.Equal(t, "rows", string(data))
}

func TestHangEndsWithItsContext(t *testing.T) {
	for k := range 11 {
		ctx, cancel := context.WithCancel(t.Context())
		plan := Plan{Hook: func(op Op) Decision {
			if op.Index != k {
				return Decision{}
			}
			cancel() // the wait begins with a context about to end
			return Decision{Action: Hang}
		}}
		f := Wrap(mem.New(), plan)
		require.ErrorIs(t, script(ctx, f), context.Canceled, "operation %d", k)
		require.Equal(t, k, f.Injected()[0].Index)
	}
}

func TestHookMayUseTheStore(t *testing.T) {
	inner := mem.New()
	crashes := 0
	f := Wrap(inner, Plan{Hook: func(op Op) Decision {
		after := inner.CrashClone(mem.KeepNone)
		crashes++
		want := ""
		if op.Index > 3 {
			want = "data" // everything a Sync covered survives from there on
		}
		if op.Index > 4 {
			want = "data snapshot-1"
		}
		require.Equal(t, want, holds(t, after), op)
		return Decision{}
	}})
	require.NoError(t, script(t.Context(), f))
	require.Equal(t, 11, crashes)
}

func TestRulesSelectByKindAndName(t *testing.T) {
	f := Wrap(mem.New(), Plan{Rules: []Rule{{
		Kinds: []Kind{CreateIfAbsent}, Match: func(name string) bool { return fs.Base(name) != "a" }, At: 1,
		Do: Decision{Action: FailAfter, Err: syscall.EIO},
	}}})
	require.NoError(t, f.CreateIfAbsent(t.Context(), "a", nil))
	require.NoError(t, f.CreateIfAbsent(t.Context(), "b", nil))
	require.ErrorIs(t, f.CreateIfAbsent(t.Context(), "c", nil), syscall.EIO)
	require.ErrorIs(t, f.CreateIfAbsent(t.Context(), "c", nil), fs.ErrExist, "the effect took place")
}

func TestFailedCommitAndAbortEndTheWriter(t *testing.T) {
	for _, kind := range []Kind{Commit, Abort} {
		inner := mem.New()
		f := Wrap(inner, Plan{Rules: []Rule{{Kinds: []Kind{kind}, Do: Decision{Action: Fail}}}})
		w, err := f.Create(t.Context(), "t/f")
		require.NoError(t, err)
		end := w.Commit
		if kind == Abort {
			end = w.Abort
		}
		require.ErrorIs(t, end(), ErrInjected)
		require.NoError(t, w.Abort())
		require.Error(t, w.Commit())
		require.Empty(t, holds(t, inner))
	}
}

func TestCapabilitiesCanBeTakenAway(t *testing.T) {
	inner := mem.New()
	require.Equal(t, inner.Capabilities(), Wrap(inner, Plan{}).Capabilities())
	require.Equal(t, fs.Capabilities{List: true}, Wrap(inner, Plan{Capabilities: &fs.Capabilities{List: true}}).Capabilities())
}
