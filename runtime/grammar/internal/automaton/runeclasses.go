package automaton

import (
	"cmp"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Multi-byte characters are partitioned by what expressions typically distinguish: white space,
// line separators, Unicode categories, and blocks that are written as ranges. A free loop uses
// whole classes; other characters are matched byte by byte.

// manyBytes is the set of all classes of multi-byte characters.
var manyBytes = func() (c Classes) {
	c.Add(runeClass)
	for i := range runeKinds {
		c.Add(lineClass + uint8(i))
	}
	return c
}()

// SomeMany reports whether c contains a class of multi-byte characters.
func (c Classes) SomeMany() bool { return c[0]&manyBytes[0]|c[1]&manyBytes[1] != 0 }

// block is a range of characters of one class.
type block struct {
	RuneRange
	Class uint8
}

// runeTables are all multi-byte characters in order, the class of each one below 2^16, and the
// first bytes of the characters of each class.
type runeTables struct {
	Blocks []block
	low    []uint8
	begins [NoClass]ByteSet
}

// RunesByClass returns the tables, which are built on first use.
var RunesByClass = sync.OnceValue(func() *runeTables {
	t := &runeTables{low: make([]uint8, 1<<16)}
	cuts := []rune{utf8.RuneSelf, 0xD800, 0xE000, 0x10000, utf8.MaxRune + 1}
	each := func(lo, hi, stride rune) {
		if stride == 1 {
			cuts = append(cuts, lo, hi+1)
			return
		}
		for r := lo; r <= hi; r += stride {
			cuts = append(cuts, r, r+1)
		}
	}
	for _, kind := range runeKinds {
		for _, x := range kind.R16 {
			each(rune(x.Lo), rune(x.Hi), rune(x.Stride))
		}
		for _, x := range kind.R32 {
			each(rune(x.Lo), rune(x.Hi), rune(x.Stride))
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i, lo := range cuts[:len(cuts)-1] {
		if hi := cuts[i+1] - 1; lo >= utf8.RuneSelf && lo != 0xD800 {
			t.add(block{RuneRange{lo, hi}, KindOf(lo)})
		}
	}
	for _, b := range t.Blocks {
		utf8Ranges(b.Lo, b.Hi, func(seq []ByteRange) { t.begins[b.Class].Add(seq[0]) })
		for r := b.Lo; r <= min(b.Hi, 0xFFFF); r++ {
			t.low[r] = b.Class
		}
	}
	return t
})

func (t *runeTables) add(b block) {
	if n := len(t.Blocks); n > 0 && t.Blocks[n-1].Class == b.Class && t.Blocks[n-1].Hi+1 == b.Lo {
		t.Blocks[n-1].Hi = b.Hi
		return
	}
	t.Blocks = append(t.Blocks, b)
}

// runeKinds are the classes from lineClass on. Each excludes the characters of the previous ones.
var runeKinds = func() []*unicode.RangeTable {
	ranges := func(x ...rune) *unicode.RangeTable {
		t := &unicode.RangeTable{}
		for i := 0; i < len(x); i += 2 {
			t.R16 = append(t.R16, unicode.Range16{Lo: uint16(x[i]), Hi: uint16(x[i+1]), Stride: 1})
		}
		return t
	}
	return []*unicode.RangeTable{
		ranges(0x2028, 0x2029), // lineClass
		ranges(0xA0, 0xA0, 0x1680, 0x1680, 0x2000, 0x200A, 0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000,
			0xFEFF, 0xFEFF), // ECMA's other white space
		unicode.Cc, ranges(0xC0, 0xD6, 0xD8, 0xDE), ranges(0xDF, 0xF6, 0xF8, 0xFF), ranges(0xD7, 0xD7, 0xF7, 0xF7),
		ranges(0x4E00, 0x9FFF), ranges(0x3041, 0x30FF), ranges(0xAC00, 0xD7A3), ranges(0x400, 0x4FF),
		unicode.Lu, unicode.Ll, unicode.Lt, unicode.Lm, unicode.Lo, unicode.Mn, unicode.M, unicode.Nd, unicode.N,
		unicode.Pc, unicode.P, unicode.S,
	}
}()

// KindOf returns the class of a multi-byte character, without tables.
func KindOf(r rune) uint8 {
	for i, kind := range runeKinds {
		if unicode.Is(kind, r) {
			return lineClass + uint8(i)
		}
	}
	return runeClass
}

// ClassOfRune returns the class of a multi-byte character.
func ClassOfRune(r rune) uint8 {
	t := RunesByClass()
	if r < 1<<16 {
		return t.low[r]
	}
	i, met := slices.BinarySearchFunc(t.Blocks, r, func(b block, r rune) int { return cmp.Compare(b.Lo, r) })
	if !met {
		i--
	}
	return t.Blocks[i].Class
}
