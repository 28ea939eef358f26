package tideline_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline"
)

// The README shows the body of this example.
func Example() {
	dir, err := os.MkdirTemp("", "tideline")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := shop(context.Background(), filepath.Join(dir, "shop.db", "orders")); err != nil {
		log.Fatal(err)
	}
	// Output:
	// before the commit: {"city":"Oslo","id":1}
	// snapshot 1
	// after reopening: {"city":"Oslo","id":1}
}

var orders = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "city", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

func shop(ctx context.Context, path string) error {
	t, err := tideline.Create(ctx, path, tideline.Definition{Columns: orders, PrimaryKey: []string{"id"}}, tideline.Options{})
	if err != nil {
		return err
	}
	w, err := t.Writer(ctx)
	if err != nil {
		return err
	}
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, orders, strings.NewReader(`[{"id":1,"city":"Rome"},{"id":1,"city":"Oslo"}]`))
	if err != nil {
		return err
	}
	defer batch.Release()
	if _, err := w.Write(ctx, batch); err != nil { // visible when this returns
		return err
	}
	if err := show(ctx, "before the commit", t); err != nil {
		return err
	}
	snapshot, err := w.Commit(ctx) // durable, and readable by every Paimon engine
	if err != nil {
		return err
	}
	fmt.Println("snapshot", snapshot.ID)
	if err := t.Close(ctx); err != nil {
		return err
	}
	t, err = tideline.Open(ctx, path, tideline.Options{})
	if err != nil {
		return err
	}
	defer t.Close(ctx)
	return show(ctx, "after reopening", t)
}

func show(ctx context.Context, when string, t *tideline.Table) error {
	rows, err := t.Scan().Where(tideline.Eq("city", "Oslo")).Read(ctx) // memory and files in one consistent picture
	if err != nil {
		return err
	}
	defer rows.Release()
	for rows.Next() {
		text, err := rows.RecordBatch().MarshalJSON()
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", when, strings.Trim(string(text), "[]\n"))
	}
	return rows.Err()
}
