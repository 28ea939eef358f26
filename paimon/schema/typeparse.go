package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
)

// ParseType reads a type text (FORMAT §2.2): case-insensitive, tolerant of
// spaces, aliases and an explicit NULL. It also reads the SQL form of nested
// types that Type.String prints; members of a ROW get the id 0 there.
// ErrInvalid says what is wrong, ErrUnsupported that the name of the type is not
// known.
func ParseType(text string) (Type, error) {
	return parseType(text, true)
}

// maxTypeText is the longest type text that is looked at.
const maxTypeText = 1 << 16

func parseType(text string, nested bool) (Type, error) {
	if len(text) > maxTypeText {
		return Type{}, errs.Invalid("type text of %d bytes, at most %d are accepted", len(text), maxTypeText)
	}
	if !utf8.ValidString(text) {
		return Type{}, errs.Invalid("type text is not UTF-8")
	}
	p := typeParser{text: text, nested: nested}
	t, err := p.typ(0)
	if err != nil {
		return Type{}, err
	}
	if p.space(); p.at < len(p.text) {
		return Type{}, p.fail("text after the end of the type")
	}
	return t, nil
}

type typeParser struct {
	text   string
	at     int
	nested bool
}

func (p *typeParser) fail(what string) error {
	text := p.text
	if len(text) > 120 {
		text = text[:120] + "..."
	}
	return errs.Invalid("type %q: %s at character %d", text, what, p.at)
}

