package pattern

import (
	"regexp/syntax"

	"sandwich/runtime/grammar/internal/automaton"
)

// exprOf converts an expression without anchors. It returns false if it contains unsupported parts.
func exprOf(re *syntax.Regexp) (automaton.Expr, bool) {
	subs := make([]automaton.Expr, len(re.Sub))
	for i, s := range re.Sub {
		x, ok := exprOf(s)
		if !ok {
			return nil, false
		}
		subs[i] = x
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return automaton.Empty{}, true
	case syntax.OpNoMatch:
		return automaton.Nothing{}, true
	case syntax.OpLiteral:
		var out automaton.Sequence
		for _, r := range re.Rune {
			out = append(out, automaton.InString(folded(r, re.Flags)))
		}
		return out, true
	case syntax.OpCharClass:
		var r automaton.Runes
		for i := 0; i+1 < len(re.Rune); i += 2 {
			r = append(r, automaton.RuneRange{Lo: re.Rune[i], Hi: re.Rune[i+1]})
		}
		return automaton.InString(r.InOrder().Both(automaton.AnyRune)), true
	case syntax.OpAnyChar:
		return automaton.InString(automaton.AnyRune), true
	case syntax.OpCapture:
		return subs[0], true
	case syntax.OpConcat:
		return automaton.Sequence(subs), true
	case syntax.OpAlternate:
		return automaton.Choice(subs), true
	case syntax.OpStar:
		return automaton.Star(subs[0]), true
	case syntax.OpPlus:
		return automaton.Repeat{Body: subs[0], Least: 1, Most: -1}, true
	case syntax.OpQuest:
		return automaton.Optional(subs[0]), true
	case syntax.OpRepeat:
		return automaton.Repeat{Body: subs[0], Least: re.Min, Most: re.Max}, !mayBeEmpty(re.Sub[0])
	}
	return nil, false
}

// mayBeEmpty reports whether an expression may match the empty text.
func mayBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return mayBeEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || mayBeEmpty(re.Sub[0])
	case syntax.OpConcat:
		for _, s := range re.Sub {
			if !mayBeEmpty(s) {
				return false
			}
		}
	case syntax.OpAlternate:
		for _, s := range re.Sub {
			if mayBeEmpty(s) {
				return true
			}
		}
		return false
	}
	return true
}
