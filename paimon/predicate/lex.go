package predicate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tideline-db/tideline/internal/errs"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenKeyword // text is in lower case
	tokenNumber
	tokenString // text is the content
	tokenSymbol
)

type token struct {
	kind tokenKind
	text string
	at   int // byte position in the text
}

var keywords = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "between": true, "is": true,
	"null": true, "like": true, "true": true, "false": true,
}

// lex splits the text of a predicate into tokens, the last one tokenEnd.
func lex(text string) ([]token, error) {
	var tokens []token
	for at := 0; ; {
		for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
			at++
		}
		if at == len(text) {
			return append(tokens, token{tokenEnd, "the end", at}), nil
		}
		t, end, err := lexOne(text, at)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		at = end
	}
}

func lexOne(text string, at int) (token, int, error) {
	switch c := text[at]; {
	case c == '\'':
		s, end, ok := quoted(text, at, '\'')
		if !ok {
			return token{}, 0, syntaxError(at, "a string is not closed")
		}
		return token{tokenString, s, at}, end, nil
	case c == '`' || nameStart(text[at:]):
		return lexName(text, at)
	case digit(c) || (c == '.' || c == '-' || c == '+') && numberFollows(text[at+1:]):
		end := lexNumber(text, at)
		return token{tokenNumber, text[at:end], at}, end, nil
	}
	for _, s := range []string{"<=", ">=", "<>", "!=", "==", "<", ">", "=", "(", ")", ","} {
		if strings.HasPrefix(text[at:], s) {
			return token{tokenSymbol, s, at}, at + len(s), nil
		}
	}
	if text[at] == '"' {
		return token{}, 0, syntaxError(at, "text stands in single quotes, a column's name in none or in backquotes")
	}
	r, _ := utf8.DecodeRuneInString(text[at:])
	return token{}, 0, syntaxError(at, "the character %q is not understood", r)
}

// quoted reads a text in quotes, in which a doubled quote stands for one.
func quoted(text string, at int, quote byte) (content string, end int, ok bool) {
	var b strings.Builder
	for i := at + 1; i < len(text); i++ {
		if text[i] != quote {
			b.WriteByte(text[i])
			continue
		}
		if i+1 < len(text) && text[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		return b.String(), i + 1, true
	}
	return "", 0, false
}

// lexName reads a keyword or a column name: parts in backticks or plain, joined
// by dots.
func lexName(text string, from int) (token, int, error) {
	var b strings.Builder
	at, plain := from, true
	for {
		switch {
		case at < len(text) && text[at] == '`':
			s, end, ok := quoted(text, at, '`')
			if !ok || s == "" {
				return token{}, 0, syntaxError(at, "a name in backticks is empty or not closed")
			}
			b.WriteString(s)
			at, plain = end, false
		case at < len(text) && nameStart(text[at:]):
			end := at
			for end < len(text) && namePart(text[end:]) {
				_, n := utf8.DecodeRuneInString(text[end:])
				end += n
			}
			b.WriteString(text[at:end])
			at = end
		default:
			return token{}, 0, syntaxError(at, "a name ends in a dot")
		}
		if at == len(text) || text[at] != '.' {
			break
		}
		b.WriteByte('.')
		at++
		plain = false
	}
	if word := strings.ToLower(b.String()); plain && keywords[word] {
		return token{tokenKeyword, word, from}, at, nil
	}
	return token{tokenName, b.String(), from}, at, nil
}

// isPlainName tells whether a name can be written without backticks and is read
// back as itself.
func isPlainName(name string) bool {
	t, end, err := lexName(name, 0)
	return err == nil && end == len(name) && t.kind == tokenName && t.text == name
}

func nameStart(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '_' || r != utf8.RuneError && unicode.IsLetter(r)
}

func namePart(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '_' || r == '$' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func numberFollows(s string) bool {
	return s != "" && (digit(s[0]) || s[0] == '.' && len(s) > 1 && digit(s[1]))
}

// lexNumber returns the end of [+-] digits [. digits] [e [+-] digits].
func lexNumber(text string, at int) int {
	digits := func() {
		for at < len(text) && digit(text[at]) {
			at++
		}
	}
	if text[at] == '-' || text[at] == '+' {
		at++
	}
	digits()
	if at < len(text) && text[at] == '.' {
		at++
		digits()
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		mark := at
		at++
		if at < len(text) && (text[at] == '-' || text[at] == '+') {
			at++
		}
		if at == len(text) || !digit(text[at]) {
			return mark
		}
		digits()
	}
	return at
}

func syntaxError(at int, format string, args ...any) error {
	return errs.Invalid("predicate, position %d: "+format, append([]any{at + 1}, args...)...)
}