func (p *typeParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// word reads the next word in upper case without consuming it; "" if the next
// character starts none.
func (p *typeParser) word() (string, int) {
	p.space()
	end := p.at
	for end < len(p.text) && isWordByte(p.text[end]) {
		end++
	}
	return strings.ToUpper(p.text[p.at:end]), end
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// take consumes the words if all of them come next.
func (p *typeParser) take(words ...string) bool {
	start := p.at
	for _, want := range words {
		got, end := p.word()
		if got != want {
			p.at = start
			return false
		}
		p.at = end
	}
	return true
}

func (p *typeParser) char(c byte) bool {
	p.space()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *typeParser) number() (int, error) {
	word, end := p.word()
	n, err := strconv.ParseInt(word, 10, 32)
	if err != nil || word[0] == '+' || n < 0 {
		return 0, p.fail("a number is expected")
	}
	p.at = end
	return int(n), nil
}

// param reads "(n)", def when there is none.
func (p *typeParser) param(def, low, high int) (int, error) {
	if !p.char('(') {
		return def, nil
	}
	n, err := p.number()
	if err != nil {
		return 0, err
	}
	if !p.char(')') {
		return 0, p.fail("')' is expected")
	}
	if n < low || n > high {
		return 0, p.fail(strconv.Itoa(n) + " is not between " + strconv.Itoa(low) + " and " + strconv.Itoa(high))
	}
	return n, nil
}

func (p *typeParser) typ(depth int) (Type, error) {
	if depth > MaxTypeDepth {
		return Type{}, p.fail("nested too deep")
	}
	name, end := p.word()
	if name == "" {
		return Type{}, p.fail("a type name is expected")
	}
	p.at = end
	t, err := p.body(name, depth)
	if err != nil {
		return Type{}, err
	}
	t.Nullable = !p.take("NOT", "NULL")
	if t.Nullable {
		p.take("NULL")
	}
	return t, nil
}

var plainTypes = map[string]Type{
	"BOOLEAN": {Kind: Boolean}, "TINYINT": {Kind: TinyInt}, "SMALLINT": {Kind: SmallInt},
	"INT": {Kind: Int}, "INTEGER": {Kind: Int}, "BIGINT": {Kind: BigInt}, "FLOAT": {Kind: Float},
	"DATE": {Kind: Date}, "STRING": {Kind: VarChar, Length: MaxLength},
	"BYTES": {Kind: VarBinary, Length: MaxLength}, "VARIANT": {Kind: Variant}, "BLOB": {Kind: Blob},
}

var lengthTypes = map[string]Kind{"CHAR": Char, "VARCHAR": VarChar, "BINARY": Binary, "VARBINARY": VarBinary}

func (p *typeParser) body(name string, depth int) (Type, error) {
	if t, ok := plainTypes[name]; ok {
		return t, nil
	}
	if kind, ok := lengthTypes[name]; ok {
		n, err := p.param(1, 1, MaxLength)
		return Type{Kind: kind, Length: n}, err
	}
	switch name {
	case "DOUBLE":
		p.take("PRECISION")
		return Type{Kind: Double}, nil
	case "DECIMAL", "NUMERIC", "DEC":
		return p.decimal()
	case "TIME":
		n, err := p.param(0, 0, 9)
		p.take("WITHOUT", "TIME", "ZONE")
		return Type{Kind: Time, Prec: n}, err
	case "TIMESTAMP":
		n, err := p.param(6, 0, 9)
		if p.take("WITH", "LOCAL", "TIME", "ZONE") {
			return Type{Kind: TimestampLTZ, Prec: n}, err
		}
		p.take("WITHOUT", "TIME", "ZONE")
		return Type{Kind: Timestamp, Prec: n}, err
	case "TIMESTAMP_LTZ":
		n, err := p.param(6, 0, 9)
		return Type{Kind: TimestampLTZ, Prec: n}, err
	case "GEOMETRY":
		return p.geo(Geometry)
	case "GEOGRAPHY":
		return p.geo(Geography)
	case "ARRAY", "MULTISET", "VECTOR", "MAP", "ROW":
		if !p.nested {
			return Type{}, p.fail("a nested type must be a JSON object")
		}
		return p.nestedBody(name, depth)
	}
	return Type{}, errs.Unsupported("type %s is not known", clipName(name))
}

func clipName(name string) string {
	if len(name) > 40 {
		return name[:40] + "..."
	}
	return name
}

func (p *typeParser) decimal() (Type, error) {
	t := Type{Kind: Decimal, Prec: 10}
	if !p.char('(') {
		return t, nil
	}
	var err error
	if t.Prec, err = p.number(); err != nil {
		return t, err
	}
	if p.char(',') {
		if t.Scale, err = p.number(); err != nil {
			return t, err
		}
	}
	if !p.char(')') {
		return t, p.fail("')' is expected")
	}
	if t.Prec < 1 || t.Prec > 38 || t.Scale > t.Prec {
		return t, p.fail("precision or scale is out of range")
	}
	return t, nil
}

func (p *typeParser) geo(kind Kind) (Type, error) {
	t := Type{Kind: kind}
	if !p.char('(') {
		return t, nil
	}
	end := strings.IndexByte(p.text[p.at:], ')')
	if end < 0 {
		return t, p.fail("')' is expected")
	}
	t.Param = strings.TrimSpace(p.text[p.at : p.at+end])
	p.at += end + 1
	return t, nil
}

func (p *typeParser) nestedBody(name string, depth int) (Type, error) {
	if !p.char('<') {
		return Type{}, p.fail("'<' is expected")
	}
	var t Type
	var err error
	switch name {
	case "ROW":
		t, err = p.row(depth)
	case "MAP":
		t, err = p.mapBody(depth)
	default:
		t, err = p.elemBody(name, depth)
	}
	if err != nil {
		return Type{}, err
	}
	if !p.char('>') {
		return Type{}, p.fail("'>' is expected")
	}
	return t, nil
}

func (p *typeParser) elemBody(name string, depth int) (Type, error) {
	elem, err := p.typ(depth + 1)
	if err != nil {
		return Type{}, err
	}
	t := Type{Kind: Array, Elem: &elem}
	switch name {
	case "MULTISET":
		t.Kind = Multiset
	case "VECTOR":
		t.Kind = Vector
		if !p.char(',') {
			return Type{}, p.fail("',' is expected")
		}
		if t.Length, err = p.number(); err != nil || t.Length == 0 {
			return Type{}, p.fail("a length is expected")
		}
	}
	return t, nil
}

func (p *typeParser) mapBody(depth int) (Type, error) {
	key, err := p.typ(depth + 1)
	if err != nil {
		return Type{}, err
	}
	if !p.char(',') {
		return Type{}, p.fail("',' is expected")
	}
	elem, err := p.typ(depth + 1)
	if err != nil {
		return Type{}, err
	}
	return Type{Kind: Map, Key: &key, Elem: &elem}, nil
}

func (p *typeParser) row(depth int) (Type, error) {
	t := Type{Kind: Row, Fields: []Field{}}
	names := map[string]bool{}
	for p.space(); p.at < len(p.text) && p.text[p.at] != '>'; p.space() {
		if len(t.Fields) > 0 && !p.char(',') {
			return Type{}, p.fail("',' is expected")
		}
		name, err := p.memberName()
		if err != nil {
			return Type{}, err
		}
		if names[name] {
			return Type{}, p.fail("two members have the same name")
		}
		names[name] = true
		typ, err := p.typ(depth + 1)
		if err != nil {
			return Type{}, err
		}
		t.Fields = append(t.Fields, Field{Name: name, Type: typ})
	}
	return t, nil
}

// memberName reads a bare word or a name in backquotes, in which a doubled
// backquote stands for one.
func (p *typeParser) memberName() (string, error) {
	if !p.char('`') {
		_, end := p.word()
		name := p.text[p.at:end]
		if name == "" {
			return "", p.fail("a member name is expected")
		}
		p.at = end
		return name, nil
	}
	var b strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		if c != '`' {
			b.WriteByte(c)
			continue
		}
		if p.at >= len(p.text) || p.text[p.at] != '`' {
			return b.String(), nil
		}
		b.WriteByte('`')
		p.at++
	}
	return "", p.fail("a closing backquote is expected")
}
