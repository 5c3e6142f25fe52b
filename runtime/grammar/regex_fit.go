package grammar

import (
	"regexp/syntax"
	"slices"
)

// anyChar is what stands where an expression has no anchor, any number of times.
var anyChar = &syntax.Regexp{Op: syntax.OpAnyChar}

// parts are the parts of an expression one behind the other, without the anchors at its ends.
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

// unwrapped are the parts of a group that holds a sequence.
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

// longest is where lengths are no longer told from endless ones.
const longest = 1 << 40

// lengths are how many characters an expression matches at least and at most.
func lengths(re *syntax.Regexp) (least, most int) {
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
		least = longest
		for _, s := range re.Sub {
			a, b := lengths(s)
			least, most = min(least, a), max(most, b)
		}
		return least, most
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		few, many := rounds(re)
		a, b := lengths(re.Sub[0])
		return min(few*a, longest), min(times(many, b), longest)
	}
	return 0, 0
}

func lengthsOf(list []*syntax.Regexp) (least, most int) {
	for _, s := range list {
		a, b := lengths(s)
		least, most = min(least+a, longest), min(most+b, longest)
	}
	return least, most
}

// times is a product of numbers up to longest.
func times(a, b int) int {
	if b > 0 && a > longest/b {
		return longest
	}
	return a * b
}

// rounds are how often what an expression repeats is there.
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

// counted is what an expression repeats, as often as that.
func counted(body *syntax.Regexp, few, many int) *syntax.Regexp {
	if many >= longest {
		many = -1
	}
	return &syntax.Regexp{Op: syntax.OpRepeat, Sub: []*syntax.Regexp{body}, Min: few, Max: many}
}

// bounded are parts that match what the given ones do in least to most characters (most < 0:
// without end); not ok where that cannot be said by counting one of them.
func bounded(list []*syntax.Regexp, least, most int) ([]*syntax.Regexp, bool) {
	if most < 0 {
		most = longest
	}
	few, many := lengthsOf(list)
	if few >= least && many <= most {
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
	if at < 0 || few > most || many < least {
		return []*syntax.Regexp{{Op: syntax.OpNoMatch}}, true
	}
	lo, hi := rounds(list[at])
	lo = max(lo, (least-fixed+width-1)/width)
	if most < longest {
		hi = min(hi, (most-fixed)/width)
	}
	if lo > hi {
		return []*syntax.Regexp{{Op: syntax.OpNoMatch}}, true
	}
	list = slices.Clone(list)
	list[at] = counted(list[at].Sub[0], lo, hi)
	return list, true
}

// narrowed are parts of which no match has more than room characters: some of what the given ones
// match, whose shortest match has no more. What is repeated is repeated less often, and parts that
// can be long share the room.
func narrowed(list []*syntax.Regexp, room int) []*syntax.Regexp {
	order := make([]int, len(list))
	want := make([]int, len(list))
	least, _ := lengthsOf(list)
	for i, p := range list {
		a, b := lengths(p)
		order[i], want[i] = i, b-a
	}
	slices.SortStableFunc(order, func(i, j int) int { return want[i] - want[j] })
	out, slack := slices.Clone(list), room-least
	for n, i := range order {
		a, _ := lengths(list[i])
		give := min(want[i], slack/(len(list)-n))
		out[i], slack = narrow(list[i], a+give), slack-give
	}
	return out
}

// lifted are parts of which no match has fewer than least characters, as narrowed ones: one that is
// repeated is there more often. Not ok where none can be.
func lifted(list []*syntax.Regexp, least int) ([]*syntax.Regexp, bool) {
	have, _ := lengthsOf(list)
	if have >= least {
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
		if n := few + (least-have+a-1)/a; n <= many {
			list = slices.Clone(list)
			list[i] = counted(p.Sub[0], n, many)
			return list, true
		}
	}
	return nil, false
}

// narrow is narrowed of one part.
func narrow(re *syntax.Regexp, room int) *syntax.Regexp {
	if _, most := lengths(re); most <= room {
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

// spelled is the text between quotes that parts match, with their repetitions counted in place of
// written out; not ok where anchors stand inside of them or what is counted may be empty.
func (b *builder) spelled(list []*syntax.Regexp) (expr, bool) {
	out := sequence{literal(`"`)}
	for _, p := range list {
		if len(p.Sub) == 1 && p.Sub[0] == anyChar {
			few, many := rounds(p)
			if many < longest || few > 0 {
				out = append(out, repeat{b.char(), few, p.Max})
			} else {
				out = append(out, star(stringChar()))
			}
			continue
		}
		x, ok := exprOf(p)
		if !ok {
			return nil, false
		}
		out = append(out, x)
	}
	return inner{append(out, literal(`"`))}, true
}
