package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Schema is a table definition with the keys of a schema file, so that a table's
// newest schema file reads as one. The package has its own reader of it on purpose:
// a judge must not share code with what it judges.
type Schema struct {
	Fields        []Field           `json:"fields"`
	PartitionKeys []string          `json:"partitionKeys"`
	PrimaryKeys   []string          `json:"primaryKeys"`
	Options       map[string]string `json:"options"`
}

// Field is a column; Type is a type string, or the JSON object of a nested type.
type Field struct {
	ID   int             `json:"id"`
	Name string          `json:"name"`
	Type json.RawMessage `json:"type"`
}

// JSON is the schema as the oracles take it.
func (s Schema) JSON() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // only strings and raw JSON that was parsed before
	}
	return b
}

// ReadSchema reads the newest schema of the table in a local folder.
func ReadSchema(table string) (Schema, error) {
	names, err := filepath.Glob(filepath.Join(table, "schema", "schema-*"))
	if err != nil {
		return Schema{}, err
	}
	newest, file := -1, ""
	for _, n := range names {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(n), "schema-"))
		if err == nil && id > newest {
			newest, file = id, n
		}
	}
	if newest < 0 {
		return Schema{}, fmt.Errorf("no schema file in %s", table)
	}
	return readSchemaFile(file)
}

func readSchemaFile(file string) (Schema, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Schema{}, err
	}
	var s Schema
	if err := json.Unmarshal(b, &s); err != nil {
		return Schema{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// dataType is a column type as far as comparing and converting values needs it.
type dataType struct {
	root     string // BOOLEAN, INT, TIMESTAMP_LTZ, ARRAY, ...
	notNull  bool
	args     []int // the numbers between the parentheses
	elem     *dataType
	key      *dataType // MAP; of a MULTISET the element, whose count is elem
	names    []string  // ROW
	children []*dataType
}

// arg is the i-th number between the parentheses, or the default of the type.
func (t *dataType) arg(i, otherwise int) int {
	if i < len(t.args) {
		return t.args[i]
	}
	return otherwise
}

func (s Schema) types() ([]*dataType, error) {
	out := make([]*dataType, len(s.Fields))
	for i, f := range s.Fields {
		t, err := parseType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		out[i] = t
	}
	return out, nil
}

func parseType(raw json.RawMessage) (*dataType, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return parseTypeText(text)
	}
	var o struct {
		Type                string
		Element, Key, Value json.RawMessage
		Fields              []Field
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("type %s: %w", raw, err)
	}
	t, err := parseTypeText(o.Type)
	if err != nil {
		return nil, err
	}
	switch t.root {
	case "ARRAY":
		t.elem, err = parseType(o.Element)
	case "MULTISET":
		t.elem = &dataType{root: "INT", notNull: true}
		t.key, err = parseType(o.Element)
	case "MAP":
		if t.key, err = parseType(o.Key); err == nil {
			t.elem, err = parseType(o.Value)
		}
	case "ROW":
		for _, f := range o.Fields {
			c, e := parseType(f.Type)
			if e != nil {
				return nil, e
			}
			t.names, t.children = append(t.names, f.Name), append(t.children, c)
		}
	}
	return t, err
}

func parseTypeText(text string) (*dataType, error) {
	t := &dataType{}
	rest := strings.ToUpper(strings.TrimSpace(text))
	if cut, ok := strings.CutSuffix(rest, " NOT NULL"); ok {
		t.notNull, rest = true, cut
	}
	if cut, ok := strings.CutSuffix(rest, " WITH LOCAL TIME ZONE"); ok {
		rest = strings.Replace(cut, "TIMESTAMP", "TIMESTAMP_LTZ", 1)
	}
	if open := strings.IndexByte(rest, '('); open >= 0 {
		for _, a := range strings.Split(strings.Trim(rest[open:], "()"), ",") {
			n, err := strconv.Atoi(strings.TrimSpace(a))
			if err != nil {
				return nil, fmt.Errorf("type %q: %w", text, err)
			}
			t.args = append(t.args, n)
		}
		rest = rest[:open]
	}
	t.root = strings.TrimSpace(rest)
	if t.root == "" {
		return nil, fmt.Errorf("empty type %q", text)
	}
	return t, nil
}
