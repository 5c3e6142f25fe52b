// Package pattern compiles regular expressions of ECMA-262 to expressions of package automaton. It
// also matches them, lists their texts and intersects them.
package pattern

import (
	"regexp/syntax"
	"strings"
	"unicode"

	"sandwich/runtime/grammar/internal/automaton"
)

// Pattern returns an expression for the JSON strings of least to most characters (most < 0 means no
// limit) that contain a match of an ECMA-262 expression. Back references are errors.
func (b *Patterns) Pattern(path, text string, least, most int) (automaton.Expr, error) {
	read, err := b.Compiled(path, text)
	if err != nil {
		return nil, err
	}
	if len(read.looks) > 0 {
		return b.Product(path, Texts{Want: []string{text}, Least: least, Most: most})
	}
	list := parts(read.re)
	fit, ok := bounded(list, least, most)
	few, _ := lengthsOf(list)
	if !ok && most >= few && times(instructions(read.re), most) > mostCounted {
		fit, ok = lifted(narrowed(list, most), least)
	}
	if ok {
		if e, ok := b.spelled(fit); ok {
			return e, nil
		}
	}
	if read, err = b.progOf(path, text, false); err != nil {
		return nil, err
	}
	any := b.Char()
	return automaton.Inner{Body: automaton.Automaton(func(b *automaton.Builder, from, to int32) {
		w := &patternWriter{b: b, path: path, prog: read.prog, any: any, least: least, most: most,
			at: map[patternState]int32{}}
		w.cap = max(1, least)
		if most >= 0 {
			w.cap = most
		}
		first, last := b.State(), b.State()
		b.Edge(from, first, automaton.ByteRange{Lo: '"', Hi: '"'})
		b.Edge(last, to, automaton.ByteRange{Lo: '"', Hi: '"'})
		w.end = last
		w.write(first)
	})}, nil
}

// mostPlaces is the largest number of states of the product of an expression and the length of its
// texts. If instructions times length exceeds mostCounted, a subset of the texts is used.
const (
	mostPlaces  = 80_000
	mostCounted = 1 << 17
)

// Patterns parses and matches the expressions of a grammar, for all of its schemas.
type Patterns struct {
	*automaton.Builder
	parsed map[patternKey]*pattern
	spent  int // steps of matching
}

// PatternsOf returns the patterns of a builder.
func PatternsOf(b *automaton.Builder) *Patterns {
	p, ok := b.Patterns.(*Patterns)
	if !ok {
		p = &Patterns{Builder: b, parsed: map[patternKey]*pattern{}}
		b.Patterns = p
	}
	return p
}

// pattern is a parsed expression, and its program once it is needed.
type pattern struct {
	re    *syntax.Regexp
	looks []look
	prog  *syntax.Prog
	whole *dfa // set if constants were matched with it
	// readers are the programs with the characters that they read.
	readers []*charReader
}

// look is a look-around assertion: an expression that must or must not match before or after a
// position.
type look struct {
	re          *syntax.Regexp
	prog        *syntax.Prog
	behind, not bool
}

// patternKey identifies a parsed expression; see ecma for wide.
type patternKey struct {
	text string
	wide bool
}

// mostPattern is the largest length of an expression in bytes, mostClasses the largest number of
// named character classes in it, and namedCost the bytes needed to parse one of them.
const (
	mostPattern = 256 << 10
	mostClasses = 4 << 10
	namedCost   = 6 << 10
)

// mostInstructions is the largest number of instructions of an expression's program.
const mostInstructions = 1 << 15

// Compiled parses an expression. Equal expressions are parsed once.
func (b *Patterns) Compiled(path, text string) (*pattern, error) { return b.Read(path, text, false) }

