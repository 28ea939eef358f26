package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/internal/jsonl"
	"github.com/tideline-db/tideline/paimon/schema"
)

// formatOf guesses a format from an extension; "" when it is not known.
func formatOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jsonl", ".ndjson", ".json":
		return "jsonl"
	case ".csv":
		return "csv"
	case ".parquet":
		return "parquet"
	case ".arrow", ".arrows", ".feather", ".ipc":
		return "arrow"
	}
	return ""
}

// likeFile is the columns of a data file.
func likeFile(ctx context.Context, name, format string) ([]schema.Field, error) {
	if format == "" {
		if format = formatOf(name); format == "" {
			return nil, usage("the format of %s is not plain from its name; give --format", name)
		}
	}
	if err := oneOf("format", format, "parquet", "arrow", "csv"); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if format == "csv" {
		return likeCSV(f)
	}
	records, err := openRecords(ctx, f, format, 1)
	if err != nil {
		return nil, err
	}
	defer records.close()
	return fieldsOf(records.schema())
}

// fieldsOf maps any Arrow schema to the columns that hold its values.
func fieldsOf(s *arrow.Schema) ([]schema.Field, error) {
	fields := make([]schema.Field, s.NumFields())
	for i, f := range s.Fields() {
		t, err := typeOf(f.Type, f.Nullable)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		fields[i] = schema.Field{Name: f.Name, Type: t}
	}
	return fields, nil
}

// typeOf is the narrowest type that holds every value of an Arrow type.
func typeOf(dt arrow.DataType, nullable bool) (schema.Type, error) {
	t := schema.Type{Nullable: nullable}
	of := func(k schema.Kind) (schema.Type, error) { t.Kind = k; return t, nil }
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		return of(schema.Boolean)
	case *arrow.Int8Type:
		return of(schema.TinyInt)
	case *arrow.Int16Type, *arrow.Uint8Type:
		return of(schema.SmallInt)
	case *arrow.Int32Type, *arrow.Uint16Type:
		return of(schema.Int)
	case *arrow.Int64Type, *arrow.Uint32Type:
		return of(schema.BigInt)
	case *arrow.Uint64Type:
		t.Prec = 20
		return of(schema.Decimal)
	case *arrow.Float16Type, *arrow.Float32Type:
		return of(schema.Float)
	case *arrow.Float64Type:
		return of(schema.Double)
	case *arrow.Decimal128Type:
		t.Prec, t.Scale = int(dt.Precision), int(dt.Scale)
		if t.Scale >= 0 && t.Scale <= t.Prec {
			return of(schema.Decimal)
		}
	case *arrow.StringType, *arrow.LargeStringType:
		t.Length = schema.MaxLength
		return of(schema.VarChar)
	case *arrow.BinaryType, *arrow.LargeBinaryType:
		t.Length = schema.MaxLength
		return of(schema.VarBinary)
	case *arrow.FixedSizeBinaryType:
		t.Length = dt.ByteWidth
		return of(schema.Binary)
	case *arrow.Date32Type, *arrow.Date64Type:
		return of(schema.Date)
	case *arrow.Time32Type:
		t.Prec = digits(dt.Unit)
		return of(schema.Time)
	case *arrow.Time64Type:
		t.Prec = digits(dt.Unit)
		return of(schema.Time)
	case *arrow.TimestampType:
		t.Prec = digits(dt.Unit)
		if dt.TimeZone != "" {
			return of(schema.TimestampLTZ)
		}
		return of(schema.Timestamp)
	case *arrow.DictionaryType:
		return typeOf(dt.ValueType, nullable)
	}
	return nestedTypeOf(dt, t)
}

// digits of the fraction of a second.
func digits(u arrow.TimeUnit) int {
	return map[arrow.TimeUnit]int{arrow.Second: 0, arrow.Millisecond: 3, arrow.Microsecond: 6, arrow.Nanosecond: 9}[u]
}

