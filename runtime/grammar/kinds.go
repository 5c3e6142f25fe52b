package grammar

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// inner is the text of a JSON string, with its quotes: what writes it notes which characters it
// tells apart, so that masks follow sets of characters in place of characters (kindtrie.go).
type inner struct{ body expr }

// escape is a part of such a text that stands behind a reverse solidus.
type escape struct{ body expr }

// textRegion is what is known of the states of one text, or of several that share states.
type textRegion struct {
	sets  map[uint64]runes // the sets of characters that its ways read, by a hash
	size  int              // ranges in sets
	any   bool             // one of its ways reads any character
	wide  bool             // one of its states reads leastWide characters of one byte
	up    int32            // the region that it is a part of; itself where it is whole
	mixed bool             // it has states that are no text's, or tells too much apart
}

// mostTextRanges is how many ranges of characters a region notes. Beyond that its masks are made as
// those of any states.
const mostTextRanges = 1 << 14

// leastWide is how many characters a state reads whose masks are worth a part of the vocabulary:
// few tokens are of digits alone.
const leastWide = 24

// writeInner writes a text; what stands inside of another one is that one's.
func (b *builder) writeInner(e expr, from, to int32) {
	if b.inside == 0 {
		b.regions = append(b.regions, textRegion{up: int32(len(b.regions)) + 1})
		b.inside = int32(len(b.regions))
		b.grow(96)
		defer func() { b.inside = 0 }()
	}
	b.write(e, from, to)
}

// writeEscape writes what stands behind a reverse solidus, which is followed byte by byte.
func (b *builder) writeEscape(e expr, from, to int32) {
	inside := b.inside
	b.inside = 0
	b.write(e, from, to)
	b.inside = inside
}

// noteRunes notes that a way of the text that is written reads some characters.
func (b *builder) noteRunes(r runes) {
	if b.inside == 0 || len(r) == 0 {
		return
	}
	h := r.hash()
	g := &b.regions[b.inside-1]
	if _, met := g.sets[h]; met || g.mixed {
		return
	}
	if g.size += len(r); g.size > mostTextRanges {
		g.sets, g.mixed = nil, true
		return
	}
	b.grow(8*len(r) + entryCost)
	if g.sets == nil {
		g.sets = map[uint64]runes{}
	}
	g.sets[h] = r
}

// noteWords notes that a way reads each character of some words.
func (b *builder) noteWords(w []string) {
	if b.inside == 0 {
		return
	}
	for _, x := range w {
		for _, r := range x {
			if r != '"' {
				b.noteRunes(runes{{r, r}})
			}
		}
	}
}

// whole is the region that one is a part of.
func (b *builder) whole(r int32) *textRegion {
	g := &b.regions[r-1]
	for g.up != r {
		r = g.up
		g = &b.regions[r-1]
	}
	return g
}

// join makes two regions one: characters lead from states of one to states of the other.
func (b *builder) join(r, s int32) {
	g, h := b.whole(r), b.whole(s)
	if g == h {
		return
	}
	if len(g.sets) > len(h.sets) {
		g, h = h, g
	}
	b.meter.work(1 + len(g.sets))
	g.up, h.size, h.any, h.mixed = h.up, g.size+h.size, g.any || h.any, g.mixed || h.mixed
	h.wide = g.wide || h.wide
	if h.mixed = h.mixed || h.size > mostTextRanges; h.mixed {
		h.sets = nil
	} else if h.sets != nil {
		maps.Copy(h.sets, g.sets)
	}
	g.sets = nil
}

