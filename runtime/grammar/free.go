package grammar

import (
	"math/bits"
	"unicode/utf8"
)

// freeLoop is a state of a program, or a loop, that any characters of some classes lead back to. An
// answer in such a state may continue with any tokens of these characters. Most generated text is
// inside a string or free text, where most tokens are of this kind.
type freeLoop struct {
	of    classes
	bytes byteSet // first bytes of the characters
	to    int32   // the state after a character
	exact bool    // the characters lead to this state only
	idle  bool    // all states of the loop are open (openAt)
}

// leastFree is the smallest number of classes for which a freeLoop is used.
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

// widest returns the target of the widest edge of a state, or -1 if every edge reads a single byte.
func widest(s *pstate) int32 {
	to, width := int32(-1), 0
	for _, e := range s.edges {
		if w := int(e.hi) - int(e.lo); w > width && e.lo < utf8.RuneSelf {
			to, width = e.to, w
		}
	}
	return to
}

// bare reports whether a state has no outgoing edges of any kind.
func bare(s *pstate) bool { return len(s.edges)+len(s.eps)+len(s.calls) == 0 && s.loop == nil }

// reaches reports whether to can be reached from from without reading a byte, within the rule. It
// visits only few states.
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

// freeLoop adds the loop of the characters that lead from s to a state and returns its index plus
// 1, or 0 if there are too few characters.
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
			l.of = jsonClasses // share one part of the vocabulary
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

// maxRun is the run of a loop without a limit.
const maxRun = 1 << 30
