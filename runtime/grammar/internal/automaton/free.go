package automaton

import (
	"math/bits"
	"unicode/utf8"
)

// FreeLoop is a state of a program, or a loop, that any characters of some classes lead back to. An
// answer in such a state may continue with any tokens of these characters. Most generated text is
// inside a string or free text, where most tokens are of this kind.
type FreeLoop struct {
	Of    Classes
	Bytes ByteSet // first bytes of the characters
	To    int32   // the state after a character
	Exact bool    // the characters lead to this state only
	Idle  bool    // all states of the loop are open (openAt)
}

// leastFree is the smallest number of classes for which a freeLoop is used.
const leastFree = 8

// findFree finds the free loops of a program.
func (b *Builder) findFree() {
	for i := range b.States {
		s := &b.States[i]
		if to := widest(s); to >= 0 && b.reaches(to, int32(i)) {
			s.Free = b.freeLoop(s, to)
		}
		if s.Loop != nil {
			body := &b.States[s.Loop.Body]
			if to := widest(body); to >= 0 && bare(&b.States[to]) && b.States[to].Final {
				s.Loop.Free = b.freeLoop(body, to)
			}
		}
	}
}

// widest returns the target of the widest edge of a state, or -1 if every edge reads a single byte.
func widest(s *pstate) int32 {
	to, width := int32(-1), 0
	for _, e := range s.Edges {
		if w := int(e.Hi) - int(e.Lo); w > width && e.Lo < utf8.RuneSelf {
			to, width = e.To, w
		}
	}
	return to
}

// bare reports whether a state has no outgoing edges of any kind.
func bare(s *pstate) bool { return len(s.Edges)+len(s.Eps)+len(s.Calls) == 0 && s.Loop == nil }

// reaches reports whether to can be reached from from without reading a byte, within the rule. It
// visits only few states.
func (b *Builder) reaches(from, to int32) bool {
	met := []int32{from}
	for i := 0; i < len(met) && i < 16; i++ {
		if met[i] == to {
			return true
		}
		met = append(met, b.States[met[i]].Eps...)
	}
	return false
}

// freeLoop adds the loop of the characters that lead from s to a state and returns its index plus
// 1, or 0 if there are too few characters.
func (b *Builder) freeLoop(s *pstate, to int32) int32 {
	b.Meter.Work(256)
	var there, elsewhere ByteSet
	for _, e := range s.Edges {
		if e.To == to {
			there.Add(e.ByteRange)
		} else {
			elsewhere.Add(e.ByteRange)
		}
	}
	l := FreeLoop{To: to, Exact: true}
	var missing Classes
	for c := range byte(utf8.RuneSelf) {
		if there.Has(c) {
			l.Of.Add(ClassOfByte[c])
		} else {
			missing.Add(ClassOfByte[c])
		}
	}
	l.Of = l.Of.without(missing)
	l.Of = l.Of.Or(b.wholeClasses(s, to))
	if text := JSONClasses; l.Of.Covers(text) {
		if text.Add(lineClass); l.Of == text {
			l.Of = JSONClasses // share one part of the vocabulary
		}
	}
	if bits.OnesCount64(l.Of[0])+bits.OnesCount64(l.Of[1]) < leastFree {
		return 0
	}
	l.Bytes = l.Of.Bytes()
	for c := range byte(utf8.RuneSelf) {
		l.Exact = l.Exact && !(l.Bytes.Has(c) && elsewhere.Has(c))
	}
	b.Free = append(b.Free, l)
	return int32(len(b.Free))
}

// MaxRun is the run of a loop without a limit.
const MaxRun = 1 << 30
