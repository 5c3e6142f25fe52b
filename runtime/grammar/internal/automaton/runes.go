package automaton

import (
	"fmt"
	"strings"
)

// runeWriter writes characters as the bytes of their encodings. Ranges with equal suffixes share
// their states: a class such as \p{L} has 650 ranges and about 150 states.
type runeWriter struct {
	b  *Builder
	to int32
}

// maxInlined is the number of ranges from which on a character class is a separate automaton,
// shared by all places that use the class.
const maxInlined = 24

// WriteRunes writes edges from one state to the other that read one of the characters.
func (b *Builder) WriteRunes(r Runes, from, to int32) {
	b.noteRunes(r)
	if len(r) < maxInlined || from == to {
		w := runeWriter{b: b, to: to}
		w.ways(b.encodings(r), from)
		return
	}
	b.grow(wayCost)
	b.States[from].Calls = append(b.States[from].Calls, callEdge{b.class(r), to})
}

// encodings returns the byte ranges of the characters, in order.
func (b *Builder) encodings(r Runes) (all [][]ByteRange) {
	for _, x := range r {
		utf8Ranges(x.Lo, x.Hi, func(seq []ByteRange) { all = append(all, seq) })
	}
	b.Meter.Work(8 * len(all))
	return all
}

// class returns the start of the shared automaton of some characters.
func (b *Builder) class(r Runes) int32 {
	b.Meter.Work(len(r))
	key := r.Hash()
	start, met := b.classes[key]
	if !met {
		start = b.State()
		end := b.State()
		b.States[end].Final = true
		if b.classes == nil {
			b.classes = map[uint64]int32{}
		}
		b.classes[key] = start
		w := runeWriter{b: b, to: end}
		w.ways(b.encodings(r), start)
	}
	return start
}

// ways writes the edges out of a state that read the sequences. These must be sorted; any two of
// them start with the same range or with disjoint ranges.
func (w *runeWriter) ways(all [][]ByteRange, from int32) {
	last, lastTo := ByteRange{}, int32(-1)
	for i := 0; i < len(all); {
		j, head := i, all[i][0]
		var below [][]ByteRange
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
		case lastTo == to && last.Hi+1 == head.Lo:
			last.Hi = head.Hi
		default:
			if lastTo >= 0 {
				w.b.Edge(from, lastTo, last)
			}
			last, lastTo = head, to
		}
	}
	if lastTo >= 0 {
		w.b.Edge(from, lastTo, last)
	}
}

// state returns the state from which the sequences are read.
func (w *runeWriter) state(all [][]ByteRange) int32 {
	var reads strings.Builder
	for _, seq := range all {
		reads.WriteByte(byte(len(seq)))
		for _, r := range seq {
			reads.Write([]byte{r.Lo, r.Hi})
		}
	}
	key := tail{w.to, w.b.inside, reads.String()}
	at, met := w.b.tails[key]
	if !met {
		at = w.b.State()
		w.b.Meter.Take(EntryCost + reads.Len())
		if w.b.tails == nil {
			w.b.tails = map[tail]int32{}
		}
		w.b.tails[key] = at
		w.ways(all, at)
	}
	return at
}

// ClassText formats characters in the syntax of RE2's classes.
func (r Runes) ClassText() string {
	var out strings.Builder
	for _, x := range r {
		fmt.Fprintf(&out, `\x{%x}-\x{%x}`, x.Lo, x.Hi)
	}
	return out.String()
}
