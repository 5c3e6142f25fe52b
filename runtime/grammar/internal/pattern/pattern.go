package pattern

import (
	"regexp/syntax"

	"sandwich/runtime/grammar/internal/automaton"
)

// Pattern returns an expression for the JSON strings of lo to hi characters (hi < 0 means no
// limit) that contain a match of an ECMA-262 expression. Back references are errors.
func (b *Patterns) Pattern(path, text string, lo, hi int) (automaton.Expr, error) {
	read, err := b.Compiled(path, text)
	if err != nil {
		return nil, err
	}
	if len(read.looks) > 0 {
		return b.Product(path, Texts{Want: []string{text}, Least: lo, Most: hi})
	}
	list := parts(read.re)
	fit, ok := bounded(list, lo, hi)
	few, _ := lengthsOf(list)
	if !ok && hi >= few && times(instructions(read.re), hi) > maxCounted {
		fit, ok = lifted(narrowed(list, hi), lo)
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
		w := &patternWriter{b: b, path: path, prog: read.prog, any: any, min: lo, max: hi,
			at: map[patternState]int32{}}
		w.cap = max(1, lo)
		if hi >= 0 {
			w.cap = hi
		}
		first, last := b.State(), b.State()
		b.Edge(from, first, automaton.ByteRange{Lo: '"', Hi: '"'})
		b.Edge(last, to, automaton.ByteRange{Lo: '"', Hi: '"'})
		w.end = last
		w.write(first)
	})}, nil
}

// maxPlaces is the largest number of states of the product of an expression and the length of its
// texts. If instructions times length exceeds maxCounted, a subset of the texts is used.
const (
	maxPlaces  = 80_000
	maxCounted = 1 << 17
)

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
	b        *automaton.Builder
	path     string
	prog     *syntax.Prog
	any      automaton.Expr
	min, max int
	cap      int // counts are clipped to this value
	end      int32
	at       map[patternState]int32
	todo     []patternState
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
	if len(w.at) >= maxPlaces {
		panic(automaton.Refuse(w.path, "the expression and the length of its texts have more than %d states together",
			maxPlaces))
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
		if s.count >= w.min {
			w.b.Eps(at, w.end)
		}
		w.read(at, s, w.any, patternState{kind: behind})
	default:
		w.instruction(s, at, &w.prog.Inst[s.pc])
	}
}

// read continues after one more character, if another one is allowed.
func (w *patternWriter) read(at int32, s patternState, char automaton.Expr, next patternState) {
	if w.max >= 0 && s.count >= w.max {
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
		} else if s.count >= w.min {
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
