package jinja

import (
	"slices"

	"sandwich/runtime/jinja/internal/object"
)

// maxNesting limits the nesting of tags, brackets and operators in the source, and therefore the
// recursion over its tree.
const maxNesting = 300

// parser reads statements and expressions from tokens by recursive descent.
type parser struct {
	tokens []token
	at     int
	depth  int
}

func (p *parser) current() token { return p.tokens[p.at] }

// next returns the current token and advances. It never advances past the last token.
func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != eof {
		p.at++
	}
	return t
}

func (p *parser) is(k kind, text string) bool {
	t := p.current()
	return t.kind == k && t.text == text
}

// accept advances if the current token has the given kind and text.
func (p *parser) accept(k kind, text string) bool {
	if !p.is(k, text) {
		return false
	}
	p.at++
	return true
}

func (p *parser) fail(format string, args ...any) {
	object.Fail("line %d: "+format, append([]any{p.current().line}, args...)...)
}

func (p *parser) found() string {
	if t := p.current(); t.kind == eof {
		return "the end of the template"
	} else if t.kind != data {
		return object.Clip(t.text, 40)
	}
	return "text"
}

func (p *parser) expect(k kind, text string) {
	if !p.accept(k, text) {
		p.fail("expected %s, found %s", text, p.found())
	}
}

func (p *parser) expectName() string {
	if p.current().kind != name {
		p.fail("expected a name, found %s", p.found())
	}
	return p.next().text
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail("the template nests more than %d levels deep", maxNesting)
	}
}

func (p *parser) leave() { p.depth-- }

// body reads statements up to a tag with one of the given names, which it does not consume. Without
// names it reads up to the end.
func (p *parser) body(ends ...string) []statement {
	p.enter()
	defer p.leave()
	var body []statement
	for {
		switch t := p.current(); t.kind {
		case eof:
			if len(ends) > 0 {
				p.fail("the template ends before %s", ends[len(ends)-1])
			}
			return body
		case data:
			body = append(body, literalText(p.next().text))
		case printOpen:
			p.at++
			body = append(body, &print{t.line, p.tuple(true)})
			p.expect(printClose, "}}")
		case blockOpen:
			if tag := p.tokens[p.at+1]; tag.kind == name && slices.Contains(ends, tag.text) {
				p.at++
				return body
			}
			p.at++
			body = append(body, p.block(t.line))
		default:
			p.fail("expected text, found %s", p.found())
		}
	}
}

// close reads the end of a tag.
func (p *parser) close() { p.expect(blockClose, "%}") }

// bodyTo reads the rest of a tag, the body and the end tag.
func (p *parser) bodyTo(end string) []statement {
	p.close()
	body := p.body(end)
	p.at++
	p.close()
	return body
}

func (p *parser) block(line int) statement {
	tag := p.expectName()
	switch tag {
	case "if":
		return p.ifBlock(line)
	case "for":
		return p.forBlock(line)
	case "set":
		return p.setBlock(line)
	case "macro":
		name := p.expectName()
		params := p.parameters()
		return &macroBlock{line, name, params, p.bodyTo("endmacro")}
	case "call":
		var params []parameter
		if p.is(symbol, "(") {
			params = p.parameters()
		}
		call, ok := p.expression().(*callExpr)
		if !ok {
			p.fail("the tag call needs a call")
		}
		return &callBlock{line, params, call, p.bodyTo("endcall")}
	case "filter":
		filters := p.blockFilters()
		return &filterBlock{line, filters, p.bodyTo("endfilter")}
	case "with":
		return p.withBlock(line)
	case "generation":
		return &withBlock{line: line, body: p.bodyTo("endgeneration")}
	case "block":
		return p.namedBlock(line)
	case "break", "continue":
		p.close()
		return jump(tag)
	}
	p.at--
	p.fail("the tag %s is not supported", object.Clip(tag, 40))
	return nil
}

func (p *parser) ifBlock(line int) statement {
	s := &ifBlock{line: line}
	for {
		test := p.tuple(true)
		p.close()
		s.branches = append(s.branches, branch{test, p.body("elif", "else", "endif")})
		switch p.next().text {
		case "elif":
			continue
		case "else":
			p.close()
			s.otherwise = p.body("endif")
			p.at++
		}
		p.close()
		return s
	}
}

func (p *parser) forBlock(line int) statement {
	s := &forBlock{line: line, target: p.target()}
	p.expect(name, "in")
	s.over = p.tuple(false)
	if p.accept(name, "if") {
		s.only = p.expression()
	}
	s.recursive = p.accept(name, "recursive")
	p.close()
	s.body = p.body("else", "endfor")
	if p.next().text == "else" {
		p.close()
		s.otherwise = p.body("endfor")
		p.at++
	}
	p.close()
	return s
}

func (p *parser) setBlock(line int) statement {
	s := &setBlock{line: line, target: p.target()}
	if p.accept(symbol, "=") {
		s.value = p.tuple(true)
		p.close()
		return s
	}
	s.filters = p.blockFilters()
	s.body = p.bodyTo("endset")
	return s
}

func (p *parser) withBlock(line int) statement {
	s := &withBlock{line: line}
	for p.current().kind != blockClose {
		if len(s.values) > 0 {
			p.expect(symbol, ",")
		}
		s.targets = append(s.targets, p.target())
		p.expect(symbol, "=")
		s.values = append(s.values, p.expression())
	}
	s.body = p.bodyTo("endwith")
	return s
}

// namedBlock reads a block that an extending template could replace. No template extends another
// one here, so it is a plain block with a scope.
func (p *parser) namedBlock(line int) statement {
	called := p.expectName()
	p.accept(name, "scoped")
	p.close()
	s := &withBlock{line: line, body: p.body("endblock")}
	p.at++
	p.accept(name, called)
	p.close()
	return s
}

// target reads an assignment target: a name, an attribute of a namespace, or a tuple of targets.
func (p *parser) target() target {
	p.enter()
	defer p.leave()
	var t target
	for {
		one := target{}
		if p.accept(symbol, "(") {
			one = p.target()
			p.expect(symbol, ")")
		} else if one.name = p.expectName(); p.accept(symbol, ".") {
			one.attribute = p.expectName()
		}
		t.parts = append(t.parts, one)
		if !p.accept(symbol, ",") {
			break
		}
		if p.is(name, "in") || p.is(symbol, "=") || p.is(symbol, ")") {
			return t // a trailing comma makes a tuple of one element
		}
	}
	if len(t.parts) == 1 {
		return t.parts[0]
	}
	return t
}

func (p *parser) parameters() []parameter {
	var params []parameter
	p.expect(symbol, "(")
	for !p.accept(symbol, ")") {
		if len(params) > 0 {
			p.expect(symbol, ",")
		}
		param := parameter{name: p.expectName()}
		if p.accept(symbol, "=") {
			param.otherwise = p.expression()
		}
		params = append(params, param)
	}
	return params
}
