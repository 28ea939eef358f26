package tideline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/fs/local"
	"github.com/tideline-db/tideline/fs/mem"
)

// Tables have names in a warehouse, and the same tables open by their paths.
func TestCatalog(t *testing.T) {
	for name, store := range map[string]fs.FileIO{"local": local.New(local.Options{}), "mem": mem.New()} {
		t.Run(name, func(t *testing.T) {
			ctx, warehouse := t.Context(), t.TempDir()+"/warehouse"
			o := tideline.Options{IO: store}
			c, err := tideline.NewCatalog(warehouse, o)
			require.NoError(t, err)
			databases, err := c.Databases(ctx)
			require.NoError(t, err, "a warehouse that is not there yet is empty")
			require.Empty(t, databases)

			for _, name := range [][2]string{{"shop", "orders"}, {"shop", "customers"}, {"lab", "runs"}} {
				table, err := c.Create(ctx, name[0], name[1], keyed())
				require.NoError(t, err)
				require.NoError(t, table.Close(ctx))
			}
			_, err = c.Create(ctx, "shop", "orders", keyed())
			require.ErrorIs(t, err, fs.ErrExist)
			require.NoError(t, store.CreateIfAbsent(ctx, fs.Join(warehouse, "shop.db", "notes", "a.txt"), []byte("no table")))
			require.NoError(t, store.CreateIfAbsent(ctx, fs.Join(warehouse, "other", "a.txt"), []byte("no database")))

			databases, err = c.Databases(ctx)
			require.NoError(t, err)
			require.Equal(t, []string{"lab", "shop"}, databases)
			tables, err := c.Tables(ctx, "shop")
			require.NoError(t, err)
			require.Equal(t, []string{"customers", "orders"}, tables)
			_, err = c.Tables(ctx, "nowhere")
			require.ErrorIs(t, err, fs.ErrNotExist)

			table, err := c.Open(ctx, "shop", "orders")
			require.NoError(t, err)
			writer, err := table.Writer(ctx)
			require.NoError(t, err)
			put(t, writer, 1, "a")
			_, err = writer.Commit(ctx)
			require.NoError(t, err)
			require.NoError(t, writer.Close(ctx))
			require.NoError(t, table.Close(ctx))
			byPath, err := tideline.Open(ctx, fs.Join(warehouse, "shop.db", "orders"), o)
			require.NoError(t, err)
			require.Contains(t, read(t, byPath.Scan()), "1=a")
			require.NoError(t, byPath.Close(ctx))
			_, err = c.Open(ctx, "shop", "nothing")
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
}

func TestCatalogRefusesNamesThatAreNoFolders(t *testing.T) {
	_, err := tideline.NewCatalog("", tideline.Options{})
	require.ErrorIs(t, err, tideline.ErrInvalid)
	c, err := tideline.NewCatalog("/w", tideline.Options{IO: mem.New()})
	require.NoError(t, err)
	for _, name := range [][2]string{{"", "t"}, {"d", ""}, {"..", "t"}, {"d", ".."}, {"a/b", "t"}, {"d", "a/b"}, {"sys", "t"}, {"d", "t$files"}} {
		_, err := c.Create(t.Context(), name[0], name[1], keyed())
		require.ErrorIs(t, err, tideline.ErrInvalid, "%q", name)
		_, err = c.Open(t.Context(), name[0], name[1])
		require.ErrorIs(t, err, tideline.ErrInvalid, "%q", name)
	}
	_, err = c.Tables(t.Context(), "../x")
	require.ErrorIs(t, err, tideline.ErrInvalid)
}
