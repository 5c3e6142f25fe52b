package pattern

import (
	"regexp/syntax"
	"slices"

	"sandwich/runtime/grammar/internal/automaton"
)

// anyChar is repeated in place of a missing anchor.
var anyChar = &syntax.Regexp{Op: syntax.OpAnyChar}

// parts returns the concatenated parts of an expression, without the anchors at its ends.
func parts(re *syntax.Regexp) (out []*syntax.Regexp) {
	list := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		list = re.Sub
	}
	open := &syntax.Regexp{Op: syntax.OpStar, Sub: []*syntax.Regexp{anyChar}}
	last := open
	if len(list) > 0 && list[0].Op == syntax.OpBeginText {
		list = list[1:]
	} else {
		out = append(out, open)
	}
	if n := len(list); n > 0 && list[n-1].Op == syntax.OpEndText {
		list, last = list[:n-1], nil
	}
	for _, p := range list {
		out = append(out, unwrapped(p)...)
	}
	if last != nil {
		out = append(out, last)
	}
	return out
}

// unwrapped returns the parts of a group that contains a sequence.
func unwrapped(re *syntax.Regexp) (out []*syntax.Regexp) {
	switch re.Op {
	case syntax.OpCapture:
		return unwrapped(re.Sub[0])
	case syntax.OpConcat:
		for _, p := range re.Sub {
			out = append(out, unwrapped(p)...)
		}
		return out
	}
	return []*syntax.Regexp{re}
}

// longest is the length from which on lengths count as unlimited.
const longest = 1 << 40

// lengths returns the least and the most characters that an expression matches.
func lengths(re *syntax.Regexp) (lo, hi int) {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune), len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar:
		return 1, 1
	case syntax.OpCapture:
		return lengths(re.Sub[0])
	case syntax.OpConcat:
		return lengthsOf(re.Sub)
	case syntax.OpAlternate:
		lo = longest
		for _, s := range re.Sub {
			a, b := lengths(s)
			lo, hi = min(lo, a), max(hi, b)
		}
		return lo, hi
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		few, many := rounds(re)
		a, b := lengths(re.Sub[0])
		return min(few*a, longest), min(times(many, b), longest)
	}
	return 0, 0
}

func lengthsOf(list []*syntax.Regexp) (lo, hi int) {
	for _, s := range list {
		a, b := lengths(s)
		lo, hi = min(lo+a, longest), min(hi+b, longest)
	}
	return lo, hi
}

// times returns a product, clipped to longest.
func times(a, b int) int {
	if b > 0 && a > longest/b {
		return longest
	}
	return a * b
}

// rounds returns the least and the most repetitions of a repeated expression.
func rounds(re *syntax.Regexp) (few, many int) {
	switch re.Op {
	case syntax.OpStar:
		return 0, longest
	case syntax.OpPlus:
		return 1, longest
	case syntax.OpQuest:
		return 0, 1
	}
	if re.Max < 0 {
		return re.Min, longest
	}
	return re.Min, re.Max
}

// counted returns few to many repetitions of an expression.
func counted(body *syntax.Regexp, few, many int) *syntax.Regexp {
	if many >= longest {
		many = -1
	}
	return &syntax.Regexp{Op: syntax.OpRepeat, Sub: []*syntax.Regexp{body}, Min: few, Max: many}
}

// bounded returns parts that match the same texts, limited to minLen to maxLen characters (maxLen <
// 0 means no limit). It returns false if that cannot be expressed by a single counted repetition.
func bounded(list []*syntax.Regexp, minLen, maxLen int) ([]*syntax.Regexp, bool) {
	if maxLen < 0 {
		maxLen = longest
	}
	few, many := lengthsOf(list)
	if few >= minLen && many <= maxLen {
		return list, true
	}
	at, width, fixed := -1, 0, 0
	for i, p := range list {
		a, b := lengths(p)
		if a == b {
			fixed += a
			continue
		}
		if at >= 0 || len(p.Sub) != 1 || p.Op == syntax.OpCapture {
			return nil, false
		}
		a, b = lengths(p.Sub[0])
		if at, width = i, a; a != b || a == 0 {
			return nil, false
		}
	}
	if at < 0 || few > maxLen || many < minLen {
		return []*syntax.Regexp{{Op: syntax.OpNoMatch}}, true
	}
	lo, hi := rounds(list[at])
	lo = max(lo, (minLen-fixed+width-1)/width)
	if maxLen < longest {
		hi = min(hi, (maxLen-fixed)/width)
	}
	if lo > hi {
		return []*syntax.Regexp{{Op: syntax.OpNoMatch}}, true
	}
	list = slices.Clone(list)
	list[at] = counted(list[at].Sub[0], lo, hi)
	return list, true
}

