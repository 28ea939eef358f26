package harness

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/schema"
)

type record = arrow.RecordBatch

// expected is what somebody else says about a stream of changes.
type expected struct {
	final       string // file of the end state, "" when there is none
	fields      []schema.Field
	key         string
	checkpoints []checkpoint // by lastSeq
}

// checkpoint is a line of checkpoints.jsonl: the sha256 is over the live rows,
// sorted by path, of "path TAB blob TAB mode LF".
type checkpoint struct {
	LastSeq   int64  `json:"lastSeq"`
	LivePaths int    `json:"livePaths"`
	SHA256    string `json:"sha256"`
}

// checkpointColumns are the columns that the digest of a checkpoint is made of.
var checkpointColumns = []string{"path", "blob", "mode"}

func openExpected(dir string, fields []schema.Field, key string) (*expected, error) {
	e := &expected{fields: fields, key: key}
	for _, name := range []string{"final.jsonl.gz", "final.jsonl"} {
		f, err := openText(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e.final = filepath.Join(dir, name)
		if err := f.Close(); err != nil {
			return nil, err
		}
		break
	}
	if !e.has(append(checkpointColumns, seqColumn)) {
		return e, nil
	}
	f, err := openText(filepath.Join(dir, "checkpoints.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	err = jsonl.Lines(f, func(n int, line []byte) error {
		var c checkpoint
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("%s: line %d: %w", filepath.Join(dir, "checkpoints.jsonl"), n, err)
		}
		e.checkpoints = append(e.checkpoints, c)
		return nil
	})
	slices.SortFunc(e.checkpoints, func(a, b checkpoint) int { return int(a.LastSeq - b.LastSeq) })
	return e, err
}

func (e *expected) has(names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(e.fields, func(f schema.Field) bool { return f.Name == name }) {
			return false
		}
	}
	return true
}

// checkpoint is the check of the i-th checkpoint.
func (e *expected) checkpoint(i int) *Checkpoint {
	c := e.checkpoints[i]
	return &Checkpoint{Name: fmt.Sprintf("at seq %d", c.LastSeq), Check: func(rows []record) error {
		lines := []string{}
		for _, r := range rows {
			columns, err := columnsOf(r, checkpointColumns)
			if err != nil {
				return err
			}
			for i := range int(r.NumRows()) {
				lines = append(lines, columns[0].ValueStr(i)+"\t"+columns[1].ValueStr(i)+"\t"+columns[2].ValueStr(i)+"\n")
			}
		}
		slices.Sort(lines)
		hash := sha256.New()
		for _, line := range lines {
			hash.Write([]byte(line))
		}
		if sum := fmt.Sprintf("%x", hash.Sum(nil)); len(lines) != c.LivePaths || sum != c.SHA256 {
			return fmt.Errorf("%d live paths with sha256 %s, expected %d with %s", len(lines), sum, c.LivePaths, c.SHA256)
		}
		return nil
	}}
}

// checkEnd compares the columns that the final file has.
func (e *expected) checkEnd(rows []record) (string, error) {
	if e.final == "" {
		return "", nil
	}
	f, err := openText(e.final)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read from
	want, err := jsonl.Decode(e.fields, f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", e.final, err)
	}
	defer want.Release()
	var names []string // a column that the file does not know is null in every line
	for i, field := range want.Schema().Fields() {
		if want.Column(i).NullN() < want.Column(i).Len() {
			names = append(names, field.Name)
		}
	}
	if err := sameRows(names, e.key, []record{want}, rows); err != nil {
		return "", fmt.Errorf("%s: %w", e.final, err)
	}
	return fmt.Sprintf("the end state agrees with %s: %d rows, columns %v", e.final, want.NumRows(), names), nil
}

// sameRows compares some columns of two tables row by row, by key.
func sameRows(names []string, key string, want, got []record) error {
	type pair struct{ want, got string }
	all := map[string]pair{}
	fill := func(rows []record, set func(*pair, string) error) error {
		for _, r := range rows {
			columns, err := columnsOf(r, append([]string{key}, names...))
			if err != nil {
				return err
			}
			for i := range int(r.NumRows()) {
				text := ""
				for c, column := range columns[1:] {
					text += fmt.Sprintf(" %s=%q", names[c], column.ValueStr(i))
				}
				p := all[columns[0].ValueStr(i)]
				if err := set(&p, text); err != nil {
					return err
				}
				all[columns[0].ValueStr(i)] = p
			}
		}
		return nil
	}
	err := fill(want, func(p *pair, text string) error {
		if p.want != "" {
			return fmt.Errorf("expected twice:%s", text)
		}
		p.want = text
		return nil
	})
	if err != nil {
		return err
	}
	err = fill(got, func(p *pair, text string) error {
		if p.got != "" {
			return fmt.Errorf("returned twice:%s", text)
		}
		p.got = text
		return nil
	})
	if err != nil {
		return err
	}
	var wrong []string
	for k, p := range all {
		if p.want != p.got {
			wrong = append(wrong, k)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	p := all[wrong[0]]
	return fmt.Errorf("%d rows differ, the first is %q: want%s, got%s", len(wrong), wrong[0], orNone(p.want), orNone(p.got))
}

func orNone(text string) string {
	if text == "" {
		return " none"
	}
	return text
}

func columnsOf(r record, names []string) ([]arrow.Array, error) {
	columns := make([]arrow.Array, len(names))
	for i, name := range names {
		at := r.Schema().FieldIndices(name)
		if len(at) != 1 {
			return nil, fmt.Errorf("there is no column %s", name)
		}
		columns[i] = r.Column(at[0])
	}
	return columns, nil
}
