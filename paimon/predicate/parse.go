package predicate

import (
	"strings"
)

const (
	textBytesMax = 1 << 20 // longer predicates are refused
	nestingMax   = 200     // parentheses and NOTs inside one another
)

// Parse reads a predicate as it stands behind WHERE:
//
//	city = 'Oslo' AND (n > 3 OR x IN (1, 2)) AND y IS NOT NULL AND name LIKE 'ab%'
//
// Comparisons are = == <> != < <= > >=, [NOT] IN, [NOT] BETWEEN, IS [NOT] NULL
// and [NOT] LIKE with a prefix pattern; literals are numbers, 'text' (a quote is
// doubled), TRUE, FALSE and NULL; the literal may stand left. Keywords may be
// in any case. Names are a column, a path a.b into a row, or either in
// backticks. AND binds tighter than OR, NOT tightest. Errors are ErrInvalid and
// name the position, counted from 1 in bytes.
func Parse(text string) (*Predicate, error) {
	if len(text) > textBytesMax {
		return nil, syntaxError(textBytesMax, "the text is longer than %d bytes", textBytesMax)
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	tree, err := p.disjunction()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokenEnd {
		return nil, syntaxError(t.at, "expected AND, OR or the end, found %s", t.text)
	}
	return tree, nil
}

type parser struct {
	tokens []token
	at     int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// accept takes the next token if it is this keyword or symbol.
func (p *parser) accept(kind tokenKind, text string) bool {
	if t := p.peek(); t.kind == kind && t.text == text {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(kind tokenKind, text string) error {
	if !p.accept(kind, text) {
		return syntaxError(p.peek().at, "expected %s, found %s", strings.ToUpper(text), p.peek().text)
	}
	return nil
}

func (p *parser) disjunction() (*Predicate, error) { return p.chain(Or, "or", p.conjunction) }
func (p *parser) conjunction() (*Predicate, error) { return p.chain(And, "and", p.negation) }

func (p *parser) chain(op Op, word string, operand func() (*Predicate, error)) (*Predicate, error) {
	var operands []*Predicate
	for {
		o, err := operand()
		if err != nil {
			return nil, err
		}
		operands = append(operands, o)
		if !p.accept(tokenKeyword, word) {
			return join(op, operands), nil
		}
	}
}

func (p *parser) negation() (*Predicate, error) {
	start := p.peek()
	if p.depth++; p.depth > nestingMax {
		return nil, syntaxError(start.at, "nested deeper than %d", nestingMax)
	}
	defer func() { p.depth-- }()
	if p.accept(tokenKeyword, "not") {
		c, err := p.negation()
		if err != nil {
			return nil, err
		}
		return Negate(c), nil
	}
	if p.accept(tokenSymbol, "(") {
		c, err := p.disjunction()
		if err != nil {
			return nil, err
		}
		return c, p.expect(tokenSymbol, ")")
	}
	return p.comparison()
}

var symbolOps = map[string]Op{"=": Eq, "==": Eq, "<>": Ne, "!=": Ne, "<": Lt, "<=": Le, ">": Gt, ">=": Ge}

// mirrored is the operation with its sides exchanged.
var mirrored = map[Op]Op{Eq: Eq, Ne: Ne, Lt: Gt, Le: Ge, Gt: Lt, Ge: Le}

func (p *parser) comparison() (*Predicate, error) {
	t := p.next()
	if t.kind != tokenName {
		return p.literalFirst(t)
	}
	if op, ok := symbolOps[p.peek().text]; ok && p.peek().kind == tokenSymbol {
		p.next()
		v, err := p.literal()
		if err != nil {
			return nil, err
		}
		return Compare(op, t.text, v), nil
	}
	if p.accept(tokenKeyword, "is") {
		op := IsNull
		if p.accept(tokenKeyword, "not") {
			op = IsNotNull
		}
		return Compare(op, t.text), p.expect(tokenKeyword, "null")
	}
	negated := p.accept(tokenKeyword, "not")
	switch {
	case p.accept(tokenKeyword, "in"):
		return p.list(t.text, negated)
	case p.accept(tokenKeyword, "between"):
		return p.between(t.text, negated)
	case p.accept(tokenKeyword, "like"):
		return p.like(t.text, negated)
	}
	return nil, syntaxError(p.peek().at, "expected a comparison after %s, found %s", t.text, p.peek().text)
}

// literalFirst reads literal op column.
func (p *parser) literalFirst(t token) (*Predicate, error) {
	p.at -= boolRank(t.kind != tokenEnd)
	v, err := p.literal()
	if err != nil {
		return nil, syntaxError(t.at, "expected a column name, found %s", t.text)
	}
	op, ok := symbolOps[p.peek().text]
	if !ok || p.peek().kind != tokenSymbol {
		return nil, syntaxError(p.peek().at, "expected a comparison after a literal, found %s", p.peek().text)
	}
	p.next()
	name := p.next()
	if name.kind != tokenName {
		return nil, syntaxError(name.at, "expected a column name, found %s", name.text)
	}
	return Compare(mirrored[op], name.text, v), nil
}

func (p *parser) literal() (any, error) {
	t := p.next()
	switch {
	case t.kind == tokenNumber:
		return Number(t.text), nil
	case t.kind == tokenString:
		return t.text, nil
	case t.kind == tokenKeyword && t.text == "true":
		return true, nil
	case t.kind == tokenKeyword && t.text == "false":
		return false, nil
	case t.kind == tokenKeyword && t.text == "null":
		return nil, nil
	case t.kind == tokenName:
		return nil, syntaxError(t.at, "expected a literal, found the name %s; text stands in single quotes", t.text)
	}
	return nil, syntaxError(t.at, "expected a literal, found %s", t.text)
}

func (p *parser) list(column string, negated bool) (*Predicate, error) {
	if err := p.expect(tokenSymbol, "("); err != nil {
		return nil, err
	}
	in := &Predicate{Op: In, Column: column}
	if negated {
		in.Op = NotIn
	}
	if p.accept(tokenSymbol, ")") {
		return in, nil
	}
	for {
		v, err := p.literal()
		if err != nil {
			return nil, err
		}
		in.Literals = append(in.Literals, v)
		if !p.accept(tokenSymbol, ",") {
			return in, p.expect(tokenSymbol, ")")
		}
	}
}

func (p *parser) between(column string, negated bool) (*Predicate, error) {
	lo, err := p.literal()
	if err != nil {
		return nil, err
	}
	if err := p.expect(tokenKeyword, "and"); err != nil {
		return nil, err
	}
	hi, err := p.literal()
	if err != nil {
		return nil, err
	}
	b := AllOf(Compare(Ge, column, lo), Compare(Le, column, hi))
	if negated {
		b = Negate(b)
	}
	return b, nil
}

func (p *parser) like(column string, negated bool) (*Predicate, error) {
	t := p.next()
	if t.kind != tokenString {
		return nil, syntaxError(t.at, "expected a pattern in quotes, found %s", t.text)
	}
	prefix, open := strings.CutSuffix(t.text, "%")
	if strings.ContainsAny(prefix, `%_\`) {
		return nil, syntaxError(t.at, `LIKE knows prefix patterns such as 'ab%%' only; '%s' has %%, _ or \ elsewhere`, t.text)
	}
	op := StartsWith
	if !open {
		op = Eq
	}
	c := Compare(op, column, prefix)
	if negated {
		c = Negate(c)
	}
	return c, nil
}
