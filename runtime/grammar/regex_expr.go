package grammar

import "regexp/syntax"

// exprOf converts an expression without anchors. It returns false if it contains unsupported parts.
func exprOf(re *syntax.Regexp) (expr, bool) {
	subs := make([]expr, len(re.Sub))
	for i, s := range re.Sub {
		x, ok := exprOf(s)
		if !ok {
			return nil, false
		}
		subs[i] = x
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return empty{}, true
	case syntax.OpNoMatch:
		return nothing{}, true
	case syntax.OpLiteral:
		var out sequence
		for _, r := range re.Rune {
			out = append(out, inString(folded(r, re.Flags)))
		}
		return out, true
	case syntax.OpCharClass:
		var r runes
		for i := 0; i+1 < len(re.Rune); i += 2 {
			r = append(r, runeRange{re.Rune[i], re.Rune[i+1]})
		}
		return inString(r.inOrder().both(anyRune)), true
	case syntax.OpAnyChar:
		return inString(anyRune), true
	case syntax.OpCapture:
		return subs[0], true
	case syntax.OpConcat:
		return sequence(subs), true
	case syntax.OpAlternate:
		return choice(subs), true
	case syntax.OpStar:
		return star(subs[0]), true
	case syntax.OpPlus:
		return repeat{subs[0], 1, -1}, true
	case syntax.OpQuest:
		return optional(subs[0]), true
	case syntax.OpRepeat:
		return repeat{subs[0], re.Min, re.Max}, !mayBeEmpty(re.Sub[0])
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
