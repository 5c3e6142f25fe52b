package grammar

import (
	"math"
	"math/bits"
	"unicode/utf8"
)

// freeLoop is a state of a program that any characters of some classes lead back to, or whose loop
// they go round: an answer may go on with tokens of such characters, whatever they are. Most of
// what is generated stands in such a state, inside a string or in free text, and most tokens are
// such tokens.
type freeLoop struct {
	of    classes
	bytes byteSet // that its characters begin with
	to    int32   // the state behind a character
	exact bool    // the characters lead there and nowhere else
	idle  bool    // all states that stand in it are open (openAt)
}

// leastFree is how many classes are worth a freeLoop.
const leastFree = 8

// findFree finds the free loops of a program.
func (b *builder) findFree() {
	for i := range b.states {
		s := &b.states[i]
		if to := widest(s); to >= 0 && b.reaches(to, int32(i)) {
			s.free = b.freeLoop(s, to)
		}
		if s.loop != nil {
			body := &b.states[s.loop.body]
			if to := widest(body); to >= 0 && bare(&b.states[to]) && b.states[to].final {
				s.loop.free = b.freeLoop(body, to)
			}
		}
	}
}

// widest is where the widest edge of a state leads; -1 where it is no wider than a byte.
func widest(s *pstate) int32 {
	to, width := int32(-1), 0
	for _, e := range s.edges {
		if w := int(e.hi) - int(e.lo); w > width && e.lo < utf8.RuneSelf {
			to, width = e.to, w
		}
	}
	return to
}

// bare tells that no way leads out of a state.
func bare(s *pstate) bool { return len(s.edges)+len(s.eps)+len(s.calls) == 0 && s.loop == nil }

// reaches tells that a state is reached from another one without a byte and within the rule. It
// looks at few states only.
func (b *builder) reaches(from, to int32) bool {
	met := []int32{from}
	for i := 0; i < len(met) && i < 16; i++ {
		if met[i] == to {
			return true
		}
		met = append(met, b.states[met[i]].eps...)
	}
	return false
}

// freeLoop is 1 + the number of the loop of the characters that lead from s to a state; 0 where
// they are few.
func (b *builder) freeLoop(s *pstate, to int32) int32 {
	b.meter.work(256)
	var there, elsewhere byteSet
	for _, e := range s.edges {
		if e.to == to {
			there.add(e.byteRange)
		} else {
			elsewhere.add(e.byteRange)
		}
	}
	l := freeLoop{to: to, exact: true}
	var missing classes
	for c := range byte(utf8.RuneSelf) {
		if there.has(c) {
			l.of.add(classOfByte[c])
		} else {
			missing.add(classOfByte[c])
		}
	}
	l.of = l.of.without(missing)
	l.of = l.of.or(b.wholeClasses(s, to))
	if text := jsonClasses; l.of.covers(text) {
		if text.add(lineClass); l.of == text {
			l.of = jsonClasses // one part of the vocabulary does for both
		}
	}
	if bits.OnesCount64(l.of[0])+bits.OnesCount64(l.of[1]) < leastFree {
		return 0
	}
	l.bytes = l.of.bytes()
	for c := range byte(utf8.RuneSelf) {
		l.exact = l.exact && !(l.bytes.has(c) && elsewhere.has(c))
	}
	b.free = append(b.free, l)
	return int32(len(b.free))
}

// freedom is what a state has of free loops.
type freedom struct {
	loop  *freeLoop // the largest; nil: none
	item  *node     // the stack that stands in it
	run   int32     // of so many of its characters whatever they are; endless: maxRun
	after float64   // what the shortest end behind such characters costs at most
	// Below is set by settle.
	known   bool
	counted bool   // characters are counted: behind another one is another state
	again   *state // the state behind one of them, where no other stack takes such characters
}

const maxRun = 1 << 30