// findTexts finds the regions of texts that characters do not lead out of, and how they tell
// characters apart.
func (b *builder) findTexts() {
	for i := range b.regions {
		b.meter.work(4 * (1 + b.regions[i].size))
	}
	for i := range b.states {
		if b.texts[i] > 0 {
			b.joinFrom(int32(i))
		}
	}
	b.kinds = make([]*kinds, len(b.regions)+1)
	for i := range b.regions {
		if g := &b.regions[i]; g.up == int32(i)+1 && !g.mixed {
			b.kinds[i+1] = g.kinds()
		}
	}
	for i, r := range b.texts {
		if r > 0 {
			if b.texts[i] = b.whole(r).up; b.kinds[b.texts[i]] == nil {
				b.texts[i] = 0
			}
		}
	}
	if b.charText > 0 {
		b.charText = b.whole(b.charText).up
	}
	b.regions = nil
}

// kinds are those that the region tells apart; nil where they are too many, or nothing is gained.
func (g *textRegion) kinds() *kinds {
	switch {
	case !g.any && !g.wide:
		return nil
	case g.any && len(g.sets) == 0:
		return anyKind
	case g.any:
		g.sets[0] = anyRune
	}
	return newKinds(g.sets)
}

// anyKind are all characters as one kind.
var anyKind = newKinds(map[uint64]runes{0: anyRune})

// joinFrom joins the regions that characters and ways without a byte lead to from a state.
func (b *builder) joinFrom(at int32) {
	s, r := &b.states[at], b.texts[at]
	to := func(state int32) {
		if q := b.texts[state]; q > 0 {
			b.join(r, q)
		} else {
			g := b.whole(r)
			g.mixed, g.sets = true, nil
		}
	}
	enter := func(rule int32) {
		if b.plain >= 0 && rule == b.rules[b.plain].start {
			b.whole(r).any = true // any character, and back
		} else {
			to(rule)
		}
	}
	var reads byteSet
	for _, e := range s.edges {
		if e.hi != e.lo || inText.has(e.lo) {
			to(e.to)
			reads.add(e.byteRange)
		}
	}
	if bits.OnesCount64(reads[0])+bits.OnesCount64(reads[1]) >= leastWide {
		b.whole(r).wide = true
	}
	for _, e := range s.eps {
		to(e)
	}
	for _, c := range s.calls {
		enter(c.start)
		to(c.back)
	}
	if s.loop != nil {
		enter(s.loop.body)
		to(s.loop.next)
	}
}

// kinds part the characters of texts by what the states of a region tell apart.
type kinds struct {
	cuts []rune  // the first characters of ranges that nothing parts
	kind []uint8 // of each range
	one  []rune  // a character of each kind that texts have as it is
	name string  // what tells kinds apart
}

// mostKinds is how many kinds pay; noKind are characters that no state reads.
const (
	mostKinds = 48
	noKind    = 255
)

// newKinds are the kinds that some sets tell apart; nil where they are too many.
func newKinds(sets map[uint64]runes) *kinds {
	type event struct {
		at  rune
		key uint64
	}
	events := []event{{0, 0}}
	for k, set := range sets {
		for _, x := range set {
			events = append(events, event{x.lo, mixed(k + 1)}, event{x.hi + 1, mixed(k + 1)})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	k, met, sum := &kinds{}, map[uint64]uint8{}, uint64(0)
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
			continue // no text has one of them as it is
		}
		kind, known := met[sum]
		switch {
		case sum == 0:
			kind = noKind
		case known:
		case len(k.one) == mostKinds:
			return nil
		default:
			kind = uint8(len(k.one))
			met[sum] = kind
			k.one = append(k.one, one)
		}
		if n := len(k.kind); n > 0 && k.kind[n-1] == kind {
			continue
		}
		k.cuts, k.kind = append(k.cuts, one), append(k.kind, kind)
		k.name += string([]rune{one, rune(kind)})
	}
	if len(k.one) == 0 {
		return nil
	}
	return k
}

// textRune is a character of a range that stands in texts as it is.
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

// of is the kind of a character.
func (k *kinds) of(r rune) uint8 {
	i, met := slices.BinarySearch(k.cuts, r)
	if !met {
		i--
	}
	return k.kind[max(i, 0)]
}
