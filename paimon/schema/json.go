package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/tideline-db/tideline/internal/errs"
	"github.com/tideline-db/tideline/paimon/schema/jsontree"
)

// Caps of a schema file. A thousand columns take about 80 KB.
const (
	MaxFileBytes = 8 << 20
	maxValues    = 1 << 20
	// Every nested type is at most an object, a field list and a field.
	maxDepth = 3*MaxTypeDepth + 8
	// maxKeys bounds what is quadratic in the length of a key list.
	maxKeys = 1000
)

// Parse reads a schema file. Unknown keys are ignored. Damage of any kind is
// ErrCorrupt with file and key path; a version or a type that is not known is
// ErrUnsupported. When the base name of file is schema-<n>, the id must be n.
// Options that older versions imply are added as FORMAT §2.1 says.
func Parse(data []byte, file string) (*Schema, error) {
	root, err := jsontree.Parse(data, file, jsontree.Limits{Bytes: MaxFileBytes, Depth: maxDepth, Values: maxValues})
	if err != nil {
		return nil, err
	}
	s, err := parseSchema(root)
	if err != nil {
		return nil, err
	}
	if err := s.checkParsed(root); err != nil {
		return nil, err
	}
	if text, ok := strings.CutPrefix(path.Base(file), "schema-"); ok {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n != s.ID {
			return nil, root.Corrupt("id is %d, the file name says %d", s.ID, n)
		}
	}
	s.upgrade()
	return s, nil
}

func parseSchema(root *jsontree.Node) (*Schema, error) {
	const maxInt = int64(1<<63 - 1)
	s := &Schema{}
	version, err := root.GetInt("version", 1, 1, maxInt)
	if err != nil {
		return nil, err
	}
	if version > CurrentVersion {
		return nil, errs.Unsupported("schema version %d; %d is the newest that is known", version, CurrentVersion)
	}
	s.Version = int(version)
	if s.ID, err = root.NeedInt("id", 0, maxInt); err != nil {
		return nil, err
	}
	fields, err := root.Need("fields")
	if err != nil {
		return nil, err
	}
	if s.Fields, err = parseFields(fields, 0); err != nil {
		return nil, err
	}
	highest, err := root.NeedInt("highestFieldId", -1, maxFieldID)
	if err != nil {
		return nil, err
	}
	s.HighestFieldID = int(highest)
	if s.PartitionKeys, err = parseNames(root, "partitionKeys"); err != nil {
		return nil, err
	}
	if s.PrimaryKeys, err = parseNames(root, "primaryKeys"); err != nil {
		return nil, err
	}
	if s.Options, err = parseOptionMap(root); err != nil {
		return nil, err
	}
	if s.Comment, err = root.GetStr("comment"); err != nil {
		return nil, err
	}
	s.TimeMillis, err = root.GetInt("timeMillis", 0, -maxInt, maxInt)
	return s, err
}

// parseFields reads a field list; depth is the number of types around it.
func parseFields(node *jsontree.Node, depth int) ([]Field, error) {
	items, err := node.Items()
	if err != nil {
		return nil, err
	}
	fields := make([]Field, len(items))
	for i, item := range items {
		id, err := item.NeedInt("id", 0, maxFieldID)
		if err != nil {
			return nil, err
		}
		f := Field{ID: int(id)}
		if f.Name, err = item.NeedStr("name"); err != nil {
			return nil, err
		}
		if f.Name == "" {
			return nil, item.Corrupt("name is empty")
		}
		typ, err := item.Need("type")
		if err != nil {
			return nil, err
		}
		if f.Type, err = parseTypeNode(typ, depth); err != nil {
			return nil, err
		}
		text, err := item.GetStr("description")
		if err != nil {
			return nil, err
		}
		if text != nil {
			f.Description = *text
		}
		if f.Default, err = item.GetStr("defaultValue"); err != nil {
			return nil, err
		}
		fields[i] = f
	}
	return fields, nil
}

func parseTypeNode(node *jsontree.Node, depth int) (Type, error) {
	if depth > MaxTypeDepth {
		return Type{}, node.Corrupt("type nests deeper than %d levels", MaxTypeDepth)
	}
	if !node.IsObject() {
		text, err := node.Str()
		if err != nil {
			return Type{}, err
		}
		t, err := parseType(text, false)
		if err != nil && errors.Is(err, errs.ErrInvalid) {
			return Type{}, node.Corrupt("%v", err)
		}
		return t, err
	}
	text, err := node.NeedStr("type")
	if err != nil {
		return Type{}, err
	}
	words := strings.Fields(strings.ToUpper(text))
	t := Type{Nullable: true}
	if n := len(words); n == 3 && words[1] == "NOT" && words[2] == "NULL" {
		t.Nullable = false
	} else if n != 1 && !(n == 2 && words[1] == "NULL") {
		return Type{}, node.Corrupt("type %q is not the name of a nested type", clipName(text))
	}
	return parseNested(node, words[0], t, depth)
}

