package automaton

import "unicode/utf8"

// Classes is a set of character classes. A class is one ASCII character, or all control characters
// except tab, line feed and return, or the multi-byte characters of one kind (runeKinds), or bytes
// that are not a whole character.
type Classes [2]uint64

const (
	controlClass = 0   // control characters except tab, line feed and return
	asciiClass   = 4   // the space; the classes of the next ASCII characters follow
	runeClass    = 100 // multi-byte characters of no other kind
	brokenClass  = 101
	lineClass    = 102 // first of runeKinds: line separators (U+2028, U+2029), which a dot does not match
)

// ClassOfByte maps an ASCII byte to its class and other bytes to runeClass.
var ClassOfByte = func() (of [256]uint8) {
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

// ClassOfChar returns the class of a character.
func ClassOfChar(r rune) uint8 {
	if r < utf8.RuneSelf {
		return ClassOfByte[r]
	}
	return ClassOfRune(r)
}

// Add adds a class.
func (c *Classes) Add(class uint8) { c[class/64] |= 1 << (class % 64) }

func (c *Classes) remove(class uint8) { c[class/64] &^= 1 << (class % 64) }

// Has reports whether a class is in the set.
func (c Classes) Has(class uint8) bool { return c[class/64]>>(class%64)&1 != 0 }

// Covers reports whether d is a subset of c.
func (c Classes) Covers(d Classes) bool { return d[0]&^c[0]|d[1]&^c[1] == 0 }

// Or returns the union of both sets.
func (c Classes) Or(d Classes) Classes { return Classes{c[0] | d[0], c[1] | d[1]} }

func (c Classes) without(d Classes) Classes { return Classes{c[0] &^ d[0], c[1] &^ d[1]} }

// Bytes returns the first bytes of the characters in the classes.
func (c Classes) Bytes() (s ByteSet) {
	for b := range byte(utf8.RuneSelf) {
		if c.Has(ClassOfByte[b]) {
			s.Add(ByteRange{b, b})
		}
	}
	for class := uint8(runeClass); class < NoClass && c.SomeMany(); class++ {
		if c.Has(class) && manyBytes.Has(class) {
			for i, w := range RunesByClass().begins[class] {
				s[i] |= w
			}
		}
	}
	return s
}

// JSONClasses are the characters that a JSON string contains unescaped, except line separators:
// expressions such as a dot exclude these, and hardly any token contains one.
var JSONClasses = func() (c Classes) {
	c = manyBytes
	c.remove(lineClass)
	for b := byte(' '); b < utf8.RuneSelf; b++ {
		if b != '"' && b != '\\' {
			c.Add(ClassOfByte[b])
		}
	}
	return c
}()

// First returns the number of characters of the classes at the start of a text, and the rest of it.
func (c Classes) First(t []byte) (n int, tail []byte) {
	for len(t) > 0 {
		class, size := FirstClass(t)
		if !c.Has(class) {
			break
		}
		t = t[size:]
		n++
	}
	return n, t
}

// NoClass is the class of a continuation byte of a character.
const NoClass = 127

// FirstClass returns the class of a text's first character and its length in bytes.
func FirstClass(t []byte) (class uint8, size int) {
	if t[0] < utf8.RuneSelf {
		return ClassOfByte[t[0]], 1
	}
	r, size := utf8.DecodeRune(t)
	if r == utf8.RuneError && size == 1 {
		return brokenClass, 1
	}
	return ClassOfRune(r), size
}
