package main

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/schema"
)

// sink takes the batches of a read.
type sink interface {
	write(arrow.RecordBatch) error
	close() error
}

func newSink(format string, out io.Writer, fields []schema.Field, sc *arrow.Schema) sink {
	switch format {
	case "jsonl":
		return jsonlSink{jsonl.NewEncoder(out, fields)}
	case "csv":
		return &csvSink{out: out, fields: fields}
	case "arrow":
		return arrowSink{ipc.NewWriter(out, ipc.WithSchema(sc))}
	}
	return &tableSink{fields: fields, grid: newGrid(out, fields)}
}

type jsonlSink struct{ *jsonl.Encoder }

func (s jsonlSink) write(b arrow.RecordBatch) error { return s.Write(b) }
func (s jsonlSink) close() error                    { return nil }

type arrowSink struct{ *ipc.Writer }

func (s arrowSink) write(b arrow.RecordBatch) error { return s.Write(b) }
func (s arrowSink) close() error                    { return s.Close() }

// bareText returns a function that appends the text of value i as it stands in a
// cell: strings as they are, nested values as JSON. Nulls are the caller's.
func bareText(t schema.Type, arr arrow.Array) (func(dst []byte, i int) []byte, error) {
	if s, ok := arr.(*array.String); ok {
		return func(dst []byte, i int) []byte { return append(dst, s.Value(i)...) }, nil
	}
	cell, err := jsonl.Column(t, arr)
	if err != nil || t.Kind.Nested() {
		return cell, err
	}
	return func(dst []byte, i int) []byte {
		begin := len(dst)
		dst = cell(dst, i)
		if dst[begin] == '"' { // text without escapes: only strings have them
			copy(dst[begin:], dst[begin+1:])
			dst = dst[:len(dst)-2]
		}
		return dst
	}, nil
}

func bareColumns(fields []schema.Field, b arrow.RecordBatch) ([]func([]byte, int) []byte, error) {
	cells := make([]func([]byte, int) []byte, len(fields))
	for c, f := range fields {
		var err error
		if cells[c], err = bareText(f.Type, b.Column(c)); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// csvSink writes RFC 4180 with a header. NULL is an empty cell, the empty string a
// pair of quotes.
type csvSink struct {
	out    io.Writer
	fields []schema.Field
	buf    []byte
	cell   []byte
	begun  bool
}

func (s *csvSink) header() {
	if s.begun {
		return
	}
	s.begun = true
	for c, f := range s.fields {
		if c > 0 {
			s.buf = append(s.buf, ',')
		}
		s.buf = appendCSV(s.buf, []byte(f.Name))
	}
	s.buf = append(s.buf, '\n')
}

func (s *csvSink) write(b arrow.RecordBatch) error {
	s.header()
	cells, err := bareColumns(s.fields, b)
	if err != nil {
		return err
	}
	for i := range int(b.NumRows()) {
		for c := range s.fields {
			if c > 0 {
				s.buf = append(s.buf, ',')
			}
			if b.Column(c).IsValid(i) {
				s.cell = cells[c](s.cell[:0], i)
				s.buf = appendCSV(s.buf, s.cell)
			}
		}
		s.buf = append(s.buf, '\n')
		if len(s.buf) > 64<<10 {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return s.flush()
}

func (s *csvSink) flush() error {
	_, err := s.out.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

func (s *csvSink) close() error {
	s.header()
	return s.flush()
}

// appendCSV quotes what would otherwise be read differently.
func appendCSV(dst, cell []byte) []byte {
	if len(cell) > 0 && !bytes.ContainsAny(cell, ",\"\r\n") && cell[0] != ' ' && cell[len(cell)-1] != ' ' {
		return append(dst, cell...)
	}
	dst = append(dst, '"')
	for _, c := range cell {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// tableSink prints aligned columns.
type tableSink struct {
	fields []schema.Field
	grid   *grid
}

func (s *tableSink) write(b arrow.RecordBatch) error {
	cells, err := bareColumns(s.fields, b)
	if err != nil {
		return err
	}
	var text []byte
	for i := range int(b.NumRows()) {
		line := make([]string, len(cells))
		for c, cell := range cells {
			line[c] = "null"
			if b.Column(c).IsValid(i) {
				text = cell(text[:0], i)
				line[c] = printable(string(text))
			}
		}
		if err := s.grid.add(line...); err != nil {
			return err
		}
	}
	return nil
}

func (s *tableSink) close() error { return s.grid.close() }

// printable keeps a cell on its line.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) < 0 {
		return s
	}
	quoted := jsonl.AppendString(nil, s)
	return string(quoted[1 : len(quoted)-1])
}

// gridLookahead is how many lines the widths are made from; a longer cell later on
// moves its line only.
const gridLookahead = 1000

// grid prints lines of cells in aligned columns, numbers to the right.
type grid struct {
	out    io.Writer
	header []string
	right  []bool
	widths []int
	lines  [][]string // not printed yet
	begun  bool
}

func newGrid(out io.Writer, fields []schema.Field) *grid {
	g := &grid{out: out}
	for _, f := range fields {
		g.header = append(g.header, printable(f.Name))
		k := f.Type.Kind
		g.right = append(g.right, k >= schema.TinyInt && k <= schema.Decimal)
	}
	return g
}

// listing makes a grid of metadata; a name that begins with '#' is a number.
func listing(out io.Writer, names ...string) *grid {
	g := &grid{out: out}
	for _, name := range names {
		bare, number := strings.CutPrefix(name, "#")
		g.header, g.right = append(g.header, bare), append(g.right, number)
	}
	return g
}

func (g *grid) add(cells ...string) error {
	g.lines = append(g.lines, cells)
	if g.begun || len(g.lines) >= gridLookahead {
		return g.flush()
	}
	return nil
}

func (g *grid) flush() error {
	var b strings.Builder
	if !g.begun {
		g.begun = true
		g.measure()
		g.line(&b, g.header)
		rule := make([]string, len(g.header))
		for c, w := range g.widths {
			rule[c] = strings.Repeat("-", w)
		}
		g.line(&b, rule)
	}
	for _, line := range g.lines {
		g.line(&b, line)
	}
	g.lines = g.lines[:0]
	_, err := io.WriteString(g.out, b.String())
	return err
}

func (g *grid) measure() {
	g.widths = make([]int, len(g.header))
	for c, name := range g.header {
		g.widths[c] = utf8.RuneCountInString(name)
		for _, line := range g.lines {
			g.widths[c] = max(g.widths[c], utf8.RuneCountInString(line[c]))
		}
	}
}

func (g *grid) line(out *strings.Builder, cells []string) {
	var b strings.Builder
	for c, cell := range cells {
		if c > 0 {
			b.WriteString("  ")
		}
		pad := max(0, g.widths[c]-utf8.RuneCountInString(cell))
		if g.right[c] {
			b.WriteString(strings.Repeat(" ", pad))
		}
		b.WriteString(cell)
		if !g.right[c] && c < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", pad))
		}
	}
	out.WriteString(strings.TrimRight(b.String(), " "))
	out.WriteByte('\n')
}

func (g *grid) close() error { return g.flush() }
