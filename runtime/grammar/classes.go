package grammar

import "unicode/utf8"

// classes is a set of character classes. A class is one ASCII character, or all control characters
// except tab, line feed and return, or the multi-byte characters of one kind (runeKinds), or bytes
// that are not a whole character.
type classes [2]uint64

const (
	controlClass = 0   // control characters except tab, line feed and return
	asciiClass   = 4   // the space; the classes of the next ASCII characters follow
	runeClass    = 100 // multi-byte characters of no other kind
	brokenClass  = 101
	lineClass    = 102 // first of runeKinds: line separators (U+2028, U+2029), which a dot does not match
)

// classOfByte maps an ASCII byte to its class and other bytes to runeClass.
var classOfByte = func() (of [256]uint8) {
	for b := range of {
		switch {
		case b == '\t':
			of[b] = 1
		case b == '\n':
			of[b] = 2
		case b == '\r':
			of[b] = 3
		case b < 0x20:
			of[b] = controlClass
		case b < utf8.RuneSelf:
			of[b] = uint8(asciiClass + b - 0x20)
		default:
			of[b] = runeClass
		}
	}
	return of
}()

// classOfChar returns the class of a character.
func classOfChar(r rune) uint8 {
	if r < utf8.RuneSelf {
		return classOfByte[r]
	}
	return classOfRune(r)
}

func (c *classes) add(class uint8) { c[class/64] |= 1 << (class % 64) }

func (c *classes) remove(class uint8) { c[class/64] &^= 1 << (class % 64) }

func (c classes) has(class uint8) bool { return c[class/64]>>(class%64)&1 != 0 }

// covers reports whether d is a subset of c.
func (c classes) covers(d classes) bool { return d[0]&^c[0]|d[1]&^c[1] == 0 }

func (c classes) or(d classes) classes { return classes{c[0] | d[0], c[1] | d[1]} }

func (c classes) without(d classes) classes { return classes{c[0] &^ d[0], c[1] &^ d[1]} }

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

func (s *byteSet) remove(b byte) { s[b>>6] &^= 1 << (b & 63) }

func (s *byteSet) add(r byteRange) {
	for w := r.lo >> 6; w <= r.hi>>6; w++ {
		bits := ^uint64(0)
		if w == r.lo>>6 {
			bits = bits << (r.lo & 63)
		}
		if w == r.hi>>6 {
			bits &= ^uint64(0) >> (63 - r.hi&63)
		}
		s[w] |= bits
	}
}

// bytes returns the first bytes of the characters in the classes.
func (c classes) bytes() (s byteSet) {
	for b := range byte(utf8.RuneSelf) {
		if c.has(classOfByte[b]) {
			s.add(byteRange{b, b})
		}
	}
	for class := uint8(runeClass); class < noClass && c.someMany(); class++ {
		if c.has(class) && manyBytes.has(class) {
			for i, w := range runesByClass().begins[class] {
				s[i] |= w
			}
		}
	}
	return s
}

// jsonClasses are the characters that a JSON string contains unescaped, except line separators:
// expressions such as a dot exclude these, and hardly any token contains one.
var jsonClasses = func() (c classes) {
	c = manyBytes
	c.remove(lineClass)
	for b := byte(' '); b < utf8.RuneSelf; b++ {
		if b != '"' && b != '\\' {
			c.add(classOfByte[b])
		}
	}
	return c
}()

// first returns the number of characters of the classes at the start of a text, and the rest of it.
func (c classes) first(t []byte) (n int, tail []byte) {
	for len(t) > 0 {
		class, size := firstClass(t)
		if !c.has(class) {
			break
		}
		t = t[size:]
		n++
	}
	return n, t
}

// noClass is the class of a continuation byte of a character.
const noClass = 127

// firstClass returns the class of a text's first character and its length in bytes.
func firstClass(t []byte) (class uint8, size int) {
	if t[0] < utf8.RuneSelf {
		return classOfByte[t[0]], 1
	}
	r, size := utf8.DecodeRune(t)
	if r == utf8.RuneError && size == 1 {
		return brokenClass, 1
	}
	return classOfRune(r), size
}
