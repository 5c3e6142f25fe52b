package grammar

import (
	"fmt"
	"strings"
)

// runeWriter writes characters as the bytes of their encodings. Ranges with equal suffixes share
// their states: a class such as \p{L} has 650 ranges and about 150 states.
type runeWriter struct {
	b  *builder
	to int32
}

// tail identifies a state inside a character: the bytes that it reads, and where they lead.
type tail struct {
	to, inside int32
	reads      string
}

// mostInlined is the number of ranges from which on a character class is a separate automaton,
// shared by all places that use the class.
const mostInlined = 24

// writeRunes writes edges from one state to the other that read one of the characters.
func (b *builder) writeRunes(r runes, from, to int32) {
	b.noteRunes(r)
	if len(r) < mostInlined || from == to {
		w := runeWriter{b: b, to: to}
		w.ways(b.encodings(r), from)
		return
	}
	b.grow(wayCost)
	b.states[from].calls = append(b.states[from].calls, callEdge{b.class(r), to})
}

// encodings returns the byte ranges of the characters, in order.
func (b *builder) encodings(r runes) (all [][]byteRange) {
	for _, x := range r {
		utf8Ranges(x.lo, x.hi, func(seq []byteRange) { all = append(all, seq) })
	}
	b.meter.work(8 * len(all))
	return all
}

// class returns the start of the shared automaton of some characters.
func (b *builder) class(r runes) int32 {
	b.meter.work(len(r))
	key := r.hash()
	start, met := b.classes[key]
	if !met {
		start = b.state()
		end := b.state()
		b.states[end].final = true
		if b.classes == nil {
			b.classes = map[uint64]int32{}
		}
		b.classes[key] = start
		w := runeWriter{b: b, to: end}
		w.ways(b.encodings(r), start)
	}
	return start
}

// hash returns a hash of a set of characters.
func (r runes) hash() uint64 {
	h := uint64(len(r))
	for _, x := range r {
		h = mixed(h ^ uint64(x.lo)<<32 ^ uint64(x.hi))
	}
	return h
}

// ways writes the edges out of a state that read the sequences. These must be sorted; any two of
// them start with the same range or with disjoint ranges.
func (w *runeWriter) ways(all [][]byteRange, from int32) {
	last, lastTo := byteRange{}, int32(-1)
	for i := 0; i < len(all); {
		j, head := i, all[i][0]
		var below [][]byteRange
		for ; j < len(all) && all[j][0] == head; j++ {
			if len(all[j]) > 1 {
				below = append(below, all[j][1:])
			}
		}
		i = j
		to := w.to
		if len(below) > 0 {
			to = w.state(below)
		}
		switch {
		case lastTo == to && last.hi+1 == head.lo:
			last.hi = head.hi
		default:
			if lastTo >= 0 {
				w.b.edge(from, lastTo, last)
			}
			last, lastTo = head, to
		}
	}
	if lastTo >= 0 {
		w.b.edge(from, lastTo, last)
	}
}

// state returns the state from which the sequences are read.
func (w *runeWriter) state(all [][]byteRange) int32 {
	var reads strings.Builder
	for _, seq := range all {
		reads.WriteByte(byte(len(seq)))
		for _, r := range seq {
			reads.Write([]byte{r.lo, r.hi})
		}
	}
	key := tail{w.to, w.b.inside, reads.String()}
	at, met := w.b.tails[key]
	if !met {
		at = w.b.state()
		w.b.meter.take(entryCost + reads.Len())
		if w.b.tails == nil {
			w.b.tails = map[tail]int32{}
		}
		w.b.tails[key] = at
		w.ways(all, at)
	}
	return at
}

// classText formats characters in the syntax of RE2's classes.
func (r runes) classText() string {
	var out strings.Builder
	for _, x := range r {
		fmt.Fprintf(&out, `\x{%x}-\x{%x}`, x.lo, x.hi)
	}
	return out.String()
}