// findFree finds the free loop of a state.
func (m *machine) findFree(s *state) {
	size := 0
	for _, n := range s.items {
		l, run, after := m.freeAt(n)
		if l == nil {
			continue
		}
		c := bits.OnesCount64(l.of[0]) + bits.OnesCount64(l.of[1])
		if c > size || c == size && (run > s.run || run == s.run && after < s.after) {
			s.loop, s.item, s.run, s.after, size = l, n, run, after, c
		}
	}
	if m.p.open == nil || s.loop != nil && s.loop.of.covers(jsonClasses) && s.run >= longRun {
		return
	}
	for _, n := range s.items {
		o := m.p.open[n.state]
		after := float64(o.after)
		if n.parent != nil {
			after += n.parent.cost
		}
		open := s.loop == textLoop()
		if !open && o.run >= longRun || open && (o.run > s.run || o.run == s.run && after < s.after) {
			// Behind one of its characters may be any of many states: it does not settle.
			s.freedom = freedom{loop: textLoop(), item: n, run: o.run, after: after, known: true}
		}
	}
}

// freeAt is the free loop that a stack stands in, how many of its characters may follow, and what
// the shortest end behind them costs; nil where it stands in none.
func (m *machine) freeAt(n *node) (l *freeLoop, run int32, after float64) {
	below := 0.0
	if n.parent != nil {
		below = n.parent.cost
	}
	if f := m.p.states[n.state].free; f > 0 {
		l = &m.p.free[f-1]
		return l, maxRun, m.p.distance(l.to, 0) + below
	}
	if n.parent == nil {
		return nil, 0, 0
	}
	loop := m.p.states[n.parent.state].loop
	if loop == nil || loop.free == 0 || loop.body != n.state {
		return nil, 0, 0
	}
	if run = maxRun; loop.most >= 0 {
		run = loop.most - n.parent.count + 1
	}
	return &m.p.free[loop.free-1], run, below
}

// settle finds out whether one state is behind each character of the free loop of s, now and behind
// some of them: no stack takes them but those in loops of the same classes, where they are not
// counted, and no other one where they are. Uncounted, it is behind any number of them.
func (m *machine) settle(s *state) bool {
	if s.known || s.loop == nil {
		return s.again != nil
	}
	s.known = true
	s.counted = m.p.states[s.item.state].free == 0
	if !s.counted {
		if again := m.roundOf(s, s.loop); again != nil && m.roundOf(again, s.loop) == again {
			s.again = again
		}
		return s.again != nil
	}
	if !s.loop.exact || !m.alone(s.items, s.item, s.loop) {
		return false
	}
	n := s.item.parent
	if m.alone(m.closure(m.node(m.p.states[n.state].loop.next, 0, n.parent)).items, nil, s.loop) {
		s.again = m.closure(n)
	}
	return s.again != nil
}

// roundOf is the state behind a character of a loop, whichever it is, where all stacks that take
// one
// stand in loops of the same classes: alternatives that both allow any text, such as the names of
// additional members. Nil where another stack takes one.
func (m *machine) roundOf(s *state, l *freeLoop) *state {
	var to []*node
	for _, n := range s.items {
		if m.alone([]*node{n}, nil, l) {
			continue
		}
		f := m.p.states[n.state].free
		if f == 0 || !m.p.free[f-1].exact || m.p.free[f-1].of != l.of {
			return nil
		}
		to = append(to, m.node(m.p.free[f-1].to, 0, n.parent))
	}
	if len(to) == 0 {
		return nil
	}
	return m.closure(to...)
}

// alone tells that none of the stacks but one takes a byte that characters of the loop begin with.
func (m *machine) alone(items []*node, but *node, l *freeLoop) bool {
	for _, n := range items {
		if n == but {
			continue
		}
		var takes byteSet
		for _, e := range m.p.states[n.state].edges {
			takes.add(e.byteRange)
		}
		for i := range takes {
			if takes[i]&l.bytes[i] != 0 {
				return false
			}
		}
	}
	return true
}

// free is what the shortest end behind tokens of the free loop's characters costs at most, which s
// may go on with.
func (s *state) free() float64 { return math.Max(s.cost, s.after) }
