package pattern

import (
	"regexp/syntax"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

// maxPattern is the largest length of an expression in bytes, maxClasses the largest number of
// named character classes in it, and namedCost the bytes needed to parse one of them.
const (
	maxPattern = 256 << 10
	maxClasses = 4 << 10
	namedCost  = 6 << 10
)

// maxInstructions is the largest number of instructions of an expression's program.
const maxInstructions = 1 << 15

// Compiled parses an expression. Equal expressions are parsed once.
func (b *Patterns) Compiled(path, text string) (*pattern, error) { return b.Read(path, text, false) }

// Read parses an expression.
func (b *Patterns) Read(path, text string, wide bool) (*pattern, error) {
	key := patternKey{text, wide}
	if p := b.parsed[key]; p != nil {
		return p, nil
	}
	named := strings.Count(text, `\p`) + strings.Count(text, `\P`)
	if len(text) > maxPattern || named > maxClasses {
		return nil, automaton.Refuse(path,
			"an expression may have %d bytes and %d classes such as \\p{L}; this one has %d and %d",
			maxPattern, maxClasses, len(text), named)
	}
	reading := 16*len(text) + namedCost*named
	b.Meter.Take(reading)
	re, looks, err := parseECMA(text, wide)
	if err != nil {
		return nil, automaton.Refuse(path, "the expression %q is not supported: %v", automaton.Clip(text), err)
	}
	b.Meter.Give(reading)
	size := nodesOf(re) + len(text)
	for _, l := range looks {
		size += nodesOf(l.re)
	}
	b.Meter.Take(size)
	p := &pattern{re: re, looks: looks}
	b.parsed[key] = p
	return p, nil
}

// nodesOf returns about how many bytes the syntax tree of an expression takes.
func nodesOf(re *syntax.Regexp) int {
	n := 192 + 4*cap(re.Rune)
	for _, s := range re.Sub {
		n += nodesOf(s)
	}
	return n
}

// progOf returns an expression with its program, in which counted repetitions are written out.
func (b *Patterns) progOf(path, text string, wide bool) (*pattern, error) {
	p, err := b.Read(path, text, wide)
	if err != nil || p.prog != nil {
		return p, err
	}
	n := instructions(p.re)
	for _, l := range p.looks {
		n = min(n+instructions(l.re), longest)
	}
	if n > maxInstructions {
		return nil, automaton.Refuse(path, "the expression %q has %d instructions; at most %d are supported",
			automaton.Clip(text), n, maxInstructions)
	}
	b.Meter.Take(64 * n)
	for i := range p.looks {
		if p.looks[i].prog, err = syntax.Compile(p.looks[i].re.Simplify()); err != nil {
			return nil, automaton.Refuse(path, "the expression %q is not supported: %v", automaton.Clip(text), err)
		}
	}
	if p.prog, err = syntax.Compile(p.re.Simplify()); err != nil {
		return nil, automaton.Refuse(path, "the expression %q is not supported: %v", automaton.Clip(text), err)
	}
	return p, nil
}

// instructions returns about how many instructions the program of an expression has.
func instructions(re *syntax.Regexp) int {
	n := 1
	for _, s := range re.Sub {
		n = min(n+1+instructions(s), longest)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		return times(n, max(re.Min+1, re.Max))
	}
	return n
}
