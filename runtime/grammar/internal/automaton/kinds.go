package automaton

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// maxTextRanges is the largest number of character ranges of a region. Beyond it, masks are
// computed as for any other state.
const maxTextRanges = 1 << 14

// minWide is the smallest number of characters read by a state for which a part of the vocabulary
// is made. Few tokens consist of digits only.
const minWide = 24

// noteRunes records a set of characters that the current text reads.
func (b *Builder) noteRunes(r Runes) {
	if b.inside == 0 || len(r) == 0 {
		return
	}
	h := r.Hash()
	g := &b.regions[b.inside-1]
	if _, met := g.sets[h]; met || g.mixed {
		return
	}
	if g.size += len(r); g.size > maxTextRanges {
		g.sets, g.mixed = nil, true
		return
	}
	b.grow(8*len(r) + EntryCost)
	if g.sets == nil {
		g.sets = map[uint64]Runes{}
	}
	g.sets[h] = r
}

// noteWords records each character of some words.
func (b *Builder) noteWords(w []string) {
	if b.inside == 0 {
		return
	}
	for _, x := range w {
		for _, r := range x {
			if r != '"' {
				b.noteRunes(Runes{{r, r}})
			}
		}
	}
}

// whole returns the region that a region was joined to.
func (b *Builder) whole(r int32) *textRegion {
	g := &b.regions[r-1]
	for g.up != r {
		r = g.up
		g = &b.regions[r-1]
	}
	return g
}

// join joins two regions, because characters lead from states of one to states of the other.
func (b *Builder) join(r, s int32) {
	g, h := b.whole(r), b.whole(s)
	if g == h {
		return
	}
	if len(g.sets) > len(h.sets) {
		g, h = h, g
	}
	b.Meter.Work(1 + len(g.sets))
	g.up, h.size, h.any, h.mixed = h.up, g.size+h.size, g.any || h.any, g.mixed || h.mixed
	h.wide = g.wide || h.wide
	if h.mixed = h.mixed || h.size > maxTextRanges; h.mixed {
		h.sets = nil
	} else if h.sets != nil {
		maps.Copy(h.sets, g.sets)
	}
	g.sets = nil
}

// findTexts finds the regions of texts that no character leaves, and the kinds of characters that
// they distinguish.
func (b *Builder) findTexts() {
	for i := range b.regions {
		b.Meter.Work(4 * (1 + b.regions[i].size))
	}
	for i := range b.States {
		if b.Texts[i] > 0 {
			b.joinFrom(int32(i))
		}
	}
	b.Kinds = make([]*Kinds, len(b.regions)+1)
	for i := range b.regions {
		if g := &b.regions[i]; g.up == int32(i)+1 && !g.mixed {
			b.Kinds[i+1] = g.kinds()
		}
	}
	for i, r := range b.Texts {
		if r > 0 {
			if b.Texts[i] = b.whole(r).up; b.Kinds[b.Texts[i]] == nil {
				b.Texts[i] = 0
			}
		}
	}
	if b.CharText > 0 {
		b.CharText = b.whole(b.CharText).up
	}
	b.regions = nil
}

// kinds returns the kinds of characters that the region distinguishes. It returns nil if there are
// too many or if kinds bring no gain.
func (g *textRegion) kinds() *Kinds {
	switch {
	case !g.any && !g.wide:
		return nil
	case g.any && len(g.sets) == 0:
		return AnyKind
	case g.any:
		g.sets[0] = AnyRune
	}
	return NewKinds(g.sets)
}

// AnyKind treats all characters as one kind.
var AnyKind = NewKinds(map[uint64]Runes{0: AnyRune})

// joinFrom joins the region of a state with those of the states that it leads to.
func (b *Builder) joinFrom(at int32) {
	s, r := &b.States[at], b.Texts[at]
	to := func(state int32) {
		if q := b.Texts[state]; q > 0 {
			b.join(r, q)
		} else {
			g := b.whole(r)
			g.mixed, g.sets = true, nil
		}
	}
	enter := func(rule int32) {
		if b.plain >= 0 && rule == b.Rules[b.plain].Start {
			b.whole(r).any = true // a call of the character rule returns here
		} else {
			to(rule)
		}
	}
	var reads ByteSet
	for _, e := range s.Edges {
		if e.Hi != e.Lo || inText.Has(e.Lo) {
			to(e.To)
			reads.Add(e.ByteRange)
		}
	}
	if bits.OnesCount64(reads[0])+bits.OnesCount64(reads[1]) >= minWide {
		b.whole(r).wide = true
	}
	for _, e := range s.Eps {
		to(e)
	}
	for _, c := range s.Calls {
		enter(c.Start)
		to(c.Back)
	}
	if s.Loop != nil {
		enter(s.Loop.Body)
		to(s.Loop.Next)
	}
}

// maxKinds is the largest number of kinds; noKind marks characters that no state reads.
const (
	maxKinds = 48
	NoKind   = 255
)

// NewKinds returns the kinds that some sets distinguish, or nil if there are too many.
func NewKinds(sets map[uint64]Runes) *Kinds {
	type event struct {
		at  rune
		key uint64
	}
	events := []event{{0, 0}}
	for k, set := range sets {
		for _, x := range set {
			events = append(events, event{x.Lo, Mixed(k + 1)}, event{x.Hi + 1, Mixed(k + 1)})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	k, met, sum := &Kinds{}, map[uint64]uint8{}, uint64(0)
	for i, e := range events {
		sum ^= e.key
		if i+1 < len(events) && events[i+1].at == e.at {
			continue
		}
		end := rune(0x10FFFF)
		if i+1 < len(events) {
			end = events[i+1].at - 1
		}
		one, ok := textRune(e.at, end)
		if !ok {
			continue // texts contain none of them unescaped
		}
		kind, known := met[sum]
		switch {
		case sum == 0:
			kind = NoKind
		case known:
		case len(k.One) == maxKinds:
			return nil
		default:
			kind = uint8(len(k.One))
			met[sum] = kind
			k.One = append(k.One, one)
		}
		if n := len(k.kind); n > 0 && k.kind[n-1] == kind {
			continue
		}
		k.cuts, k.kind = append(k.cuts, one), append(k.kind, kind)
		k.Name += string([]rune{one, rune(kind)})
	}
	if len(k.One) == 0 {
		return nil
	}
	return k
}

// textRune returns a character of a range that texts contain unescaped.
func textRune(lo, hi rune) (rune, bool) {
	for r := max(lo, ' '); r <= hi; r++ {
		switch {
		case r == '"' || r == '\\' || r == 0x2028 || r == 0x2029 || r >= 0xD800 && r < 0xE000:
			continue
		}
		return r, true
	}
	return 0, false
}

// Of returns the kind of a character.
func (k *Kinds) Of(r rune) uint8 {
	i, met := slices.BinarySearch(k.cuts, r)
	if !met {
		i--
	}
	return k.kind[max(i, 0)]
}
