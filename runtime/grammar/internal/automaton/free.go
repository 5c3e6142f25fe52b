package automaton

import (
	"math/bits"
	"unicode/utf8"
)

// minFree is the smallest number of classes for which a freeLoop is used.
const minFree = 8

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
	if bits.OnesCount64(l.Of[0])+bits.OnesCount64(l.Of[1]) < minFree {
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

// wholeClasses returns the classes of multi-byte characters that all lead from s to one state and
// to no other.
func (b *Builder) wholeClasses(s *pstate, to int32) (c Classes) {
	w := runeWays{b: b, to: to}
	for _, e := range s.Edges {
		for lead := max(int(e.Lo), 0xC2); lead <= min(int(e.Hi), 0xF4); lead++ {
			switch {
			case lead < 0xE0:
				w.follow(e.To, rune(lead&0x1F), 1)
			case lead < 0xF0:
				w.follow(e.To, rune(lead&0x0F), 2)
			default:
				w.follow(e.To, rune(lead&0x07), 3)
			}
		}
	}
	if len(w.there) == 0 {
		return Classes{}
	}
	there, elsewhere := w.there.InOrder(), w.elsewhere.InOrder()
	b.Meter.Work(len(RunesByClass().Blocks))
	var missing Classes
	i, j := 0, 0
	for _, x := range RunesByClass().Blocks {
		for i < len(there) && there[i].Hi < x.Lo {
			i++
		}
		for j < len(elsewhere) && elsewhere[j].Hi < x.Lo {
			j++
		}
		switch {
		case i == len(there) || there[i].Lo > x.Lo || there[i].Hi < x.Hi,
			j < len(elsewhere) && elsewhere[j].Lo <= x.Hi:
			missing.Add(x.Class)
		default:
			c.Add(x.Class)
		}
	}
	return c.without(missing)
}

// runeWays are the multi-byte characters that lead from a state to another one, and those that lead
// elsewhere.
type runeWays struct {
	b                *Builder
	to               int32
	there, elsewhere Runes
}

// follow reads the remaining bytes of a character, of which left are missing.
func (w *runeWays) follow(at int32, begun rune, left int) {
	w.b.Meter.Work(1)
	lo, hi := begun<<(6*left), (begun+1)<<(6*left)-1
	if to, ok := w.b.allLead(at, left); ok {
		w.add(to == w.to, lo, hi)
		return
	}
	s := &w.b.States[at]
	if s.Final || len(s.Eps)+len(s.Calls) > 0 || s.Loop != nil {
		w.add(false, lo, hi)
		return
	}
	for _, e := range s.Edges {
		lo, hi := max(rune(e.Lo), 0x80), min(rune(e.Hi), 0xBF)
		switch {
		case lo > hi:
		case left == 1:
			w.add(e.To == w.to, begun<<6|lo&0x3F, begun<<6|hi&0x3F)
		default:
			for next := lo; next <= hi; next++ {
				w.follow(e.To, begun<<6|next&0x3F, left-1)
			}
		}
	}
}

func (w *runeWays) add(there bool, lo, hi rune) {
	if there {
		w.there = append(w.there, RuneRange{lo, hi})
	} else {
		w.elsewhere = append(w.elsewhere, RuneRange{lo, hi})
	}
}

// allLead returns the state that is reached by any left continuation bytes. It returns false if
// there is no single one.
func (b *Builder) allLead(at int32, left int) (to int32, ok bool) {
	for ; left > 0; left-- {
		s := &b.States[at]
		if s.Final || len(s.Eps)+len(s.Calls) > 0 || s.Loop != nil || len(s.Edges) != 1 ||
			s.Edges[0].Lo > 0x80 || s.Edges[0].Hi < 0xBF {
			return 0, false
		}
		at = s.Edges[0].To
	}
	return at, true
}