func nestedTypeOf(dt arrow.DataType, t schema.Type) (schema.Type, error) {
	part := func(f arrow.Field) (*schema.Type, error) {
		p, err := typeOf(f.Type, f.Nullable)
		return &p, err
	}
	var err error
	switch dt := dt.(type) {
	case *arrow.MapType:
		t.Kind = schema.Map
		if t.Key, err = part(dt.KeyField()); err == nil {
			t.Elem, err = part(dt.ItemField())
		}
	case *arrow.ListType:
		t.Kind = schema.Array
		t.Elem, err = part(dt.ElemField())
	case *arrow.LargeListType:
		t.Kind = schema.Array
		t.Elem, err = part(dt.ElemField())
	case *arrow.FixedSizeListType:
		t.Kind = schema.Array
		t.Elem, err = part(dt.ElemField())
	case *arrow.StructType:
		t.Kind = schema.Row
		t.Fields, err = fieldsOf(arrow.NewSchema(dt.Fields(), nil))
	default:
		return t, errs.Unsupported("no column type holds Arrow %s", dt)
	}
	return t, err
}

// Rows and bytes of a CSV file that its types are guessed from.
const (
	guessRows  = 1000
	guessBytes = 8 << 20
)

// guesses are the types of a CSV column, the first that reads all values wins.
var guesses = []string{"BOOLEAN", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP(6)"}

// likeCSV guesses the columns of a CSV file.
func likeCSV(in io.Reader) ([]schema.Field, error) {
	buf, err := io.ReadAll(io.LimitReader(in, guessBytes))
	if err != nil {
		return nil, err
	}
	atEnd := len(buf) < guessBytes
	buf = bytes.TrimPrefix(buf, byteOrderMark)
	header, n, err := parseCSV(buf, atEnd, nil)
	if err != nil {
		return nil, fmt.Errorf("the header of the CSV file: %w", err)
	}
	if n == 0 || len(header) == 1 && header[0].Null {
		return nil, errs.Invalid("the CSV file has no header")
	}
	fields := make([]schema.Field, len(header))
	columns := make([]guess, len(header))
	for i, cell := range header {
		if cell.Null {
			return nil, errs.Invalid("column %d of the CSV file has no name", i+1)
		}
		fields[i] = schema.Field{Name: string(cell.Text)}
		if columns[i], err = newGuess(); err != nil {
			return nil, err
		}
	}
	var cells []jsonl.Cell
	for row := 0; row < guessRows && n < len(buf); row++ {
		var size int
		if cells, size, err = parseCSV(buf[n:], atEnd, cells[:0]); err != nil {
			return nil, fmt.Errorf("row %d of the CSV file: %w", row+1, err)
		}
		if size == 0 {
			break
		}
		n += size
		for i := range min(len(cells), len(columns)) {
			columns[i].see(cells[i])
		}
	}
	for i := range fields {
		fields[i].Type = columns[i].best()
	}
	return fields, nil
}

// guess tries the types on the values of one column.
type guess struct {
	types    []schema.Type
	decoders []*jsonl.Decoder // nil once a value did not fit
	seen     bool
}

func newGuess() (guess, error) {
	var g guess
	for _, text := range guesses {
		t, err := schema.ParseType(text)
		if err != nil {
			return g, err
		}
		g.types = append(g.types, t)
		g.decoders = append(g.decoders, jsonl.NewDecoder([]schema.Field{{Name: "c", Type: t}}))
	}
	return g, nil
}

func (g *guess) see(cell jsonl.Cell) {
	if cell.Null {
		return
	}
	g.seen = true
	for i, d := range g.decoders {
		if d != nil && d.AppendCells([]jsonl.Cell{cell}) != nil {
			g.decoders[i] = nil
		}
	}
}

func (g *guess) best() schema.Type {
	for i, d := range g.decoders {
		if g.seen && d != nil {
			return g.types[i]
		}
	}
	return schema.Type{Kind: schema.VarChar, Length: schema.MaxLength, Nullable: true}
}
