// Package golden finds the reference tables for tests: tables that other engines
// wrote, each with what is expected of it. They lie beside the repository, not in
// it, and a test without them is skipped.
//
//	shared/golden/<name>/table/      the table, as it was written
//	                     expected/   its rows and metadata, as JSON lines
package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir is the folder of the reference tables.
func Dir(t testing.TB) string {
	t.Helper()
	return Beside(t, "golden")
}

// Beside is a folder of the material that they are part of.
func Beside(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "shared", name)
		if info, err := os.Stat(found); err == nil && info.IsDir() {
			return found
		}
	}
	t.Skipf("no folder shared/%s beside the repository", name)
	return ""
}

// Tables are the folders of all reference tables.
func Tables(t testing.TB) []string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(Dir(t), "*", "table"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables in %s (%v)", Dir(t), err)
	}
	for i := range tables {
		tables[i] = filepath.Dir(tables[i])
	}
	return tables
}
