package arch

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// moduleRoot walks up to the module's go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module "+module+"\n") {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, dir, parent, "no go.mod of %s above the test", module)
		dir = parent
	}
}

// sources parses every Go file of the module. A file that does not parse is
// logged: the compiler says more about it than a rule could.
func sources(t *testing.T) []*source {
	t.Helper()
	root := moduleRoot(t)
	var all []*source
	err := filepath.WalkDir(root, func(path string, e iofs.DirEntry, err error) error {
		if errors.Is(err, iofs.ErrNotExist) {
			return nil // removed while the walk was on
		}
		if err != nil {
			return err
		}
		if e.IsDir() {
			return skipDir(root, path)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(name), text)
		if err != nil {
			t.Logf("not checked: %v", err)
			return nil
		}
		all = append(all, s)
		return nil
	})
	require.NoError(t, err)
	return all
}

// skipDir leaves out what the go command leaves out: hidden directories,
// testdata, and modules of their own.
func skipDir(root, path string) error {
	base := filepath.Base(path)
	if path == root {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func TestTheModuleKeepsItsRules(t *testing.T) {
	all := sources(t)
	require.Greater(t, len(all), 10, "the walk found the module")
	for _, s := range all {
		for _, breach := range check(s) {
			t.Error(breach)
		}
	}
}

// A permission that nobody needs any more is withdrawn.
func TestEveryLockedFileNeedsItsPermission(t *testing.T) {
	for _, s := range sources(t) {
		if _, allowed := lockedFiles[s.name]; allowed {
			require.NotEmpty(t, s.uses(lockNames, ""), "%s is allowed locks and holds none", s.name)
		}
	}
}

// Each rule, broken once.
func TestBreachesAreFound(t *testing.T) {
	lockedFiles["actors/excused.go"] = "an example"
	t.Cleanup(func() { delete(lockedFiles, "actors/excused.go") })
	for _, c := range []struct {
		name, text string
		want       string // "" = nothing to report
	}{
		{"merge/a.go", `import "` + module + `/bucket"`, `package "merge" may not import "bucket"`},
		{"merge/a.go", `import "` + module + `/paimon/row"`, ""},
		{"merge/sub/a.go", `import "` + module + `/fs"`, `package "merge/sub" may not import "fs"`},
		{"bucket/a.go", `import _ "` + module + `"`, `package "bucket" may not import "."`},
		{"paimon/row/a.go", `import "` + module + `/fs/local"`, `package "paimon/row" may not import "fs/local"`},
		{"paimon/row/a.go", `import "` + module + `/merge"`, `may not import "merge"`},
		{"fs/a.go", `import "` + module + `/fs/mem"`, `package "fs" may not import "fs/mem"`},
		{"fs/mem/a.go", `import "` + module + `/paimon/path"`, `may not import "paimon/path"`},
		{"table.go", `import "` + module + `/fs/local"`, ""},
		{"table.go", `import "` + module + `/fs/mem"`, `package "." may not import "fs/mem"`},
		{"table.go", `import "` + module + `/harness"`, `package "." may not import "harness"`},
		{"cmd/sim/a.go", `import "` + module + `/actors"`, `may not import "actors"`},
		{"metrics/a.go", `import "` + module + `"`, ""},
		{"bench/a.go", `import "` + module + `/bucket"`, ""},
		{"attic/a.go", ``, `package "attic" has no line in the table`},
		{"harness/a.go", `import "` + protoactor + `/actor"`, "which actors alone may"},
		{"actors/a.go", `import "` + protoactor + `/actor"`, ""},
		{"fs/local/a.go", `import "C"`, "uses cgo"},

		{"bucket/a.go", `import "os"`, "imports os;"},
		{"bucket/a.go", `import "net/http"`, "imports net/http;"},
		{"fs/local/a.go", `import "os"`, ""},
		{"snapshot/a.go", `func f() { go f() }`, "a.go:2: starts a goroutine"},
		{"snapshot/a.go", `import "sync"; func f(g *sync.WaitGroup) { g.Go(nil) }`, "a.go:2: starts a goroutine"},
		{"snapshot/a.go", `import "golang.org/x/sync/errgroup"; func f(g *errgroup.Group) { g.Go(nil) }`, "a.go:2: starts a goroutine"},
		{"snapshot/a.go", `import "sync"; func f(g *sync.WaitGroup) { g.Wait() }`, ""},
		{"snapshot/a.go", `func f(runner interface{ Go(func()) }) { runner.Go(nil) }`, ""},
		{"actors/a.go", `func f() { go f() }`, ""},
		{"paimon/row/a.go", `import "time"; var now = time.Now`, "time.Now: pure code"},
		{"paimon/row/a.go", `import clock "time"; var now = clock.Now()`, "clock.Now: pure code"},
		{"paimon/row/a.go", `import . "time"; var now = Now()`, "dot import of time"},
		{"paimon/row/a.go", `import "time"; func f(t time.Time) time.Time { return t }`, ""},
		{"paimon/row/a.go", `import "time"; type c struct{}; func (c) Now() {}; func f(_ time.Time) { var time c; time.Now() }`, ""},
		{"merge/a.go", `import "math/rand/v2"; var n = rand.IntN(3)`, "rand.IntN: pure code"},
		{"merge/a.go", `import "math/rand"; var n = rand.Intn(3)`, "rand.Intn: pure code"},
		{"merge/a.go", `import "math/rand/v2"; var r = rand.New(rand.NewPCG(1, 2))`, ""},
		{"merge/a.go", `import "crypto/rand"`, "imports crypto/rand;"},
		{"snapshot/a.go", `import "github.com/google/uuid"; var u = uuid.NewString()`, "uuid.NewString: pure code"},
		{"snapshot/a.go", `import "github.com/google/uuid"; var u = uuid.NewRandomFromReader`, ""},

		{"messages/a.go", `import "sync"; type s struct { sync.Mutex }`, "sync.Mutex: state here has one owner"},
		{"actors/a.go", `import "sync"; var mu sync.RWMutex`, "sync.RWMutex: state here has one owner"},
		{"actors/excused.go", `import "sync"; var mu sync.Mutex`, ""},
		{"fs/mem/a.go", `import "sync"; var mu sync.Mutex`, ""},
		{"bucket/a.go", `import "sync"; var p sync.Pool`, ""},

		{"bucket/a_test.go", `import "time"; func f() { time.Sleep(1) }`, "time.Sleep: a test waits"},
		{"bucket/a_test.go", `import ("os"; "time"); var now = time.Now`, ""},
	} {
		s, err := parse(c.name, "package x\n"+c.text)
		require.NoError(t, err, c.text)
		found := check(s)
		if c.want == "" {
			require.Empty(t, found, "%s: %s", c.name, c.text)
			continue
		}
		require.Len(t, found, 1, "%s: %s", c.name, c.text)
		require.Contains(t, found[0], c.want)
		require.True(t, strings.HasPrefix(found[0], c.name+":"), found[0])
	}
}
