package conformance

import "path/filepath"

// Engine is an implementation of the format seen from outside: whole commits in,
// all visible rows out. Tables are named db.table below a local warehouse folder.
type Engine interface {
	Name() string
	Create(warehouse, table string, s Schema) error
	// Write makes one commit and returns the id of the newest snapshot.
	Write(warehouse, table string, rows []Row) (int64, error)
	// Dump returns the visible rows as JSON lines; snapshot 0 is the newest.
	Dump(warehouse, table string, snapshot int64) ([]string, error)
}

var _ Engine = (*Oracle)(nil)

// TablePath is the folder of db.table below a warehouse.
func TablePath(warehouse, db, table string) string {
	return filepath.Join(warehouse, db+".db", table)
}