// narrowed returns parts that match a subset of the texts: none longer than room characters, which
// must be at least the shortest length. It reduces repetitions; parts that can be long share the
// room.
func narrowed(list []*syntax.Regexp, room int) []*syntax.Regexp {
	order := make([]int, len(list))
	want := make([]int, len(list))
	minimum, _ := lengthsOf(list)
	for i, p := range list {
		a, b := lengths(p)
		order[i], want[i] = i, b-a
	}
	slices.SortStableFunc(order, func(i, j int) int { return want[i] - want[j] })
	out, slack := slices.Clone(list), room-minimum
	for n, i := range order {
		a, _ := lengths(list[i])
		give := min(want[i], slack/(len(list)-n))
		out[i], slack = narrow(list[i], a+give), slack-give
	}
	return out
}

// lifted returns parts that match a subset of the texts: none shorter than minimum characters. It
// increases one repetition, and returns false if there is none.
func lifted(list []*syntax.Regexp, minimum int) ([]*syntax.Regexp, bool) {
	have, _ := lengthsOf(list)
	if have >= minimum {
		return list, true
	}
	for i, p := range list {
		if len(p.Sub) != 1 || p.Op == syntax.OpCapture {
			continue
		}
		few, many := rounds(p)
		a, _ := lengths(p.Sub[0])
		if a == 0 {
			continue
		}
		if n := few + (minimum-have+a-1)/a; n <= many {
			list = slices.Clone(list)
			list[i] = counted(p.Sub[0], n, many)
			return list, true
		}
	}
	return nil, false
}

// narrow applies narrowed to one part.
func narrow(re *syntax.Regexp, room int) *syntax.Regexp {
	if _, limit := lengths(re); limit <= room {
		return re
	}
	switch re.Op {
	case syntax.OpCapture:
		return narrow(re.Sub[0], room)
	case syntax.OpConcat:
		return &syntax.Regexp{Op: syntax.OpConcat, Sub: narrowed(re.Sub, room)}
	case syntax.OpAlternate:
		out := &syntax.Regexp{Op: syntax.OpAlternate}
		for _, s := range re.Sub {
			if a, _ := lengths(s); a <= room {
				out.Sub = append(out.Sub, narrow(s, room))
			}
		}
		return out
	}
	few, many := rounds(re)
	a, b := lengths(re.Sub[0])
	once := max(few, 1)
	switch {
	case times(once, b) <= room:
		return counted(re.Sub[0], few, min(many, room/b))
	case a > room:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	return counted(narrow(re.Sub[0], room/once), few, once)
}

// spelled returns an expression for a JSON string that matches the parts, with counted repetitions.
// It returns false for anchors inside the parts, or if the operand of a count may be empty.
func (b *Patterns) spelled(list []*syntax.Regexp) (automaton.Expr, bool) {
	out := automaton.Sequence{automaton.Literal(`"`)}
	for _, p := range list {
		if len(p.Sub) == 1 && p.Sub[0] == anyChar {
			few, many := rounds(p)
			if many < longest || few > 0 {
				out = append(out, automaton.Repeat{Body: b.Char(), Least: few, Most: p.Max})
			} else {
				out = append(out, automaton.Star(automaton.StringChar()))
			}
			continue
		}
		x, ok := exprOf(p)
		if !ok {
			return nil, false
		}
		out = append(out, x)
	}
	return automaton.Inner{Body: append(out, automaton.Literal(`"`))}, true
}
