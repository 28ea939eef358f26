package schema

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tideline-db/tideline/internal/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// goldenFiles are all schema files of all golden tables and of the hello world
// table, branches included.
func goldenFiles(t testing.TB) []string {
	root := golden.Dir(t)
	var files []string
	for _, pattern := range []string{
		"*/table/schema/schema-*", "*/table/branch/*/schema/schema-*", "../paimon/hello_world/*/*/schema/schema-*",
	} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Greater(t, len(files), 100)
	return files
}

func TestGoldenSchemasKeepTheirMeaning(t *testing.T) {
	for _, file := range goldenFiles(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := Parse(data, file)
		require.NoError(t, err, file)
		again, err := Parse(s.Marshal(), file)
		require.NoError(t, err, file)
		require.Equal(t, s, again, file)
		_, err = ParseOptions(s)
		require.NoError(t, err, file)
	}
}

// readable are the golden tables that need nothing but deduplicate or append,
// Parquet and Avro manifests.
var readable = []string{
	"hello", "cpp-realtime-pk", "cpp-realtime-append", "java13-append-pq-5bucket", "java13-append-pq-pages",
	"pq-append-complex-types", "pq-append-fileindex-bitmap", "pq-append-fileindex-evolve",
	"pq-append-fileindex-sidecar", "pq-append-range-types", "pq-evolve-addrop", "pq-evolve-cast", "pq-nested-basic",
	"pq-pk-mor", "pq-ts-precisions",
}

func TestGoldenTablesThatAreAnswered(t *testing.T) {
	seen := map[string]bool{}
	for _, file := range goldenFiles(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := Parse(data, file)
		require.NoError(t, err)
		o, err := ParseOptions(s)
		require.NoError(t, err)
		name := filepath.Base(strings.TrimSuffix(filepath.Dir(filepath.Dir(file)), "/table"))
		err = o.CheckRead(s)
		if slices.Contains(readable, name) {
			seen[name] = true
			require.NoError(t, err, file)
		}
	}
	require.Len(t, seen, len(readable))
}
