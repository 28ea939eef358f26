// Package jsontree reads the small JSON documents of a table (schemas, offsets,
// records) as untrusted bytes.
//
// What it adds to encoding/json: caps on bytes, nesting and number of values
// that are checked before memory is spent; duplicate object keys, invalid UTF-8,
// byte order marks and trailing text are errors; numbers are whole int64; and
// every error is an errs.CorruptError that names the file and the path of the
// key, for instance "fields[3].type.element".
//
// Memory: at most MemoryFactor bytes are kept for a byte of input.
package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
)

// MemoryFactor bounds the memory of a parsed document as a multiple of its text;
// the worst are lists of objects with one short member each.
const MemoryFactor = 64

// Limits are the caps of one document; all three must be set.
type Limits struct {
	Bytes  int // size of the text
	Depth  int // nesting of objects and arrays
	Values int // objects, arrays, strings, numbers, booleans and nulls together
}

type object struct {
	keys []string
	vals map[string]any
}

// Node is one value of a document together with the way to it. The zero Node is
// not valid; nodes come from Parse and from other nodes.
type Node struct {
	val    any // *object, []any, string, json.Number, bool or nil
	parent *Node
	key    string // name below an object
	index  int    // position below an array, -1 below an object
	file   string
}

// Parse reads one document. file is used in errors only.
func Parse(data []byte, file string, lim Limits) (*Node, error) {
	if len(data) > lim.Bytes {
		return nil, errs.Corrupt(file, -1, "document of %d bytes, at most %d are accepted", len(data), lim.Bytes)
	}
	if !utf8.Valid(data) {
		return nil, errs.Corrupt(file, -1, "text is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	p := parser{dec: dec, file: file, lim: lim}
	val, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errs.Corrupt(file, dec.InputOffset(), "text after the end of the document")
	}
	return &Node{val: val, index: -1, file: file}, nil
}

type parser struct {
	dec    *json.Decoder
	file   string
	lim    Limits
	values int
}

func (p *parser) fail(format string, args ...any) error {
	return errs.Corrupt(p.file, p.dec.InputOffset(), format, args...)
}

func (p *parser) token() (json.Token, error) {
	tok, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, p.fail("JSON text ends early")
	}
	if err != nil {
		return nil, p.fail("%v", err)
	}
	return tok, nil
}

func (p *parser) value(depth int) (any, error) {
	tok, err := p.token()
	if err != nil {
		return nil, err
	}
	if p.values++; p.values > p.lim.Values {
		return nil, p.fail("more than %d values", p.lim.Values)
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if depth >= p.lim.Depth {
		return nil, p.fail("nested deeper than %d levels", p.lim.Depth)
	}
	if delim == '{' {
		return p.object(depth)
	}
	return p.array(depth)
}

func (p *parser) object(depth int) (any, error) {
	o := &object{vals: map[string]any{}}
	for p.dec.More() {
		tok, err := p.token()
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return nil, p.fail("object key is not a string")
		}
		if _, dup := o.vals[key]; dup {
			return nil, p.fail("key %q appears twice in one object", key)
		}
		val, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o.keys = append(o.keys, key)
		o.vals[key] = val
	}
	_, err := p.token()
	return o, err
}

func (p *parser) array(depth int) (any, error) {
	list := []any{}
	for p.dec.More() {
		val, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, val)
	}
	_, err := p.token()
	return list, err
}

// Path is the way to the node: "fields[3].type"; the root is "$".
func (n *Node) Path() string {
	if n.parent == nil {
		return "$"
	}
	var parts []string
	for at := n; at.parent != nil; at = at.parent {
		if at.index >= 0 {
			parts = append(parts, "["+strconv.Itoa(at.index)+"]")
		} else {
			parts = append(parts, "."+at.key)
		}
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	return strings.TrimPrefix(b.String(), ".")
}

// Corrupt is a CorruptError that names the file and the path of the node.
func (n *Node) Corrupt(format string, args ...any) error {
	return errs.Corrupt(n.file, -1, n.Path()+": "+format, args...)
}

func (n *Node) kind() string {
	switch n.val.(type) {
	case *object:
		return "an object"
	case []any:
		return "an array"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	}
	return "null"
}

// IsObject tells an object from the other kinds.
func (n *Node) IsObject() bool { _, ok := n.val.(*object); return ok }

// Get returns the member key of an object, nil when it is absent or null.
func (n *Node) Get(key string) (*Node, error) {
	o, ok := n.val.(*object)
	if !ok {
		return nil, n.Corrupt("is %s, an object is expected", n.kind())
	}
	val := o.vals[key]
	if val == nil {
		return nil, nil
	}
	return &Node{val: val, parent: n, key: key, index: -1, file: n.file}, nil
}

// Need is Get for a member that must be there.
func (n *Node) Need(key string) (*Node, error) {
	m, err := n.Get(key)
	if err == nil && m == nil {
		return nil, n.Corrupt("key %q is missing", key)
	}
	return m, err
}

// Members returns the members of an object in the order of the text. Null
// members are included.
func (n *Node) Members() ([]string, []*Node, error) {
	o, ok := n.val.(*object)
	if !ok {
		return nil, nil, n.Corrupt("is %s, an object is expected", n.kind())
	}
	nodes := make([]*Node, len(o.keys))
	for i, key := range o.keys {
		nodes[i] = &Node{val: o.vals[key], parent: n, key: key, index: -1, file: n.file}
	}
	return o.keys, nodes, nil
}

// Items returns the elements of an array.
func (n *Node) Items() ([]*Node, error) {
	list, ok := n.val.([]any)
	if !ok {
		return nil, n.Corrupt("is %s, an array is expected", n.kind())
	}
	nodes := make([]*Node, len(list))
	for i, val := range list {
		nodes[i] = &Node{val: val, parent: n, index: i, file: n.file}
	}
	return nodes, nil
}

// Str returns the text of a string.
func (n *Node) Str() (string, error) {
	s, ok := n.val.(string)
	if !ok {
		return "", n.Corrupt("is %s, a string is expected", n.kind())
	}
	return s, nil
}

// Int returns a whole number within [low, high].
func (n *Node) Int(low, high int64) (int64, error) {
	num, ok := n.val.(json.Number)
	if !ok {
		return 0, n.Corrupt("is %s, a whole number is expected", n.kind())
	}
	i, err := strconv.ParseInt(num.String(), 10, 64)
	if err != nil {
		return 0, n.Corrupt("%s is not a whole 64-bit number", clip(num.String()))
	}
	if i < low || i > high {
		return 0, n.Corrupt("%d is not between %d and %d", i, low, high)
	}
	return i, nil
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// NeedStr is Need and Str.
func (n *Node) NeedStr(key string) (string, error) {
	m, err := n.Need(key)
	if err != nil {
		return "", err
	}
	return m.Str()
}

// NeedInt is Need and Int.
func (n *Node) NeedInt(key string, low, high int64) (int64, error) {
	m, err := n.Need(key)
	if err != nil {
		return 0, err
	}
	return m.Int(low, high)
}

// GetInt is Get and Int, def when the member is absent or null.
func (n *Node) GetInt(key string, def, low, high int64) (int64, error) {
	m, err := n.Get(key)
	if err != nil || m == nil {
		return def, err
	}
	return m.Int(low, high)
}

// GetStr is Get and Str; nil when the member is absent or null.
func (n *Node) GetStr(key string) (*string, error) {
	m, err := n.Get(key)
	if err != nil || m == nil {
		return nil, err
	}
	s, err := m.Str()
	return &s, err
}
