package jsontree

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/internal/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var limits = Limits{Bytes: 100, Depth: 3, Values: 6}

func TestLimits(t *testing.T) {
	for text, reason := range map[string]string{
		strings.Repeat(" ", 101): "document of 101 bytes, at most 100",
		`[[[[]]]]`:               "nested deeper than 3",
		`[1,2,3,4,5,6]`:          "more than 6 values",
		`{"a":1,"a":2}`:          `key "a" appears twice`,
		`[1`:                     "ends early",
		`[1,]`:                   "invalid character",
		`{1:2}`:                  "invalid character",
		`{"a" 1}`:                "invalid character",
		`[1] [2]`:                "text after the end",
		`nul`:                    "",
		"\"\xff\"":               "not UTF-8",
	} {
		_, err := Parse([]byte(text), "f", limits)
		require.ErrorIs(t, err, errs.ErrCorrupt, text)
		require.ErrorContains(t, err, reason)
	}
	_, err := Parse([]byte(`[1,2,3,4,5]`), "f", limits)
	require.NoError(t, err)
}

func TestPathsInErrors(t *testing.T) {
	root, err := Parse([]byte(`{"a":[{"b":"x"},null],"n":null,"i":5}`), "f", Limits{100, 9, 99})
	require.NoError(t, err)
	a, err := root.Need("a")
	require.NoError(t, err)
	items, err := a.Items()
	require.NoError(t, err)
	b, err := items[0].Need("b")
	require.NoError(t, err)
	_, err = b.Int(0, 9)
	require.EqualError(t, err, "corrupt: f: a[0].b: is a string, a whole number is expected")
	_, err = items[1].Str()
	require.EqualError(t, err, "corrupt: f: a[1]: is null, a string is expected")
	_, err = root.NeedInt("i", 0, 4)
	require.EqualError(t, err, "corrupt: f: i: 5 is not between 0 and 4")
	_, err = root.NeedStr("n")
	require.EqualError(t, err, `corrupt: f: $: key "n" is missing`)
	text, err := root.GetStr("n")
	require.NoError(t, err)
	require.Nil(t, text)
	n, err := root.GetInt("none", 7, 0, 9)
	require.NoError(t, err)
	require.Equal(t, int64(7), n)
	keys, _, err := root.Members()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "n", "i"}, keys)
}

// The memory of the package comment holds for the documents that need the most.
func TestMemoryIsAStatedMultiple(t *testing.T) {
	const n = 20000
	for _, text := range []string{
		"[" + strings.Repeat("1,", n) + "1]",
		"[" + strings.Repeat("{},", n) + "1]",
		"[" + strings.Repeat(`{"a":1},`, n) + "1]",
		"[" + strings.Repeat(`"",`, n) + "1]",
		`["` + strings.Repeat(`\u0001`, n) + `"]`,
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		root, err := Parse([]byte(text), "f", Limits{1 << 20, 9, 1 << 20})
		require.NoError(t, err)
		runtime.GC()
		runtime.ReadMemStats(&after)
		used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		require.Less(t, used, int64(MemoryFactor*len(text)), "%.10s", text)
		runtime.KeepAlive(root)
	}
}
