package jsonl

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
)

// maxDepth bounds the nesting of values that are skipped; those that are read
// nest as deep as the schema.
const maxDepth = 512

// scanner reads one JSON value from the front of s. Text it returns is valid until
// the next string.
type scanner struct {
	s       []byte
	at      int
	scratch []byte // unescaped text
}

// syntax is the error of a line that is not JSON at the current place.
func (s *scanner) syntax(want string) error {
	if s.at >= len(s.s) {
		return errs.Invalid("the line ends where %s should be", want)
	}
	return errs.Invalid("byte %d is %q where %s should be", s.at+1, s.s[s.at], want)
}

func (s *scanner) space() {
	for s.at < len(s.s) && (s.s[s.at] == ' ' || s.s[s.at] == '\t' || s.s[s.at] == '\r' || s.s[s.at] == '\n') {
		s.at++
	}
}

// peek is the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at < len(s.s) {
		return s.s[s.at]
	}
	return 0
}

// take steps over c if it comes next.
func (s *scanner) take(c byte) bool {
	if s.peek() == c && s.at < len(s.s) {
		s.at++
		return true
	}
	return false
}

func (s *scanner) need(c byte, want string) error {
	if !s.take(c) {
		return s.syntax(want)
	}
	return nil
}

// word takes a literal name.
func (s *scanner) word(w string) bool {
	if len(s.s)-s.at >= len(w) && string(s.s[s.at:s.at+len(w)]) == w {
		s.at += len(w)
		return true
	}
	return false
}

// null takes the literal null if it comes next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.word("null") }

// scalar takes a string, number, true or false and returns its text.
func (s *scanner) scalar() (text []byte, quoted bool, err error) {
	switch c := s.peek(); {
	case c == '"':
		text, err = s.str()
		return text, true, err
	case c == '-' || c >= '0' && c <= '9':
		text, err = s.number()
		return text, false, err
	}
	begin := s.at
	if s.word("true") || s.word("false") {
		return s.s[begin:s.at], false, nil
	}
	return nil, false, s.syntax("a value")
}

// number takes a number by the grammar of JSON.
func (s *scanner) number() ([]byte, error) {
	begin := s.at
	digits := func() bool {
		first := s.at
		for s.at < len(s.s) && s.s[s.at] >= '0' && s.s[s.at] <= '9' {
			s.at++
		}
		return s.at > first
	}
	if s.s[s.at] == '-' {
		s.at++
	}
	whole := s.at
	if !digits() || s.s[whole] == '0' && s.at-whole > 1 {
		return nil, errs.Invalid("byte %d begins a malformed number", begin+1)
	}
	if s.at < len(s.s) && s.s[s.at] == '.' {
		s.at++
		if !digits() {
			return nil, errs.Invalid("byte %d begins a malformed number", begin+1)
		}
	}
	if s.at < len(s.s) && (s.s[s.at] == 'e' || s.s[s.at] == 'E') {
		s.at++
		if s.at < len(s.s) && (s.s[s.at] == '+' || s.s[s.at] == '-') {
			s.at++
		}
		if !digits() {
			return nil, errs.Invalid("byte %d begins a malformed number", begin+1)
		}
	}
	return s.s[begin:s.at], nil
}

// str takes a string. Without escapes the result lies in the line itself.
func (s *scanner) str() ([]byte, error) {
	s.at++
	begin := s.at
	ascii := true
	for s.at < len(s.s) {
		c := s.s[s.at]
		switch {
		case c == '"':
			text := s.s[begin:s.at]
			s.at++
			if !ascii && !utf8.Valid(text) {
				return nil, errs.Invalid("the string at byte %d is not UTF-8", begin)
			}
			return text, nil
		case c == '\\':
			return s.escaped(begin)
		case c < ' ':
			return nil, errs.Invalid("byte %d is a control character inside a string", s.at+1)
		case c >= utf8.RuneSelf:
			ascii = false
		}
		s.at++
	}
	return nil, errs.Invalid("the string at byte %d has no end", begin)
}

// escaped goes on with a string that has a backslash at the current place.
func (s *scanner) escaped(begin int) ([]byte, error) {
	text := append(s.scratch[:0], s.s[begin:s.at]...)
	for s.at < len(s.s) {
		c := s.s[s.at]
		switch {
		case c == '"':
			s.at++
			s.scratch = text
			if !utf8.Valid(text) {
				return nil, errs.Invalid("the string at byte %d is not UTF-8", begin)
			}
			return text, nil
		case c < ' ':
			return nil, errs.Invalid("byte %d is a control character inside a string", s.at+1)
		case c != '\\':
			text = append(text, c)
			s.at++
		default:
			var err error
			if text, err = s.escape(text); err != nil {
				return nil, err
			}
		}
	}
	return nil, errs.Invalid("the string at byte %d has no end", begin)
}

func (s *scanner) escape(text []byte) ([]byte, error) {
	bad := errs.Invalid("byte %d begins a malformed escape", s.at+1)
	if s.at+1 >= len(s.s) {
		return nil, bad
	}
	c := s.s[s.at+1]
	s.at += 2
	switch c {
	case '"', '\\', '/':
		return append(text, c), nil
	case 'b':
		return append(text, '\b'), nil
	case 'f':
		return append(text, '\f'), nil
	case 'n':
		return append(text, '\n'), nil
	case 'r':
		return append(text, '\r'), nil
	case 't':
		return append(text, '\t'), nil
	case 'u':
		r, ok := s.unit()
		if !ok {
			return nil, bad
		}
		if utf16.IsSurrogate(r) {
			if !s.word(`\u`) {
				return nil, bad
			}
			low, ok := s.unit()
			if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
				return nil, bad
			}
		}
		return utf8.AppendRune(text, r), nil
	}
	return nil, bad
}

// unit takes four hexadecimal digits.
func (s *scanner) unit() (rune, bool) {
	if len(s.s)-s.at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s.s[s.at:s.at+4]), 16, 16)
	s.at += 4
	return rune(n), err == nil
}

// skip steps over any value, checking its syntax.
func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return errs.Invalid("values nest deeper than %d levels", maxDepth)
	}
	switch s.peek() {
	case '[':
		return s.each('[', ']', func() error { return s.skip(depth + 1) })
	case '{':
		return s.members(func([]byte) error { return s.skip(depth + 1) })
	}
	if s.null() {
		return nil
	}
	_, _, err := s.scalar()
	return err
}

// each calls element at the begin of every element.
func (s *scanner) each(open, end byte, element func() error) error {
	if !s.take(open) {
		return s.syntax("'" + string(open) + "'")
	}
	if s.take(end) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.take(end) {
			return nil
		}
		if !s.take(',') {
			return s.syntax("',' or '" + string(end) + "'")
		}
	}
}

// members calls member at the begin of the value of every key.
func (s *scanner) members(member func(key []byte) error) error {
	return s.each('{', '}', func() error {
		if s.peek() != '"' {
			return s.syntax("a key in quotes")
		}
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.need(':', "':'"); err != nil {
			return err
		}
		return member(key)
	})
}

// rest fails unless only space is left.
func (s *scanner) rest() error {
	if s.peek() != 0 || s.at < len(s.s) {
		return s.syntax("the end of the line")
	}
	return nil
}