func parseNested(node *jsontree.Node, name string, t Type, depth int) (Type, error) {
	sub := func(key string) (*Type, error) {
		child, err := node.Need(key)
		if err != nil {
			return nil, err
		}
		typ, err := parseTypeNode(child, depth+1)
		return &typ, err
	}
	var err error
	switch name {
	case "ARRAY", "MULTISET":
		t.Kind = Array
		if name == "MULTISET" {
			t.Kind = Multiset
		}
		t.Elem, err = sub("element")
	case "VECTOR":
		t.Kind = Vector
		if t.Elem, err = sub("element"); err == nil {
			var n int64
			n, err = node.NeedInt("length", 1, MaxLength)
			t.Length = int(n)
		}
	case "MAP":
		t.Kind = Map
		if t.Key, err = sub("key"); err == nil {
			t.Elem, err = sub("value")
		}
	case "ROW":
		t.Kind = Row
		var fields *jsontree.Node
		if fields, err = node.Need("fields"); err == nil {
			t.Fields, err = parseFields(fields, depth+1)
		}
	default:
		return Type{}, errs.Unsupported("nested type %s is not known", clipName(name))
	}
	return t, err
}

func parseNames(root *jsontree.Node, key string) ([]string, error) {
	node, err := root.Need(key)
	if err != nil {
		return nil, err
	}
	items, err := node.Items()
	if err != nil {
		return nil, err
	}
	if len(items) > maxKeys {
		return nil, node.Corrupt("%d names, at most %d are accepted", len(items), maxKeys)
	}
	names := make([]string, len(items))
	for i, item := range items {
		if names[i], err = item.Str(); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func parseOptionMap(root *jsontree.Node) (map[string]string, error) {
	node, err := root.Need("options")
	if err != nil {
		return nil, err
	}
	keys, vals, err := node.Members()
	if err != nil {
		return nil, err
	}
	options := make(map[string]string, len(keys))
	for i, key := range keys {
		if options[key], err = vals[i].Str(); err != nil {
			return nil, err
		}
	}
	return options, nil
}

// checkParsed verifies what the parts of a schema say about one another.
func (s *Schema) checkParsed(root *jsontree.Node) error {
	if err := checkFields(s.Fields, s.HighestFieldID); err != nil {
		return root.Corrupt("%v", err)
	}
	if err := s.checkKeys(); err != nil {
		return root.Corrupt("%v", err)
	}
	return nil
}

// upgrade adds the options that files of older versions imply.
func (s *Schema) upgrade() {
	imply := func(below int, key, val string) {
		if _, ok := s.Options[key]; s.Version <= below && !ok {
			s.Options[key] = val
		}
	}
	imply(1, "bucket", "1")
	imply(2, "file.format", "orc")
}

type jsonSchema struct {
	Version        int               `json:"version"`
	ID             int64             `json:"id"`
	Fields         []jsonField       `json:"fields"`
	HighestFieldID int               `json:"highestFieldId"`
	PartitionKeys  []string          `json:"partitionKeys"`
	PrimaryKeys    []string          `json:"primaryKeys"`
	Options        map[string]string `json:"options"`
	Comment        *string           `json:"comment,omitempty"`
	TimeMillis     int64             `json:"timeMillis"`
}

type jsonField struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Type        any     `json:"type"` // string or jsonType
	Description string  `json:"description,omitempty"`
	Default     *string `json:"defaultValue,omitempty"`
}

type jsonType struct {
	Type    string       `json:"type"`
	Element any          `json:"element,omitempty"`
	Key     any          `json:"key,omitempty"`
	Value   any          `json:"value,omitempty"`
	Fields  *[]jsonField `json:"fields,omitempty"`
	Length  int          `json:"length,omitempty"`
}

// Marshal writes the schema file with the keys of FORMAT §2.1 in their order and
// the options sorted, so that equal schemas have equal bytes.
func (s *Schema) Marshal() []byte {
	j := jsonSchema{
		Version: s.Version, ID: s.ID, Fields: marshalFields(s.Fields), HighestFieldID: s.HighestFieldID,
		PartitionKeys: append([]string{}, s.PartitionKeys...), PrimaryKeys: append([]string{}, s.PrimaryKeys...),
		Options: s.Options, Comment: s.Comment, TimeMillis: s.TimeMillis,
	}
	if j.Options == nil {
		j.Options = map[string]string{}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(j); err != nil {
		panic("schema: strings and numbers always encode: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func marshalFields(fields []Field) []jsonField {
	out := make([]jsonField, len(fields))
	for i, f := range fields {
		out[i] = jsonField{
			ID: f.ID, Name: f.Name, Type: marshalType(f.Type), Description: f.Description, Default: f.Default,
		}
	}
	return out
}

func marshalType(t Type) any {
	j := jsonType{Type: t.jsonName()}
	switch t.Kind {
	case Array, Multiset:
		j.Element = marshalType(*t.Elem)
	case Vector:
		j.Element = marshalType(*t.Elem)
		j.Length = t.Length
	case Map:
		j.Key = marshalType(*t.Key)
		j.Value = marshalType(*t.Elem)
	case Row:
		fields := marshalFields(t.Fields)
		j.Fields = &fields
	default:
		return t.String()
	}
	return j
}
