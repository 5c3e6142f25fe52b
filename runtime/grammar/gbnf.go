package grammar

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// FromGBNF compiles a grammar in GBNF, the notation of llama.cpp: rules `name ::= alternatives`, of
// which root is the start; strings, character classes, a dot for any character, groups, and the
// repetitions *, +, ?, {n}, {n,} and {n,m}; tokens of the vocabulary as <text> and <[id]>, and any
// other token as !<text>. A token that is ordinary text may be spelled by other tokens. If v is
// nil, tokens are errors.
func (m *Meter) FromGBNF(text string, v *Vocab) (*Grammar, error) {
	m.Begin()
	if !utf8.ValidString(text) {
		return nil, automaton.Refuse("", "the grammar is not valid UTF-8")
	}
	p := &gbnf{text: text, vocab: v, Builder: automaton.NewBuilder(m.Meter), names: map[string]automaton.RuleID{},
		defined: map[string]bool{}}
	if err := automaton.Guard(p.rules, p.line); err != nil {
		return nil, err
	}
	for name := range p.names {
		if !p.defined[name] {
			return nil, automaton.Refuse("rule "+name, "the rule is used but not defined")
		}
	}
	if !p.defined["root"] {
		return nil, automaton.Refuse("", "the grammar has no rule root, which is the start of an answer")
	}
	prog, err := p.Link(p.names["root"])
	if err != nil {
		return nil, err
	}
	return newGrammar(prog, m.memory), nil
}

// maxGroups is the largest nesting depth of groups.
const maxGroups = 256

// gbnf is a parser of GBNF.
type gbnf struct {
	*automaton.Builder
	text    string
	vocab   *Vocab
	at      int
	depth   int
	names   map[string]automaton.RuleID
	defined map[string]bool
}

// line returns the name of the current line.
func (p *gbnf) line() string { return "line " + strconv.Itoa(1+strings.Count(p.text[:p.at], "\n")) }

func (p *gbnf) fail(format string, args ...any) error {
	return automaton.Refuse(p.line(), format, args...)
}

func (p *gbnf) name(name string) automaton.RuleID {
	r, ok := p.names[name]
	if !ok {
		r = p.Rule("rule " + name)
		p.names[name] = r
	}
	return r
}

func (p *gbnf) rules() error {
	for p.blanks(true); p.at < len(p.text); p.blanks(true) {
		name := p.word()
		p.blanks(false)
		if name == "" || !strings.HasPrefix(p.text[p.at:], "::=") {
			return p.fail("expected the name of a rule and ::=")
		}
		p.at += 3
		if p.defined[name] {
			return p.fail("rule %s is defined twice", automaton.Clip(name))
		}
		r := p.name(name)
		p.defined[name] = true
		e, err := p.alternatives(false)
		if err != nil {
			return err
		}
		p.Define(r, e)
		if p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
			return p.fail("unexpected %q", automaton.Clip(p.text[p.at:]))
		}
	}
	return nil
}

// blanks skips white space and comments, and line ends if lines is set.
func (p *gbnf) blanks(lines bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			p.at++
		case c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *gbnf) word() string {
	from := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		if !(c == '-' || c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
			break
		}
		p.at++
	}
	return p.text[from:p.at]
}

// alternatives reads up to the end of the rule or of the group.
func (p *gbnf) alternatives(group bool) (automaton.Expr, error) {
	if p.depth++; p.depth > maxGroups {
		return nil, p.fail("groups are nested more than %d levels deep", maxGroups)
	}
	defer func() { p.depth-- }()
	var out automaton.Choice
	for {
		p.blanks(true)
		e, err := p.sequence(group)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
		if p.at >= len(p.text) || p.text[p.at] != '|' {
			return out, nil
		}
		p.at++
	}
}

func (p *gbnf) sequence(group bool) (automaton.Expr, error) {
	var out automaton.Sequence
	for {
		p.blanks(group)
		e, err := p.element()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return out, nil
		}
		if e, err = p.repetitions(e); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
}

