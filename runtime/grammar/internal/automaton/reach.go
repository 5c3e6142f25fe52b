package automaton

import "unicode/utf8"

// reachPasses is the largest number of passes over all states to compute what they reach. Automata
// written in order need two or three. After too many passes every state is assumed to reach
// everything.
const reachPasses = 16

// inText is the set of bytes of the characters in jsonClasses.
var inText = func() (s ByteSet) {
	s.Add(ByteRange{' ', 0xff})
	s.Remove('"')
	s.Remove('\\')
	return s
}()

// findReach computes what all states reach, if there are loops of such characters.
func (b *Builder) findReach() {
	wanted := b.Open != nil
	for i := range b.Free {
		wanted = wanted || JSONClasses.Covers(b.Free[i].Of) && b.Free[i].Of.SomeMany()
	}
	if !wanted {
		return
	}
	b.Reached = make([]reach, len(b.States))
	for range reachPasses {
		b.Meter.Work(2 * len(b.States))
		changed := false
		for i := len(b.States) - 1; i >= 0; i-- {
			if r := b.reachOf(&b.States[i]); r != b.Reached[i] {
				b.Reached[i], changed = r, true
			}
		}
		if !changed {
			return
		}
	}
	for i := range b.Reached {
		b.Reached[i] = ReachesBlank | ReachesEnd
	}
}

// reachOf returns what a state reaches, given what its successors reach.
func (b *Builder) reachOf(s *pstate) (r reach) {
	if s.Final {
		r = ReachesEnd
	}
	for _, e := range s.Edges {
		if e.Lo < ' ' {
			r |= ReachesBlank
		}
		if e.Hi >= utf8.RuneSelf || e.Hi >= ' ' && (inText.Has(e.Lo) || inText.Has(e.Hi) || e.Hi-e.Lo > 1) {
			r |= b.Reached[e.To]
		}
	}
	for _, to := range s.Eps {
		r |= b.Reached[to]
	}
	for _, c := range s.Calls {
		r |= b.Reached[c.Start] & ReachesBlank
		if b.Reached[c.Start]&ReachesEnd != 0 {
			r |= b.Reached[c.Back]
		}
	}
	if l := s.Loop; l != nil {
		r |= b.Reached[l.Body]&ReachesBlank | b.Reached[l.Next]
	}
	return r
}
