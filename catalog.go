package tideline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tideline-db/tideline/fs"
	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/path"
)

// databaseSuffix is what the folder of a database ends with.
const databaseSuffix = ".db"

// Catalog names the tables of a warehouse as Paimon's filesystem catalog does:
// table orders of database shop is the folder shop.db/orders. It keeps nothing
// open and nothing in mind; every call asks the storage.
type Catalog struct {
	warehouse string
	options   Options
}

// NewCatalog returns the catalog of a warehouse folder, which need not exist yet.
// The options are those of every table that it opens or creates.
func NewCatalog(warehouse string, o Options) (*Catalog, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if warehouse == "" {
		return nil, errs.Invalid("the path of the warehouse is empty")
	}
	return &Catalog{warehouse: warehouse, options: o}, nil
}

// Path is the folder of a table, whether or not there is one.
func (c *Catalog) Path(database, table string) (string, error) {
	if err := path.CheckTable(database, table); err != nil {
		return "", err
	}
	return path.Root(c.warehouse, database, table), nil
}

// Open opens a table.
func (c *Catalog) Open(ctx context.Context, database, table string) (*Table, error) {
	root, err := c.Path(database, table)
	if err != nil {
		return nil, err
	}
	return Open(ctx, root, c.options)
}

// Create makes a table and opens it; the folder of its database is made as well.
func (c *Catalog) Create(ctx context.Context, database, table string, d Definition) (*Table, error) {
	root, err := c.Path(database, table)
	if err != nil {
		return nil, err
	}
	return Create(ctx, root, d, c.options)
}

// Databases lists the databases by name. A warehouse that does not exist has none.
func (c *Catalog) Databases(ctx context.Context) ([]string, error) {
	folders, err := c.folders(ctx, c.warehouse)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("databases of warehouse %s: %w", c.warehouse, err)
	}
	var names []string
	for _, folder := range folders {
		if name, ok := strings.CutSuffix(folder, databaseSuffix); ok && name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// Tables lists the tables of a database by name: the folders that hold a schema.
func (c *Catalog) Tables(ctx context.Context, database string) ([]string, error) {
	if err := path.CheckTable(database, "any"); err != nil {
		return nil, err
	}
	root := fs.Join(c.warehouse, database+databaseSuffix)
	folders, err := c.folders(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("tables of database %s: %w", root, err)
	}
	var names []string
	for _, folder := range folders {
		files, err := c.options.IO.List(ctx, path.SchemaDir(fs.Join(root, folder), ""))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("tables of database %s: %w", root, err)
		}
		for _, file := range files {
			if strings.HasPrefix(file.Name, "schema-") {
				names = append(names, folder)
				break
			}
		}
	}
	return names, nil
}

func (c *Catalog) folders(ctx context.Context, dir string) ([]string, error) {
	entries, err := c.options.IO.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir {
			names = append(names, e.Name)
		}
	}
	return names, nil
}
