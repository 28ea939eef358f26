package conformance

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// variable switches the tests on that need another implementation.
const variable = "TIDELINE_CONFORMANCE"

// One process of each oracle serves the whole run; TestMain ends them.
var shared struct {
	once    sync.Once
	oracles []*Oracle
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, o := range shared.oracles {
		if err := o.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "end of the %s oracle: %v\n", o.Name(), err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// startOracles returns the running oracles, Java first. With the variable set a
// missing tool is a failure, so that a green run means that something was compared.
func startOracles(t *testing.T) []*Oracle {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skipf("%s is not set; make conformance sets it", variable)
	}
	shared.once.Do(func() {
		for _, start := range []func() (*Oracle, error){StartJava, StartPython} {
			o, err := start()
			if err != nil {
				shared.err = err
				return
			}
			shared.oracles = append(shared.oracles, o)
		}
	})
	require.NoError(t, shared.err)
	return shared.oracles
}

func requireSameRows(t *testing.T, s Schema, wantName string, want []string, gotName string, got []string) {
	t.Helper()
	diff, err := Diff(s, wantName, want, gotName, got)
	require.NoError(t, err)
	require.Empty(t, diff)
}
