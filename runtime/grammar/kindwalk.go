package grammar

import (
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// kindWalk computes the mask of a state of a text by kinds of characters.
type kindWalk struct {
	*Matcher
	*kindTrie
	region     int32
	to         *Mask
	max, worst float64
	path       []*kindState
	spans      []stretch // ranges of tokens that are allowed, ascending
	count      int32     // number of tokens in spans
}

type stretch struct{ from, to int32 }

// textOf returns the region of texts that all stacks of a state are in, between two characters, or
// 0.
func (m *machine) textOf(s *state) int32 {
	if s.text != 0 {
		return max(s.text, 0)
	}
	s.text = -1
	if len(s.items) == 0 || s.bytes[2] != 0 { // inside a multi-byte character
		return 0
	}
	r := int32(0)
	for i, n := range s.items {
		of := m.p.Texts[n.state]
		if of > 0 && of == m.p.CharText && n.parent != nil {
			of = m.p.Texts[n.parent.state]
		}
		if of == 0 || i > 0 && of != r {
			return 0
		}
		r = of
	}
	s.text = r
	return r
}

var noWay = new(kindState)

// byKind returns the cached kindState of a state of a region.
func (m *machine) byKind(s *state, region int32, k *automaton.Kinds) *kindState {
	if s.kinds != nil && s.kinds.region == region {
		return s.kinds
	}
	x := &kindState{s: s, region: region, to: make([]*kindState, len(k.One))}
	if s.loop != nil && !s.loop.Of.Covers(automaton.JSONClasses) {
		x.run, x.afterIt = s.run, s.free()
		for kind, r := range k.One {
			if s.loop.Of.Has(automaton.ClassOfChar(r)) {
				x.loop |= 1 << kind
			}
		}
	} else if s.loop != nil {
		x.open, x.after = s.run, s.after
		if m.settle(s) && !s.counted && s.again == s {
			x.same = 1<<len(k.One) - 1
		}
	}
	for _, n := range s.items {
		if m.p.Open == nil {
			break
		}
		o := m.p.Open[n.state]
		after := float64(o.After)
		if n.parent != nil {
			after += n.parent.cost
		}
		if o.Run > x.open || o.Run == x.open && after < x.after {
			x.open, x.after = o.Run, after
		}
	}
	x.after = max(x.after, s.cost)
	if m.bytes <= stateBytes {
		s.kinds = x
		m.bytes += int64(72 + 8*len(x.to))
	}
	return x
}

// fillKinds adds the tokens that start with a character of a text, and returns the largest cost.
func (m *Matcher) fillKinds(t *kindTrie, region int32, s *state, to *Mask, limit float64) float64 {
	w := kindWalk{Matcher: m, kindTrie: t, region: region, to: to, max: limit, spans: m.spans[:0],
		path: m.path}
	w.walk(s)
	w.apply()
	m.path = w.path
	m.spans = w.spans
	return w.worst
}

// walk adds the tokens that continue with characters of texts.
func (w *kindWalk) walk(s *state) {
	path := append(w.path[:0], w.m.byKind(s, w.region, w.kinds)) // by depth
	added := int32(0)                                            // nodes before it are added, except their tails
	for i, end := int32(1), int32(len(w.nodes)-1); i < end; {
		n, below, next := &w.nodes[i], &w.nodes[i+1], &w.nodes[w.nodes[i].next]
		if i < added && n.tails == next.tails {
			i = n.next
			continue
		}
		at := path[n.depth-1]
		to := at.to[n.kind]
		if to == nil {
			if w.m.work > w.Matcher.max && (n.depth > 1 || w.count > 0 || w.exhausted(w.to)) {
				i = n.next
				continue
			}
			to = w.step(at, n.kind)
		}
		if to == noWay {
			i = n.next
			continue
		}
		last, stays := below.tails, n.below&^to.same == 0
		if stays { // the whole subtree leads to the same state
			last = next.tails
		}
		switch {
		case i < added:
		case stays:
			w.add(n.from, next.from, to.s.cost)
		case int32(n.chars) <= to.open && n.chars < farChars && to.after <= w.max:
			w.add(n.from, next.from, to.after)
			added = n.next
		case n.below&^to.loop == 0 && int32(n.chars) <= to.run && n.chars < farChars && to.afterIt <= w.max:
			w.add(n.from, next.from, to.afterIt)
			added = n.next
		case n.from < below.from:
			w.add(n.from, below.from, to.s.cost)
		}
		for j := n.tails; j < last; j++ {
			w.goOn(to.s, w.tailed[j], w.tail[j])
		}
		if stays || i < added && last == next.tails {
			i = n.next
			continue
		}
		path = append(path[:n.depth], to)
		i++
	}
	w.path = path
}

// step returns the state after a character of a kind.
func (w *kindWalk) step(at *kindState, kind uint8) *kindState {
	to := noWay
	if s := w.m.afterRune(at.s, w.kinds.One[kind]); s != w.m.dead {
		if to = w.m.byKind(s, w.region, w.kinds); to == at {
			at.same |= 1 << kind
		}
	}
	if w.m.bytes <= stateBytes {
		at.to[kind] = to
	}
	return to
}

// add adds tokens after which the shortest end has the given cost, unless it exceeds w.max.
func (w *kindWalk) add(from, to int32, cost float64) {
	if from == to {
		return
	}
	if w.min = min(w.min, cost); cost > w.max {
		return
	}
	w.worst = max(w.worst, cost)
	w.count += to - from
	if n := len(w.spans); n > 0 && w.spans[n-1].to == from {
		w.spans[n-1].to = to
		return
	}
	w.spans = append(w.spans, stretch{from, to})
}

// apply copies the added tokens to the mask. If they are the majority, it adds all tokens and
// removes the others.
func (w *kindWalk) apply() {
	if int(w.count) < len(w.tokens)/2 {
		for _, x := range w.spans {
			for _, id := range w.tokens[x.from:x.to] {
				w.to.add(id)
			}
		}
		return
	}
	w.to.or(w.all)
	at := int32(0)
	for _, x := range append(w.spans, stretch{from: int32(len(w.tokens))}) {
		for _, id := range w.tokens[at:x.from] {
			w.to.remove(id)
		}
		at = x.to
	}
}

// goOn adds a token whose bytes after its characters may follow s.
func (w *kindWalk) goOn(s *state, id, tail int32) {
	text := w.chars.tails[tail]
	if !s.bytes.Has(text[0]) || w.m.work > w.Matcher.max {
		return
	}
	k := &w.m.tails[(uint32(tail)*31+uint32(s.name[0]))%manyTails]
	if k.s != s || k.tail != tail {
		*k = tailKept{s, tail, -1}
		at := s
		for _, b := range text {
			if at = w.m.after(at, b); at == w.m.dead {
				break
			}
		}
		if at != w.m.dead {
			k.cost = at.cost
		}
	}
	if k.cost < 0 {
		return
	}
	if w.min = min(w.min, k.cost); k.cost <= w.max {
		w.worst = max(w.worst, k.cost)
		w.to.add(id)
	}
}

// afterRune returns the state after a character.
func (m *machine) afterRune(s *state, r rune) *state {
	var text [utf8.UTFMax]byte
	for _, b := range text[:utf8.EncodeRune(text[:], r)] {
		if s = m.after(s, b); s == m.dead {
			return s
		}
	}
	return s
}