// element reads one element that may be repeated. It returns nil if there is none.
func (p *gbnf) element() (automaton.Expr, error) {
	if p.at >= len(p.text) {
		return nil, nil
	}
	p.Meter.Take(automaton.PartCost)
	p.Unwritten += automaton.PartCost
	switch c := p.text[p.at]; c {
	case '"':
		p.at++
		return p.literal()
	case '[':
		p.at++
		return p.class()
	case '.':
		p.at++
		return automaton.AnyRune, nil
	case '<':
		return p.token(false)
	case '!':
		if p.at++; p.at >= len(p.text) || p.text[p.at] != '<' {
			return nil, p.fail("expected a token after !")
		}
		return p.token(true)
	case '(':
		p.at++
		e, err := p.alternatives(true)
		if err != nil {
			return nil, err
		}
		if p.at >= len(p.text) || p.text[p.at] != ')' {
			return nil, p.fail("a group is not closed")
		}
		p.at++
		return e, nil
	}
	if w := p.word(); w != "" {
		return automaton.Call{Rule: p.name(w)}, nil
	}
	return nil, nil
}

func (p *gbnf) literal() (automaton.Expr, error) {
	var out []byte
	for p.at < len(p.text) && p.text[p.at] != '"' {
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		out = utf8.AppendRune(out, r)
	}
	if p.at >= len(p.text) {
		return nil, p.fail("a string is not closed")
	}
	p.at++
	p.Meter.Take(len(out))
	return automaton.Literal(out), nil
}

// char reads a character or an escape of a string or a class.
func (p *gbnf) char() (rune, error) {
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	if r != '\\' {
		return r, nil
	}
	if p.at >= len(p.text) {
		return 0, p.fail("the grammar ends with a backslash")
	}
	c := p.text[p.at]
	p.at++
	switch c {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'x', 'u', 'U':
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		v, err := strconv.ParseUint(p.text[p.at:min(p.at+digits, len(p.text))], 16, 32)
		if err != nil || p.at+digits > len(p.text) || !utf8.ValidRune(rune(v)) {
			return 0, p.fail(`\%c needs %d hexadecimal digits of a character`, c, digits)
		}
		p.at += digits
		return rune(v), nil
	case '"', '\\', '[', ']', '^', '-', '/', '.':
		return rune(c), nil
	}
	return 0, p.fail(`unknown escape \%c`, c)
}

func (p *gbnf) class() (automaton.Expr, error) {
	not := strings.HasPrefix(p.text[p.at:], "^")
	if not {
		p.at++
	}
	var out automaton.Runes
	for p.at < len(p.text) && p.text[p.at] != ']' {
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if rest := p.text[p.at:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			p.at++
			if hi, err = p.char(); err != nil {
				return nil, err
			}
		}
		if lo > hi {
			return nil, p.fail("a character range is reversed")
		}
		p.Meter.Take(8)
		out = append(out, automaton.RuneRange{Lo: lo, Hi: hi})
	}
	if p.at >= len(p.text) {
		return nil, p.fail("a character class is not closed")
	}
	p.at++
	out = out.InOrder()
	if not {
		return automaton.AnyRune.Except(out), nil
	}
	return out.Both(automaton.AnyRune), nil
}

// repetitions reads the repetitions after an element.
func (p *gbnf) repetitions(e automaton.Expr) (automaton.Expr, error) {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case '*':
			e = automaton.Star(e)
		case '+':
			e = automaton.Repeat{Body: e, Least: 1, Most: -1}
		case '?':
			e = automaton.Optional(e)
		case '{':
			lo, hi, err := p.counts()
			if err != nil {
				return nil, err
			}
			e = automaton.Repeat{Body: e, Least: lo, Most: hi}
			continue
		default:
			return e, nil
		}
		p.at++
	}
	return e, nil
}

// counts reads {n}, {n,} or {n,m}.
func (p *gbnf) counts() (lo, hi int, err error) {
	end := strings.IndexByte(p.text[p.at:], '}')
	if end < 0 {
		return 0, 0, p.fail("a repetition is not closed")
	}
	from, to, two := strings.Cut(p.text[p.at+1:p.at+end], ",")
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	lo, err = strconv.Atoi(from)
	hi = lo
	if err == nil && two {
		hi = -1
		if to != "" {
			hi, err = strconv.Atoi(to)
		}
	}
	if err != nil || lo < 0 || lo > automaton.MaxCount || hi > automaton.MaxCount || hi >= 0 && hi < lo {
		return 0, 0, p.fail("invalid repetition; use {n}, {n,} or {n,m} with counts up to %d", automaton.MaxCount)
	}
	p.at += end + 1
	return lo, hi, nil
}
