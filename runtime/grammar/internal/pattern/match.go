package pattern

import (
	"regexp/syntax"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// Matches reports whether a text matches an expression that was parsed before. If matching takes
// too much work, it sets b.refused, so that the grammar is refused later.
func (b *Patterns) Matches(text, s string, wide bool) bool {
	p, err := b.progOf("", text, wide)
	if err == nil && b.spent > productWork {
		err = automaton.Refuse("", "matching the constants against the expressions needs too many steps")
	}
	if err != nil {
		if e, ok := err.(*automaton.Error); ok && b.Refused == nil {
			b.Refused = e
		}
		return false
	}
	if len(p.looks) > 0 {
		return b.matchesLooking(p, s)
	}
	prog := p.prog
	m := textMatcher{Prog: prog, mark: make([]int, len(prog.Inst))}
	defer func() { b.expend(m.work) }()
	for at := 0; ; {
		m.round++
		m.pcs = m.pcs[:0]
		for _, pc := range append(m.next, uint32(prog.Start)) {
			if m.visit(pc, at == 0, at == len(s)) {
				return true
			}
		}
		if at == len(s) {
			return false
		}
		r, size := utf8.DecodeRuneInString(s[at:])
		at += size
		m.next = m.next[:0]
		for _, pc := range m.pcs {
			if prog.Inst[pc].MatchRune(r) {
				m.next = append(m.next, prog.Inst[pc].Out)
			}
		}
	}
}

// matchesLooking is matches for an expression with look-around.
func (b *Patterns) matchesLooking(p *pattern, s string) (ok bool) {
	defer func() {
		if over := automaton.Refusal(recover()); over != nil && b.Refused == nil {
			b.Refused = over
		}
	}()
	if p.whole == nil {
		p.whole = newDFA(b, p, newAlphabet(b.Meter, []*pattern{p}))
	}
	return p.whole.has(s)
}

// textMatcher simulates all threads of an expression on a text. A match may begin after each
// character.
type textMatcher struct {
	*syntax.Prog
	mark        []int // by instruction: the last round that visited it
	round, work int
	pcs, next   []uint32 // instructions that read a character, and the successors of those that matched
}

// visit follows an instruction to those that read a character. It returns true if the expression
// has matched.
func (m *textMatcher) visit(pc uint32, begin, end bool) bool {
	for {
		if m.mark[pc] == m.round {
			return false
		}
		m.mark[pc] = m.round
		m.work++
		in := &m.Inst[pc]
		switch in.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstFail:
			return false
		case syntax.InstAlt, syntax.InstAltMatch:
			if m.visit(in.Out, begin, end) {
				return true
			}
			pc = in.Arg
		case syntax.InstEmptyWidth:
			const starts = syntax.EmptyBeginText | syntax.EmptyBeginLine
			const stops = syntax.EmptyEndText | syntax.EmptyEndLine
			if op := syntax.EmptyOp(in.Arg); op&starts != 0 && !begin || op&stops != 0 && !end {
				return false
			}
			pc = in.Out
		case syntax.InstCapture, syntax.InstNop:
			pc = in.Out
		default:
			m.pcs = append(m.pcs, pc)
			return false
		}
	}
}
