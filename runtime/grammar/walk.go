package grammar

import (
	"iter"
	"math"
	"slices"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// fill adds the tokens that s allows and after which the shortest completion costs at most limit
// bytes. It returns the largest of these costs.
func (m *Matcher) fill(s *state, to *Mask, limit float64) float64 {
	if s.end {
		for _, id := range m.v.ends {
			to.add(id)
		}
	}
	worst := m.fillText(s, to, limit)
	to.recount()
	return worst
}

// fillText adds the tokens that do not end the answer.
func (m *Matcher) fillText(s *state, to *Mask, limit float64) float64 {
	if of := m.m.textOf(s); of > 0 && m.parts.byKinds[of] != nil && !m.takesAll(s, limit) {
		return max(m.walk(&m.v.json.other, s, to, limit), m.fillKinds(m.parts.byKinds[of], of, s, to, limit))
	}
	if s.loop == nil {
		return m.fillEntering(s, to, limit)
	}
	part := m.parts.byClasses[s.loop.Of]
	settled := m.m.settle(s)
	switch {
	case part == nil:
		return m.walkAll(s, to, limit)
	case settled:
		worst := m.walkOthers(part, s, to, limit)
		return max(worst, m.fillLoop(part, s, 0, to, limit))
	case s.after <= limit && s.run >= longRun && part.of.SomeMany():
		part.add(to, s.run)
		worst := max(m.walk(&part.rest, s, to, limit), m.followLong(part, s, to, limit))
		if m.m.blankNear(s) {
			worst = max(worst, m.walk(&part.blanks, s, to, limit))
		}
		return max(s.after, worst)
	case s.after > limit:
		m.deepest = 2 // short tokens suffice near the end of an answer
		defer func() { m.deepest = maxTokenBytes }()
	}
	return m.walkAll(s, to, limit)
}

// takesAll reports whether kinds of characters bring no gain for a state: it accepts nearly all
// tokens that start with characters of texts, or the answer is near its end, or all these
// characters lead to the same state.
func (m *Matcher) takesAll(s *state, limit float64) bool {
	return s.loop != nil && s.loop.Of.Covers(automaton.JSONClasses) &&
		(s.run >= longRun || s.after > limit || m.m.settle(s))
}

// followLong adds the tokens of the slice that are longer than the free run of s, if s allows them.
func (m *Matcher) followLong(part *slice, s *state, to *Mask, limit float64) float64 {
	worst := 0.0
	for i, id := range part.long {
		if int32(part.chars[i]) <= s.run || m.m.work > m.max {
			continue
		}
		at := s
		for _, b := range m.v.text[id] {
			if at = m.m.after(at, b); at == m.m.dead {
				break
			}
		}
		if at == m.m.dead {
			continue
		}
		if m.min = min(m.min, at.cost); at.cost <= limit {
			to.add(id)
			worst = max(worst, at.cost)
		}
	}
	return worst
}

// fillLoop adds the tokens that start with characters of a settled loop, of which n precede at:
// tokens of such characters only, and those others whose remaining bytes the later states accept.
func (m *Matcher) fillLoop(part *slice, at *state, n int, to *Mask, limit float64) float64 {
	worst := 0.0
	run := min(at.run, automaton.MaxRun-1) + int32(n)
	if !at.counted && (n == 0 || at.again == at) {
		worst = at.again.cost
		if m.min = min(m.min, worst); worst <= limit {
			part.add(to, run)
		} else {
			worst = 0 // all are too far from the end
		}
		return max(worst, m.walk(&part.tails, at.again, to, limit))
	}
	each := at.free() > limit // some tokens may be too far from the end
	if !each {
		part.add(to, run)
		worst = at.free()
	}
	for ; ; n++ {
		if n > 0 && each {
			m.min = min(m.min, at.cost)
			if at.cost <= limit {
				part.exactly(to, n)
				worst = max(worst, at.cost)
			}
		}
		if n < len(part.after) {
			worst = max(worst, m.walk(&part.after[n], at, to, limit))
		}
		over := at.loop == nil || at.loop.Of != part.of || !m.m.settle(at)
		if over || n+1 >= len(part.after) && !each || n == longRun {
			return worst
		}
		at = at.again
	}
}

// fillEntering adds the tokens that a state outside any loop allows. Tokens whose first character
// leads to a loop of such characters are added as those of the loop.
func (m *Matcher) fillEntering(s *state, to *Mask, limit float64) float64 {
	worst := 0.0
	narrow := *s
	for b := range byte(utf8.RuneSelf) {
		if !narrow.bytes.Has(b) {
			continue
		}
		at := m.m.after(s, b)
		if at.loop == nil || !at.loop.Of.Has(automaton.ClassOfByte[b]) {
			continue
		}
		part := m.parts.byClasses[at.loop.Of]
		if part == nil || !m.m.settle(at) {
			continue
		}
		m.some.clear(m.v.size)
		for c := b; c < utf8.RuneSelf; c++ {
			if narrow.bytes.Has(c) && part.of.Has(automaton.ClassOfByte[c]) && m.m.after(s, c) == at {
				m.some.or(m.v.begin(c))
				narrow.bytes.Remove(c)
			}
		}
		m.loop.clear(m.v.size)
		worst = max(worst, m.fillLoop(part, at, 1, &m.loop, limit))
		for i, w := range m.some.bits {
			to.bits[i] |= w & m.loop.bits[i]
		}
	}
	return max(worst, m.walkAll(&narrow, to, limit))
}

// walkOthers adds the tokens that do not start with a character of the slice.
func (m *Matcher) walkOthers(part *slice, s *state, to *Mask, limit float64) float64 {
	if part.of.SomeMany() {
		return m.walk(&part.other, s, to, limit)
	}
	others := s.bytes
	for i := range others {
		others[i] &^= part.bytes[i]
	}
	if others == (automaton.ByteSet{}) {
		return 0
	}
	// Restrict the state to these bytes, so that other tokens are skipped.
	narrow := *s
	narrow.bytes, narrow.again = others, nil
	return m.walkAll(&narrow, to, limit)
}

// walkAll adds the tokens of the whole vocabulary.
func (m *Matcher) walkAll(s *state, to *Mask, limit float64) float64 {
	j := m.v.json
	return max(m.walk(&j.plain, s, to, limit), m.walk(&j.rest, s, to, limit), m.walk(&j.blanks, s, to, limit))
}

// walk adds the tokens of a trie that s allows.
func (m *Matcher) walk(t *trie, s *state, to *Mask, limit float64) float64 {
	if len(t.tokens) == 0 {
		return 0
	}
	w := walker{Matcher: m, trie: t, to: to, max: limit}
	if !w.takeAhead(s) {
		w.children(0, place{s: s}, 0)
	}
	return w.worst
}

// walker adds the tokens of a trie to a mask.
type walker struct {
	*Matcher
	*trie
	to         *Mask
	max, worst float64 // largest allowed cost, and largest cost found
}

// place is the position to which a token was followed: a state, or a single stack whose top has
// only edges. The latter avoids creating states when the tries of large enums are walked.
type place struct {
	s    *state
	top  int32
	base *node // the stack below top
}

// children adds the tokens below a node at the given depth.
func (w *walker) children(node int32, from place, depth uint16) {
	if from.s == nil {
		w.follow(node, from.top, from.base, depth)
		return
	}
	for c, end := w.trie.children(node); c < end; c++ {
		if b := w.bytes[c]; from.s.bytes.Has(b) {
			if w.m.work > w.Matcher.max && (depth > 0 || w.exhausted(w.to)) {
				return
			}
			w.visit(c, w.step(from.s, b), depth+1)
		}
	}
}

// follow is children for a single stack whose top is a simple state.
func (w *walker) follow(node, top int32, base *node, depth uint16) {
	for c, to := range inStep(w.m.p, w.trie, node, top) {
		w.visit(c, w.behind(to, base), depth+1)
	}
}

// inStep yields the children of a trie node whose bytes a simple state accepts, with the next
// states. It merges both lists, which are sorted by byte.
func inStep(p *automaton.Program, t *trie, node, top int32) iter.Seq2[int32, int32] {
	return func(yield func(child, to int32) bool) {
		s := &p.Tops[top]
		ways := p.Edges[s.First : s.First+int32(s.Count)]
		for c, end := t.children(node); c < end && len(ways) > 0; {
			switch b, way := t.bytes[c], ways[0]; {
			case b > way.Hi:
				ways = ways[1:]
			case b >= way.Lo:
				if !yield(c, way.To) {
					return
				}
				c++
			default:
				skip, _ := slices.BinarySearch(t.bytes[c:end], way.Lo)
				c += int32(skip)
			}
		}
	}
}

// behind returns the place for a state of the program on top of a stack.
func (w *walker) behind(to int32, base *node) place {
	if w.m.p.Tops[to].Simple {
		return place{top: to, base: base}
	}
	return place{s: w.m.above(to, base)}
}

// visit adds the tokens at and below a node. If the state accepts all their characters, it adds
// them at once.
func (w *walker) visit(node int32, at place, depth uint16) {
	n := &w.nodes[node]
	if at.s == nil && w.m.p.Open != nil && w.addOpen(node, at, depth) {
		return
	}
	if at.s != nil && at.s.loop != nil && !w.without.Covers(at.s.loop.Of) && int32(w.chars[node]) <= at.s.run &&
		at.s.loop.Of.Covers(w.below[node]) {
		switch free := at.s.free(); {
		case free <= w.max:
			w.add(n.from, n.past, free)
			return
		case w.m.settle(at.s) && !at.s.counted && at.s.again.cost > w.max:
			w.add(n.from, n.to, at.s.cost)
			w.min = min(w.min, at.s.again.cost)
			return
		case depth > 1:
			w.add(n.from, n.to, at.s.cost) // short tokens suffice near the end of an answer
			return
		}
	}
	if n.from < n.to {
		w.add(n.from, n.to, w.m.costOf(at))
	}
	if first, end := w.trie.children(node); first < end && depth < w.deepest {
		w.children(node, at, depth)
	}
}

// addOpen is visit for an open state that accepts all characters below. It returns false otherwise.
func (w *walker) addOpen(node int32, at place, depth uint16) bool {
	n, o := &w.nodes[node], &w.m.p.Open[at.top]
	if o.Run == 0 || int32(w.chars[node]) > o.Run || w.without.Covers(automaton.JSONClasses) ||
		!automaton.JSONClasses.Covers(w.below[node]) {
		return false
	}
	after := float64(o.After)
	if at.base != nil {
		after += at.base.cost
	}
	switch {
	case after <= w.max:
		w.add(n.from, n.past, after)
	case depth > 1:
		w.add(n.from, n.to, w.m.costOf(at)) // short tokens suffice near the end of an answer
	default:
		return false
	}
	return true
}

// add adds tokens after which the shortest completion has the given cost, unless it exceeds w.max.
func (w *walker) add(from, to int32, cost float64) {
	if from == to {
		return
	}
	if w.min = min(w.min, cost); cost > w.max {
		return
	}
	w.worst = max(w.worst, cost)
	for _, id := range w.tokens[from:to] {
		w.to.add(id)
	}
}

// step returns the place after a byte that a state accepts.
func (w *walker) step(from *state, b byte) place {
	if len(from.items) > 1 || from.loop != nil {
		return place{s: w.m.after(from, b)}
	}
	to := int32(-1)
	for _, e := range w.m.p.States[from.items[0].state].Edges {
		if b < e.Lo || b > e.Hi {
			continue
		}
		if to >= 0 {
			return place{s: w.m.after(from, b)}
		}
		to = e.To
	}
	if !w.m.p.Tops[to].Simple {
		return place{s: w.m.after(from, b)}
	}
	return place{top: to, base: from.items[0].parent}
}

// costOf returns the number of bytes of the shortest completion from a place.
func (m *machine) costOf(at place) float64 {
	switch {
	case at.s != nil:
		return at.s.cost
	case at.base != nil:
		return m.p.Tops[at.top].Dist + at.base.cost
	}
	return m.p.Tops[at.top].Dist
}

// unbounded is the allowed cost for masks without a limit of tokens.
var unbounded = math.Inf(1)
