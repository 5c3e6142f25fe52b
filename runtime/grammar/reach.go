package grammar

import "unicode/utf8"

// reach says what can be reached from a state by characters that JSON strings contain unescaped.
type reach uint8

const (
	reachesBlank reach = 1 << iota // an edge that reads a control character, such as a line feed or a tab
	reachesEnd                     // the end of the rule
)

// reachPasses is the largest number of passes over all states to compute what they reach. Automata
// written in order need two or three. After too many passes every state is assumed to reach
// everything.
const reachPasses = 16

// inText is the set of bytes of the characters in jsonClasses.
var inText = func() (s byteSet) {
	s.add(byteRange{' ', 0xff})
	s.remove('"')
	s.remove('\\')
	return s
}()

// findReach computes what all states reach, if there are loops of such characters.
func (b *builder) findReach() {
	wanted := b.open != nil
	for i := range b.free {
		wanted = wanted || jsonClasses.covers(b.free[i].of) && b.free[i].of.someMany()
	}
	if !wanted {
		return
	}
	b.reached = make([]reach, len(b.states))
	for range reachPasses {
		b.meter.work(2 * len(b.states))
		changed := false
		for i := len(b.states) - 1; i >= 0; i-- {
			if r := b.reachOf(&b.states[i]); r != b.reached[i] {
				b.reached[i], changed = r, true
			}
		}
		if !changed {
			return
		}
	}
	for i := range b.reached {
		b.reached[i] = reachesBlank | reachesEnd
	}
}

// reachOf returns what a state reaches, given what its successors reach.
func (b *builder) reachOf(s *pstate) (r reach) {
	if s.final {
		r = reachesEnd
	}
	for _, e := range s.edges {
		if e.lo < ' ' {
			r |= reachesBlank
		}
		if e.hi >= utf8.RuneSelf || e.hi >= ' ' && (inText.has(e.lo) || inText.has(e.hi) || e.hi-e.lo > 1) {
			r |= b.reached[e.to]
		}
	}
	for _, to := range s.eps {
		r |= b.reached[to]
	}
	for _, c := range s.calls {
		r |= b.reached[c.start] & reachesBlank
		if b.reached[c.start]&reachesEnd != 0 {
			r |= b.reached[c.back]
		}
	}
	if l := s.loop; l != nil {
		r |= b.reached[l.body]&reachesBlank | b.reached[l.next]
	}
	return r
}
