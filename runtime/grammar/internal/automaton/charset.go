package automaton

import (
	"slices"
	"unicode/utf8"
)

// RuneRange is the range of characters from Lo to Hi.
type RuneRange struct{ Lo, Hi rune }

// Runes is the set of characters in sorted, disjoint ranges, encoded as UTF-8.
type Runes []RuneRange

// AnyRune is the set of all valid characters.
var AnyRune = Runes{{0, 0xD7FF}, {0xE000, utf8.MaxRune}}

// Except returns the characters of r that are not in x. x must be sorted.
func (r Runes) Except(x Runes) Runes {
	var out Runes
	for _, a := range r {
		lo := a.Lo
		for _, b := range x {
			if b.Hi < lo || b.Lo > a.Hi {
				continue
			}
			if b.Lo > lo {
				out = append(out, RuneRange{lo, b.Lo - 1})
			}
			lo = b.Hi + 1
		}
		if lo <= a.Hi {
			out = append(out, RuneRange{lo, a.Hi})
		}
	}
	return out
}

// Both returns the intersection of r and x.
func (r Runes) Both(x Runes) Runes {
	var out Runes
	for _, a := range r {
		for _, b := range x {
			if lo, hi := max(a.Lo, b.Lo), min(a.Hi, b.Hi); lo <= hi {
				out = append(out, RuneRange{lo, hi})
			}
		}
	}
	return out
}

// InOrder sorts ranges and joins adjacent ones. It changes r.
func (r Runes) InOrder() Runes {
	slices.SortFunc(r, func(a, b RuneRange) int { return int(a.Lo - b.Lo) })
	var out Runes
	for _, a := range r {
		if n := len(out); n > 0 && a.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, a.Hi)
			continue
		}
		out = append(out, a)
	}
	return out
}

// ByteRange is the label of an edge: any byte from lo to hi.
type ByteRange struct{ Lo, Hi byte }

// utf8Ranges calls yield with sequences of byte ranges that together match exactly the encodings of
// the characters from lo to hi, without surrogates.
func utf8Ranges(lo, hi rune, yield func([]ByteRange)) {
	if lo > hi {
		return
	}
	for _, edge := range [...]rune{0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF} {
		if lo <= edge && hi > edge {
			utf8Ranges(lo, edge, yield)
			utf8Ranges(edge+1, hi, yield)
			return
		}
	}
	if lo >= 0xD800 && lo <= 0xDFFF {
		return
	}
	if hi <= 0x7F {
		yield([]ByteRange{{byte(lo), byte(hi)}})
		return
	}
	for shift := 6; shift < 6*utf8.RuneLen(hi); shift += 6 {
		low := rune(1)<<shift - 1 // the bits in the trailing bytes
		if lo|low == hi|low {
			continue // the leading bytes are equal
		}
		if lo&low != 0 {
			utf8Ranges(lo, lo|low, yield)
			utf8Ranges((lo|low)+1, hi, yield)
			return
		}
		if hi&low != low {
			utf8Ranges(lo, hi&^low-1, yield)
			utf8Ranges(hi&^low, hi, yield)
			return
		}
	}
	a, b := utf8.AppendRune(nil, lo), utf8.AppendRune(nil, hi)
	out := make([]ByteRange, len(a))
	for i := range a {
		out[i] = ByteRange{a[i], b[i]}
	}
	yield(out)
}

// Hash returns a hash of a set of characters.
func (r Runes) Hash() uint64 {
	h := uint64(len(r))
	for _, x := range r {
		h = Mixed(h ^ uint64(x.Lo)<<32 ^ uint64(x.Hi))
	}
	return h
}

// ByteSet is a set of bytes.
type ByteSet [4]uint64

// Has reports whether a byte is in the set.
func (s *ByteSet) Has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

// Remove removes a byte.
func (s *ByteSet) Remove(b byte) { s[b>>6] &^= 1 << (b & 63) }

// Add adds a range of bytes.
func (s *ByteSet) Add(r ByteRange) {
	for w := r.Lo >> 6; w <= r.Hi>>6; w++ {
		bits := ^uint64(0)
		if w == r.Lo>>6 {
			bits = bits << (r.Lo & 63)
		}
		if w == r.Hi>>6 {
			bits &= ^uint64(0) >> (63 - r.Hi&63)
		}
		s[w] |= bits
	}
}

// Mixed is a hash function for integers (splitmix64).
func Mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
