package qtype

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"sync"
)

// grid is the set of words of digits that a codebook type may use: a number in a file represents
// that many consecutive elements at once. Panels store the digits, so that no kernel looks up a
// word.
type grid struct {
	base, width, sign int // sign is one bit above the largest digit
	text              string
	once              sync.Once
	words             []uint64 // digits in bytes, the first element lowest, ascending; read by load
	load              func()
	nearest           func() []uint16
}

// newGrid returns a set of words, which is decoded when the first of them is looked up, because
// few files use any.
func newGrid(base, width int, set string) *grid {
	g := &grid{base: base, width: width, sign: bits.Len(uint(base - 1)), text: set}
	g.load, g.nearest = g.read, sync.OnceValue(g.near)
	return g
}

// read decodes a set from its text.
func (g *grid) read() {
	member, err := base64.StdEncoding.DecodeString(g.text)
	if err != nil {
		panic(err)
	}
	for n := range g.all() {
		if member[n/8]>>(n%8)&1 != 0 {
			word := uint64(0)
			for i, x := range g.digits(n) {
				word |= uint64(x) << (8 * i)
			}
			g.words = append(g.words, word)
		}
	}
}

// all returns the number of words of digits, whether they are members or not.
func (g *grid) all() int {
	n := 1
	for range g.width {
		n *= g.base
	}
	return n
}

// digits returns the digits of a word's number.
func (g *grid) digits(n int) []uint8 {
	out := make([]uint8, g.width)
	for i := range out {
		out[i] = uint8(n % g.base)
		n /= g.base
	}
	return out
}

// near lists for every word of digits the nearest member, the first of several.
func (g *grid) near() []uint16 {
	g.once.Do(g.load)
	out := make([]uint16, g.all())
	for n := range out {
		want, smallest := g.digits(n), 1<<30
		for i, w := range g.words {
			far := 0
			for k, x := range want {
				d := int(uint8(w>>(8*k))) - int(x)
				far += d * d
			}
			if far < smallest {
				out[n], smallest = uint16(i), far
			}
		}
	}
	return out
}

// find returns the member nearest to the digits in the low bits of u.
func (g *grid) find(u []uint8) int {
	n := 0
	for i := g.width - 1; i >= 0; i-- {
		n = n*g.base + int(u[i])%g.base
	}
	return int(g.nearest()[n])
}

// get writes the digits of a word of eight, with signs one bit above the largest digit.
func (g *grid) get(u []uint8, word int, signs uint8) {
	g.once.Do(g.load)
	binary.LittleEndian.PutUint64(u, g.words[word]|spreadBits(signs)<<g.sign)
}

// get2 is like get, for two words of four.
func (g *grid) get2(u []uint8, first, second int, signs uint8) {
	g.once.Do(g.load)
	binary.LittleEndian.PutUint64(u, g.words[first]|g.words[second]<<32|spreadBits(signs)<<g.sign)
}

// signsOf collects the signs of eight numbers, bit `at` of each.
func signsOf(u []uint8, at int) (signs uint8) {
	for i, x := range u[:8] {
		signs |= x >> at & 1 << i
	}
	return signs
}

// evenSigns is like signsOf, with an even number of ones: if the number is odd, the sign of the
// element with the smallest digit is flipped.
func evenSigns(u []uint8, at int) uint8 {
	signs, smallest := signsOf(u, at), 0
	if bits.OnesCount8(signs)%2 == 0 {
		return signs
	}
	digit := func(i int) uint8 { return u[i] & (1<<at - 1) }
	for i := range 8 {
		if digit(i) < digit(smallest) {
			smallest = i
		}
	}
	return signs ^ 1<<smallest
}

// eighth adds the eighth sign, which the other seven imply.
func eighth(signs uint8) uint8 {
	signs &= 127
	return signs | uint8(bits.OnesCount8(signs)&1)<<7
}
