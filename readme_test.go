//lint:file-ignore SA4006 the README leaves the handling of errors out

package tideline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
)

// embed has the Go program of the README as its body.
func embed(ctx context.Context, path string, batch arrow.RecordBatch) (tideline.Commit, error) {
	t, err := tideline.Create(ctx, path, tideline.Definition{Columns: orders, PrimaryKey: []string{"id"}}, tideline.Options{})
	w, err := t.Writer(ctx)
	_, err = w.Write(ctx, batch)                                       // an Arrow record; visible when this returns
	rows, err := t.Scan().Where(tideline.Eq("city", "Oslo")).Read(ctx) // memory and files in one consistent picture
	for rows.Next() {
		fmt.Println(rows.RecordBatch())
	}
	rows.Release()
	snapshot, err := w.Commit(ctx) // durable, and readable by every Paimon engine
	err = t.Close(ctx)
	return snapshot, err
}

// TestReadmeProgram runs the README's Go program and compares its text with the
// one that is run.
func TestReadmeProgram(t *testing.T) {
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, orders, strings.NewReader(`[{"id":1,"city":"Oslo"}]`))
	require.NoError(t, err)
	defer batch.Release()
	snapshot, err := embed(t.Context(), filepath.Join(t.TempDir(), "orders"), batch)
	require.NoError(t, err)
	require.EqualValues(t, 1, snapshot.ID)

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, block, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	require.Contains(t, words(string(source)), words(block))
}
