package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/paimon/schema"
)

// ours is the engine under test. With keep, one session lives as long as the
// table, so foreign commits are adopted by it; otherwise each commit reopens
// the table and recovers from what is on disk.
type ours struct {
	keep bool
	open map[string]*session // by table path, with keep
}

// session is an open table with its writer.
type session struct {
	schema Schema
	table  *tideline.Table
	writer *tideline.Writer
}

func (o *ours) Name() string {
	if o.keep {
		return "tideline-session"
	}
	return "tideline"
}

func tablePath(w, name string) string {
	db, table, _ := strings.Cut(name, ".")
	return filepath.ToSlash(TablePath(w, db, table))
}

func (o *ours) Create(w, name string, s Schema) error {
	d := tideline.Definition{PrimaryKey: s.PrimaryKeys, PartitionBy: s.PartitionKeys, Options: s.Options}
	parsed, err := schema.Parse(schemaFile(s), "schema of the case")
	if err != nil {
		return err
	}
	d.Fields = parsed.Fields
	t, err := tideline.Create(context.Background(), tablePath(w, name), d, tideline.Options{})
	if err != nil {
		return err
	}
	return t.Close(context.Background())
}

// schemaFile is the text of a schema file, for the parser of the engine.
func schemaFile(s Schema) []byte {
	b, err := json.Marshal(map[string]any{
		"version": 3, "id": 0, "fields": s.Fields, "highestFieldId": 1000, "partitionKeys": s.PartitionKeys,
		"primaryKeys": s.PrimaryKeys, "options": s.Options, "timeMillis": 0,
	})
	if err != nil {
		panic(err)
	}
	return b
}

func (o *ours) Write(w, name string, rows []Row) (id int64, err error) {
	ctx := context.Background()
	s, err := o.session(w, name)
	if err != nil {
		return 0, err
	}
	if !o.keep {
		defer func() { err = errors.Join(err, s.close(ctx)) }()
	}
	if err := s.table.Refresh(ctx); err != nil {
		return 0, err
	}
	if err := s.write(rows); err != nil {
		return 0, err
	}
	c, err := s.writer.Commit(ctx)
	return c.ID, err
}

func (o *ours) session(w, name string) (*session, error) {
	path := tablePath(w, name)
	if s := o.open[path]; s != nil {
		return s, nil
	}
	s, err := openSession(path)
	if err == nil && o.keep {
		o.open[path] = s
	}
	return s, err
}

// closeAll ends the sessions that were kept.
func (o *ours) closeAll() error {
	var all []error
	for _, s := range o.open {
		all = append(all, s.close(context.Background()))
	}
	clear(o.open)
	return errors.Join(all...)
}

func (o *ours) Dump(w, name string, snapshot int64) ([]string, error) {
	ctx := context.Background()
	path := tablePath(w, name)
	if s := o.open[path]; s != nil && snapshot == 0 {
		return s.read()
	}
	t, err := tideline.Open(ctx, path, tideline.Options{})
	if err != nil {
		return nil, err
	}
	defer t.Close(ctx)
	s, err := ReadSchema(path)
	if err != nil {
		return nil, err
	}
	scan := t.Scan()
	if snapshot > 0 {
		scan = scan.AtSnapshot(snapshot)
	}
	return readAll(s, scan)
}

func openSession(path string) (*session, error) {
	ctx := context.Background()
	s, err := ReadSchema(path)
	if err != nil {
		return nil, err
	}
	t, err := tideline.Open(ctx, path, tideline.Options{CommitUser: "conformance"})
	if err != nil {
		return nil, err
	}
	w, err := t.Writer(ctx)
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return &session{schema: s, table: t, writer: w}, nil
}

func (s *session) write(rows []Row) error {
	batch, kinds, err := Batch(memory.DefaultAllocator, s.schema, rows)
	if err != nil {
		return err
	}
	defer batch.Release()
	if len(s.schema.PrimaryKeys) == 0 {
		kinds = nil
	}
	ack, err := s.writer.Write(context.Background(), batch, tideline.Kinds(kinds))
	if err == nil && ack.Rows != len(rows) {
		err = fmt.Errorf("wrote %d rows, %d were acknowledged", len(rows), ack.Rows)
	}
	return err
}

// read gives the union of what is committed and what is in memory.
func (s *session) read() ([]string, error) { return readAll(s.schema, s.table.Scan()) }

func (s *session) close(ctx context.Context) error {
	return errors.Join(s.writer.Close(ctx), s.table.Close(ctx))
}

// drop ends a session whatever state it is in.
func (s *session) drop() {
	ctx := context.Background()
	_ = s.writer.Discard(ctx)
	_ = s.table.Close(ctx)
}

func readAll(s Schema, scan tideline.Scan) ([]string, error) {
	r, err := scan.Read(context.Background())
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var all []string
	for r.Next() {
		lines, err := Lines(s, r.RecordBatch())
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
	}
	return all, r.Err()
}
