package pattern

import (
	"regexp/syntax"
	"unicode"

	"sandwich/runtime/grammar/internal/automaton"
)

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