// Read parses an expression.
func (b *Patterns) Read(path, text string, wide bool) (*pattern, error) {
	key := patternKey{text, wide}
	if p := b.parsed[key]; p != nil {
		return p, nil
	}
	named := strings.Count(text, `\p`) + strings.Count(text, `\P`)
	if len(text) > mostPattern || named > mostClasses {
		return nil, automaton.Refuse(path,
			"an expression may have %d bytes and %d classes such as \\p{L}; this one has %d and %d",
			mostPattern, mostClasses, len(text), named)
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
	if n > mostInstructions {
		return nil, automaton.Refuse(path, "the expression %q has %d instructions; at most %d are supported",
			automaton.Clip(text), n, mostInstructions)
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

// patternState is a position in the expression and the number of characters read, as far as it
// matters.
type patternState struct {
	kind  patternKind
	pc    uint32
	count int
}

type patternKind uint8

const (
	before patternKind = iota // before the match
	inside                    // at an instruction
	ended                     // at an instruction after the end of the text
	behind                    // after the match
)

// patternWriter writes the states of an expression when they are first reached.
type patternWriter struct {
	b           *automaton.Builder
	path        string
	prog        *syntax.Prog
	any         automaton.Expr
	least, most int
	cap         int // counts are clipped to this value
	end         int32
	at          map[patternState]int32
	todo        []patternState
}

func (w *patternWriter) write(first int32) {
	w.b.Eps(first, w.state(patternState{kind: before}))
	for len(w.todo) > 0 {
		s := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.expand(s, w.at[s])
	}
}

func (w *patternWriter) state(s patternState) int32 {
	if at, ok := w.at[s]; ok {
		return at
	}
	if len(w.at) >= mostPlaces {
		panic(automaton.Refuse(w.path, "the expression and the length of its texts have more than %d states together",
			mostPlaces))
	}
	at := w.b.State()
	w.b.Meter.Take(automaton.EntryCost)
	w.at[s] = at
	w.todo = append(w.todo, s)
	return at
}

// expand writes the edges out of a state.
func (w *patternWriter) expand(s patternState, at int32) {
	switch s.kind {
	case before:
		w.b.Eps(at, w.state(patternState{inside, uint32(w.prog.Start), s.count}))
		w.read(at, s, w.any, patternState{kind: before})
	case behind:
		if s.count >= w.least {
			w.b.Eps(at, w.end)
		}
		w.read(at, s, w.any, patternState{kind: behind})
	default:
		w.instruction(s, at, &w.prog.Inst[s.pc])
	}
}

// read continues after one more character, if another one is allowed.
func (w *patternWriter) read(at int32, s patternState, char automaton.Expr, next patternState) {
	if w.most >= 0 && s.count >= w.most {
		return
	}
	next.count = min(s.count+1, w.cap)
	to := w.state(next)
	if _, isCall := char.(automaton.Call); isCall && to == at {
		char = automaton.StringChar() // written out to form a free loop
	}
	w.b.Write(char, at, to)
}

func (w *patternWriter) instruction(s patternState, at int32, in *syntax.Inst) {
	same := func(pc uint32) patternState { return patternState{s.kind, pc, s.count} }
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		w.b.Eps(at, w.state(same(in.Out)))
		w.b.Eps(at, w.state(same(in.Arg)))
	case syntax.InstCapture, syntax.InstNop:
		w.b.Eps(at, w.state(same(in.Out)))
	case syntax.InstEmptyWidth:
		w.anchor(s, at, in)
	case syntax.InstMatch:
		if s.kind == inside {
			w.b.Eps(at, w.state(patternState{behind, 0, s.count}))
		} else if s.count >= w.least {
			w.b.Eps(at, w.end)
		}
	case syntax.InstFail:
	default:
		if s.kind == inside {
			w.read(at, s, automaton.InString(instRunes(in)), patternState{kind: inside, pc: in.Out})
		}
	}
}

func (w *patternWriter) anchor(s patternState, at int32, in *syntax.Inst) {
	op := syntax.EmptyOp(in.Arg)
	if op&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0 && s.count > 0 {
		return
	}
	if op&(syntax.EmptyEndText|syntax.EmptyEndLine) != 0 {
		s.kind = ended
	}
	w.b.Eps(at, w.state(patternState{s.kind, in.Out, s.count}))
}

// instRunes returns the characters that an instruction reads.
func instRunes(in *syntax.Inst) automaton.Runes {
	switch in.Op {
	case syntax.InstRuneAny:
		return automaton.AnyRune
	}
	if len(in.Rune) == 1 {
		return folded(in.Rune[0], syntax.Flags(in.Arg))
	}
	var r automaton.Runes
	for i := 0; i+1 < len(in.Rune); i += 2 {
		r = append(r, automaton.RuneRange{Lo: in.Rune[i], Hi: in.Rune[i+1]})
	}
	return r.InOrder().Both(automaton.AnyRune)
}

// folded returns a character and, if case is ignored, those that differ only in case.
func folded(r rune, flags syntax.Flags) automaton.Runes {
	out := automaton.Runes{{Lo: r, Hi: r}}
	if flags&syntax.FoldCase != 0 {
		for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
			out = append(out, automaton.RuneRange{Lo: c, Hi: c})
		}
	}
	return out.InOrder().Both(automaton.AnyRune)
}
