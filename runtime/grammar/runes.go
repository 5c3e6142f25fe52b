package grammar

import "strings"

// runeWriter writes characters as the bytes of their encodings. Ranges that go on alike share the
// states behind their first bytes: a class such as \p{L} has 650 ranges and some 150 states.
type runeWriter struct {
	b  *builder
	to int32
	at map[string]int32 // states by what is read from them on
}

func (b *builder) writeRunes(r runes, from, to int32) {
	b.noteRunes(r)
	var all [][]byteRange
	for _, x := range r {
		utf8Ranges(x.lo, x.hi, func(seq []byteRange) { all = append(all, seq) })
	}
	w := runeWriter{b: b, to: to, at: map[string]int32{}}
	w.ways(all, from)
}

// ways makes those out of a state that spell the sequences, which are in the order of the
// characters: two of them begin with the same range or with ranges that have no byte in common.
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

// state finds or makes the one from which the sequences are read.
func (w *runeWriter) state(all [][]byteRange) int32 {
	var key strings.Builder
	for _, seq := range all {
		key.WriteByte(byte(len(seq)))
		for _, r := range seq {
			key.Write([]byte{r.lo, r.hi})
		}
	}
	at, met := w.at[key.String()]
	if !met {
		at = w.b.state()
		w.at[key.String()] = at
		w.ways(all, at)
	}
	return at
}
