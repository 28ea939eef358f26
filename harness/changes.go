package harness

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tideline-db/tideline"
	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/schema"
)

// opColumn and groupColumn are the names with a meaning in a stream of changes.
const (
	opColumn    = "op"        // I, U, D; no column of the table
	groupColumn = "commitSeq" // rows with the same value go into one write
	seqColumn   = "seq"       // total order; checkpoints name it
)

// Changes is a stream of changes from a file of JSON lines.
type Changes struct {
	file    string
	key     string
	batch   int
	buckets int
	fields  []schema.Field
	rows    int64
	expect  *expected // what lies beside the file; never nil
}

// OpenChanges reads a file of changes once to find its columns: those of any
// line, STRING, BIGINT, DOUBLE or BOOLEAN by the values they have. The name may
// end in .gz. When expected/final.jsonl.gz and expected/checkpoints.jsonl lie
// beside it they are compared with as well.
func OpenChanges(file, key string, batch, buckets int) (*Changes, error) {
	c := &Changes{file: file, key: key, batch: max(1, batch), buckets: max(1, buckets)}
	kinds := map[string]byte{}
	var names []string
	err := c.lines(func(n int, line []byte) error {
		c.rows++
		return inferLine(line, kinds, &names, key)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if c.rows == 0 {
		return nil, fmt.Errorf("%s holds no changes", file)
	}
	for _, name := range names {
		t := map[byte]string{'s': "STRING", 'i': "BIGINT", 'd': "DOUBLE", 'b': "BOOLEAN", '0': "STRING"}[kinds[name]]
		if name == key {
			t += " NOT NULL"
		}
		parsed, err := schema.ParseType(t)
		if err != nil {
			return nil, err
		}
		c.fields = append(c.fields, schema.Field{Name: name, Type: parsed})
	}
	c.expect, err = openExpected(filepath.Join(filepath.Dir(file), "expected"), c.fields, key)
	return c, err
}

// lines calls each for every line of the file.
func (c *Changes) lines(each func(n int, line []byte) error) error {
	r, err := openText(c.file)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read from
	return jsonl.Lines(r, func(n int, line []byte) error {
		if err := each(n, line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		return nil
	})
}

// openText opens a file and, by its name, unpacks it.
func openText(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return f, err
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<18))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

// inferLine merges the columns of a line into what is known: s string, i integer,
// d double, b boolean, 0 only null so far.
func inferLine(line []byte, kinds map[string]byte, names *[]string, key string) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("want one JSON object")
	}
	hasKey := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		value, err := d.Token()
		if err != nil {
			return err
		}
		column := name.(string)
		kind, err := kindOf(value)
		if err != nil {
			return fmt.Errorf("column %s: %w", column, err)
		}
		if column == opColumn {
			if _, err := opKind(value); err != nil {
				return err
			}
			continue
		}
		hasKey = hasKey || column == key && kind != '0'
		old, known := kinds[column]
		if !known {
			*names = append(*names, column)
		}
		if kinds[column], err = joinKinds(old, kind, known); err != nil {
			return fmt.Errorf("column %s: %w", column, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if !hasKey {
		return fmt.Errorf("the key column %s is missing or null", key)
	}
	return nil
}

func kindOf(value json.Token) (byte, error) {
	switch v := value.(type) {
	case nil:
		return '0', nil
	case string:
		return 's', nil
	case bool:
		return 'b', nil
	case json.Number:
		if _, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return 'i', nil
		}
		return 'd', nil
	default:
		return 0, fmt.Errorf("nested values are not supported")
	}
}

func joinKinds(old, kind byte, known bool) (byte, error) {
	switch {
	case !known || old == '0' || old == kind:
		return kind, nil
	case kind == '0':
		return old, nil
	case old == 'i' && kind == 'd' || old == 'd' && kind == 'i':
		return 'd', nil
	}
	return 0, fmt.Errorf("values of several types")
}

// opKind turns the value of op into a row kind.
func opKind(value any) (tideline.RowKind, error) {
	switch value {
	case "I", "+I":
		return tideline.Insert, nil
	case "U", "+U":
		return tideline.UpdateAfter, nil
	case "-U":
		return tideline.UpdateBefore, nil
	case "D", "-D":
		return tideline.Delete, nil
	}
	return 0, fmt.Errorf("op is %v: want I, U or D", value)
}

// Name is the table's name.
func (c *Changes) Name() string { return "changes" }

// Definition is the table to create.
func (c *Changes) Definition() tideline.Definition {
	return tideline.Definition{Fields: slices.Clone(c.fields), PrimaryKey: []string{c.key}, Options: map[string]string{"bucket": strconv.Itoa(c.buckets)}}
}

// Rows is the number of changes.
func (c *Changes) Rows() int64 { return c.rows }

// CheckEnd compares with expected/final.jsonl.gz, when it is there.
func (c *Changes) CheckEnd(rows []record) (string, error) { return c.expect.checkEnd(rows) }

// Feed opens the file again.
func (c *Changes) Feed() (Feed, error) {
	r, err := openText(c.file)
	if err != nil {
		return nil, err
	}
	return &changesFeed{changes: c, file: r, in: bufio.NewReaderSize(r, 1<<18)}, nil
}

// changesFeed cuts lines into batches: at least batch rows, whole groups, and an
// end at every checkpoint.
type changesFeed struct {
	changes *Changes
	file    io.ReadCloser
	in      *bufio.Reader
	line    int
	ahead   []byte // first line of the next batch
	check   int    // checkpoints passed
	done    bool
}

// place is what a line says about where it stands.
type place struct {
	Op    string `json:"op"`
	Group *int64 `json:"commitSeq"`
	Seq   *int64 `json:"seq"`
}

func (f *changesFeed) Next() (Job, error) {
	var lines [][]byte
	var kinds []tideline.RowKind
	var group *int64
	var check *Checkpoint
	first := f.line + 1
	for check == nil {
		line, err := f.next()
		if err != nil {
			return nil, err
		}
		if line == nil {
			break
		}
		var p place
		if err := json.Unmarshal(line, &p); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", f.changes.file, f.line, err)
		}
		same := group != nil && p.Group != nil && *group == *p.Group
		if len(lines) >= f.changes.batch && !same {
			f.ahead = line
			break
		}
		kind, err := opKind(p.Op)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", f.changes.file, f.line, err)
		}
		lines, kinds, group = append(lines, line), append(kinds, kind), p.Group
		if f.check < len(f.changes.expect.checkpoints) && p.Seq != nil && *p.Seq == f.changes.expect.checkpoints[f.check].LastSeq {
			check = f.changes.expect.checkpoint(f.check)
			f.check++
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	return func() (*Batch, error) { return f.changes.make(lines, kinds, first, check) }, nil
}

// next returns a line that the caller may keep, nil at the end.
func (f *changesFeed) next() ([]byte, error) {
	if line := f.ahead; line != nil {
		f.ahead = nil
		return line, nil
	}
	for !f.done {
		line, err := f.in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		f.done = err != nil
		f.line++
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
	return nil, nil
}

func (f *changesFeed) Close() error { return f.file.Close() }

func (c *Changes) make(lines [][]byte, kinds []tideline.RowKind, first int, check *Checkpoint) (*Batch, error) {
	d := jsonl.NewDecoder(c.fields).IgnoreUnknown()
	for i, line := range lines {
		if err := d.Append(line); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", c.file, first+i, err)
		}
	}
	r, err := d.Batch()
	if err != nil {
		return nil, err
	}
	b := &Batch{Record: r, Kinds: kinds, Checkpoint: check}
	b.watchLast(c.key)
	return b, nil
}

// watchLast watches the last row of a batch that is no delete.
func (b *Batch) watchLast(key string) {
	for i := len(b.Kinds) - 1; i >= 0; i-- {
		if b.Kinds[i] != tideline.Insert && b.Kinds[i] != tideline.UpdateAfter {
			continue
		}
		at := b.Record.Schema().FieldIndices(key)[0]
		b.Watch = &Watch{Where: tideline.Eq(key, b.Record.Column(at).GetOneForMarshal(i)), Row: i}
		return
	}
}
