package jinja

import (
	"strconv"
	"strings"

	"sandwich/runtime/jinja/internal/object"
)

// tuple reads an expression, or several separated by commas. If conditionals is false, it does not
// consume a following "if", which belongs to the for tag.
func (p *parser) tuple(conditionals bool) expression {
	one := p.expression
	if !conditionals {
		one = func() expression { return p.binary(0) }
	}
	first := one()
	if !p.is(symbol, ",") {
		return first
	}
	items := []expression{first}
	for p.accept(symbol, ",") {
		if t := p.current(); t.kind == printClose || t.kind == blockClose || t.kind == symbol && t.text == ")" {
			break
		}
		items = append(items, one())
	}
	return &listExpr{items, true}
}

// expression reads one expression. The conditional has the lowest precedence.
func (p *parser) expression() expression {
	p.enter()
	defer p.leave()
	e := p.binary(0)
	if !p.accept(name, "if") {
		return e
	}
	c := &conditional{test: p.binary(0), yes: e}
	if p.accept(name, "else") {
		c.no = p.expression()
	}
	return c
}

// ranks lists the binary operators in order of increasing precedence. "not" and comparisons are
// between the second and the third rank.
var ranks = [][]string{{"or"}, {"and"}, {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

const (
	rankSum   = 2
	rankTilde = 3
)

// operator accepts one of the given operators.
func (p *parser) operator(of []string) (string, bool) {
	t := p.current()
	if t.kind != symbol && t.kind != name {
		return "", false
	}
	for _, op := range of {
		if t.text == op {
			p.at++
			return op, true
		}
	}
	return "", false
}

func (p *parser) binary(rank int) expression {
	switch rank {
	case rankSum:
		return p.not()
	case len(ranks):
		return p.unary(true)
	}
	return p.chain(rank)
}

// chain reads a sequence of operators of one rank. Each operator makes the tree deeper, so each
// counts as a level of nesting.
func (p *parser) chain(rank int) expression {
	depth := p.depth
	defer func() { p.depth = depth }()
	left := p.binary(rank + 1)
	for {
		op, ok := p.operator(ranks[rank])
		if !ok {
			return left
		}
		p.enter()
		right := p.binary(rank + 1)
		switch {
		case rank < rankSum:
			left = &logic{op == "or", left, right}
		case rank == rankTilde:
			left = &concat{left, right}
		default:
			left = &arithmetic{op, left, right}
		}
	}
}

func (p *parser) not() expression {
	if !p.accept(name, "not") {
		return p.comparison()
	}
	p.enter()
	defer p.leave()
	return &unary{"not", p.not()}
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">=", "in"}

func (p *parser) comparison() expression {
	first := p.chain(rankSum)
	c := &compare{first: first}
	for {
		op, ok := p.operator(comparisons)
		if !ok && p.is(name, "not") && p.tokens[p.at+1].text == "in" {
			p.at += 2
			op, ok = "not in", true
		}
		if !ok {
			break
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.chain(rankSum))
	}
	if len(c.ops) == 0 {
		return first
	}
	return c
}

// unary reads a sign or a primary expression and its suffixes. A sign has a higher precedence than
// filters: -1|abs is (-1)|abs.
func (p *parser) unary(withFilters bool) expression {
	depth := p.depth
	defer func() { p.depth = depth }()
	p.enter()
	var e expression
	if op, ok := p.operator([]string{"-", "+"}); ok {
		e = &unary{op, p.unary(false)}
	} else {
		e = p.postfix(p.primary())
	}
	for withFilters {
		p.enter()
		switch {
		case p.is(symbol, "|"):
			e = p.filters(e)
		case p.accept(name, "is"):
			e = p.test(e)
		case p.is(symbol, "("):
			e = p.call(e)
		default:
			return e
		}
	}
	return e
}

func (p *parser) primary() expression {
	switch t := p.next(); t.kind {
	case name:
		switch t.text {
		case "true", "True":
			return literal{true}
		case "false", "False":
			return literal{false}
		case "none", "None":
			return literal{nil}
		}
		return variable(t.text)
	case quoted:
		text := t.text
		for p.current().kind == quoted { // adjacent literals are one string
			text += p.next().text
		}
		return literal{text}
	case integer, decimal:
		return literal{p.number(t)}
	case symbol:
		switch t.text {
		case "(":
			if p.accept(symbol, ")") {
				return &listExpr{nil, true}
			}
			e := p.tuple(true)
			p.expect(symbol, ")")
			return e
		case "[":
			return &listExpr{p.list("]"), false}
		case "{":
			return p.dict()
		}
	}
	p.at-- // eof does not advance, and every other token was consumed
	if p.tokens[p.at].kind == eof {
		p.fail("the template ends inside a tag")
	}
	p.fail("expected a value, found %s", p.found())
	return nil
}

func (p *parser) number(t token) any {
	text := strings.ReplaceAll(t.text, "_", "")
	if t.kind == decimal {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
		p.fail("%s is not a number", object.Clip(t.text, 40))
	}
	base := 10
	if len(text) > 1 && text[1] > '9' {
		base = 0 // ParseInt reads the prefix
	}
	if n, err := strconv.ParseInt(text, base, 64); err == nil {
		return int(n)
	}
	p.fail("%s is not a number", object.Clip(t.text, 40))
	return nil
}

// list reads expressions up to a closing bracket.
func (p *parser) list(closing string) (items []expression) {
	for !p.accept(symbol, closing) {
		if len(items) > 0 {
			p.expect(symbol, ",")
			if p.accept(symbol, closing) {
				break
			}
		}
		items = append(items, p.expression())
	}
	return items
}

func (p *parser) dict() expression {
	d := &dictExpr{}
	for !p.accept(symbol, "}") {
		if len(d.keys) > 0 {
			p.expect(symbol, ",")
			if p.accept(symbol, "}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.expect(symbol, ":")
		d.values = append(d.values, p.expression())
	}
	return d
}

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(e expression) expression {
	for {
		switch {
		case p.accept(symbol, "."):
			switch t := p.next(); t.kind {
			case name:
				e = &attribute{e, t.text}
			case integer:
				e = &subscript{e, literal{p.number(t)}}
			default:
				p.fail("an attribute has no name")
			}
		case p.accept(symbol, "["):
			e = p.subscript(e)
		case p.is(symbol, "("):
			e = p.call(e)
		default:
			return e
		}
		p.enter() // unary restores the depth
	}
}

func (p *parser) subscript(of expression) expression {
	var bounds [3]expression
	colons := 0
	for !p.accept(symbol, "]") {
		switch {
		case p.accept(symbol, ":") && colons < 2:
			colons++
		case bounds[colons] == nil:
			bounds[colons] = p.tuple(true)
		default:
			p.fail("expected ], found %s", p.found())
		}
	}
	if colons > 0 {
		return &slice{of, bounds}
	}
	if bounds[0] == nil {
		p.fail("a subscript is empty")
	}
	return &subscript{of, bounds[0]}
}

func (p *parser) call(of expression) expression { return &callExpr{of, p.arguments()} }

func (p *parser) arguments() argumentList {
	var a argumentList
	p.expect(symbol, "(")
	for first := true; !p.accept(symbol, ")"); first = false {
		if !first {
			p.expect(symbol, ",")
			if p.accept(symbol, ")") {
				break
			}
		}
		switch {
		case p.accept(symbol, "*"):
			a.star = p.expression()
		case p.accept(symbol, "**"):
			a.starStar = p.expression()
		case p.current().kind == name && p.tokens[p.at+1] == token{symbol, "=", p.tokens[p.at+1].line}:
			key := p.next().text
			p.at++
			a.named = append(a.named, namedExpr{key, p.expression()})
		default:
			a.positional = append(a.positional, p.expression())
		}
	}
	return a
}

// filters reads a chain of filters over e. e is nil for the text that a block collects; the first
// filter then has no bar.
func (p *parser) filters(e expression) expression {
	for first := e == nil; first && p.current().kind == name || p.accept(symbol, "|"); first = false {
		p.enter()
		f := &filterExpr{of: e, name: p.expectName()}
		if p.is(symbol, "(") {
			f.arguments = p.arguments()
		}
		e = f
	}
	return e
}

// blockFilters reads the filters of a tag for the output of its body. It returns nil if there are
// none.
func (p *parser) blockFilters() expression {
	depth := p.depth
	defer func() { p.depth = depth }()
	return p.filters(nil)
}

// test reads a test after "is".
func (p *parser) test(of expression) expression {
	t := &testExpr{of: of, negated: p.accept(name, "not")}
	t.name = p.expectName()
	switch next := p.current(); next.kind {
	case quoted, integer, decimal:
		t.arguments.positional = []expression{p.postfix(p.primary())}
	case name:
		switch next.text {
		case "else", "or", "and", "if", "in", "not", "is", "recursive":
		default:
			t.arguments.positional = []expression{p.postfix(p.primary())}
		}
	case symbol:
		switch next.text {
		case "(":
			t.arguments = p.arguments()
		case "[", "{":
			t.arguments.positional = []expression{p.postfix(p.primary())}
		}
	}
	return t
}
