package microkernel

import (
	"encoding/binary"
	"math"
	"slices"

	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
)

// word and float are the element at an offset.
func word(b []byte, at int) uint32         { return binary.LittleEndian.Uint32(b[at:]) }
func float(b []byte, at int) float32       { return math.Float32frombits(word(b, at)) }
func putWord(b []byte, at int, v uint32)   { binary.LittleEndian.PutUint32(b[at:], v) }
func putFloat(b []byte, at int, v float32) { putWord(b, at, math.Float32bits(v)) }

// zd, zn and zm are vectors, and pg the predicate, in their usual places.
func (m *smeMachine) zd(w uint32) []byte { return m.z[w&31] }
func (m *smeMachine) zn(w uint32) []byte { return m.z[w>>5&31] }
func (m *smeMachine) zm(w uint32) []byte { return m.z[w>>16&31] }
func (m *smeMachine) pg(w uint32) []bool { return m.p[w>>10&7] }

// smeLoad makes a load of elements of so many bytes into words; what the predicate leaves out is
// zero.
func smeLoad(size int, widen func(b []byte) uint32) func(*smeMachine, uint32) {
	return func(m *smeMachine, w uint32) {
		clear(m.zd(w))
		m.elements(m.pg(w), 4, func(at int) {
			putWord(m.zd(w), at, widen(m.bytes(m.xn(w)+uint64(at/4*size), size, false)))
		})
	}
}

// smeBytes makes an operation on two vectors, byte by byte.
func smeBytes(f func(n, m byte) byte) func(*smeMachine, uint32) {
	return func(m *smeMachine, w uint32) {
		m.elements(nil, 1, func(at int) { m.zd(w)[at] = f(m.zn(w)[at], m.zm(w)[at]) })
	}
}

// smeConvert makes an operation on the words of one vector.
func smeConvert(f func(v uint32) float32) func(*smeMachine, uint32) {
	return func(m *smeMachine, w uint32) {
		m.elements(m.pg(w), 4, func(at int) { putFloat(m.zd(w), at, f(word(m.zn(w), at))) })
	}
}

// smeMultiplyAdd makes a multiply-add whose product has the given sign.
func smeMultiplyAdd(sign float32) func(*smeMachine, uint32) {
	return func(m *smeMachine, w uint32) {
		m.elements(m.pg(w), 4, func(at int) {
			putFloat(m.zd(w), at, ref.FMA32(sign*float(m.zn(w), at), float(m.zm(w), at), float(m.zd(w), at)))
		})
	}
}

// smeShift makes a shift of bytes or words, whichever the instruction says, by its number: of so
// many bits elements. The number of a shift to the right counts down from twice the size.
func smeShift(right bool, f func(v uint32, n, size int) uint32) func(*smeMachine, uint32) {
	return func(m *smeMachine, w uint32) {
		size := 8 << highest(smeField(w, 22, 2)<<2|smeField(w, 19, 2))
		n := smeField(w, 22, 2)<<5 | smeField(w, 16, 5)
		if n -= size; right {
			n = size - n
		}
		switch size {
		case 8:
			m.elements(nil, 1, func(at int) { m.zd(w)[at] = byte(f(uint32(m.zn(w)[at]), n, size)) })
		case 16:
			m.elements(nil, 2, func(at int) {
				v := uint32(binary.LittleEndian.Uint16(m.zn(w)[at:]))
				binary.LittleEndian.PutUint16(m.zd(w)[at:], uint16(f(v, n, size)))
			})
		case 32:
			m.elements(nil, 4, func(at int) { putWord(m.zd(w), at, f(word(m.zn(w), at), n, size)) })
		default:
			m.fault("a shift of elements of %d bits", size)
		}
	}
}

// smeVector is the instructions on vectors and predicates.
var smeVector = []smeOp{
	{0xFFE0FC10, 0x25A01C00, func(m *smeMachine, w uint32) { m.while(w, 4) }},
	{0xFFE0FC10, 0x25201C00, func(m *smeMachine, w uint32) { m.while(w, 1) }},
	{0xFFFFE000, 0xA540A000, smeLoad(4, binary.LittleEndian.Uint32)}, // ld1w, ld1h, ld1b, ld1sb
	{0xFFFFE000, 0xA4C0A000, smeLoad(2, func(b []byte) uint32 { return uint32(binary.LittleEndian.Uint16(b)) })},
	{0xFFFFE000, 0xA440A000, smeLoad(1, func(b []byte) uint32 { return uint32(b[0]) })},
	{0xFFFFE000, 0xA5A0A000, smeLoad(1, func(b []byte) uint32 { return uint32(int32(int8(b[0]))) })},
	{0xFFFFE000, 0xE540E000, func(m *smeMachine, w uint32) { // st1w
		m.elements(m.pg(w), 4, func(at int) { copy(m.bytes(m.xn(w)+uint64(at), 4, true), m.zd(w)[at:]) })
	}},
	{0xFF000000, 0x9C000000, func(m *smeMachine, w uint32) { // ldr of a constant: the rest of the vector is zero
		clear(m.zd(w))
		for i := range 4 {
			putWord(m.zd(w), 4*i, m.now[m.pc+smeSigned(w, 5, 19)+i].word)
		}
	}},
	{0xFFFFE000, 0x2538C000, func(m *smeMachine, w uint32) { // dup of a number
		m.elements(nil, 1, func(at int) { m.zd(w)[at] = byte(smeField(w, 5, 8)) })
	}},
	{0xFF27FC00, 0x05242000, func(m *smeMachine, w uint32) { // dup of an element
		lane, v := 4*(smeField(w, 22, 2)<<2|smeField(w, 19, 2)), uint32(0)
		if lane < m.length {
			v = word(m.zn(w), lane)
		}
		m.elements(nil, 4, func(at int) { putWord(m.zd(w), at, v) })
	}},
	{0xFFE0FC00, 0x05203000, func(m *smeMachine, w uint32) { // tbl
		table, from := slices.Clone(m.zn(w)), slices.Clone(m.zm(w))
		m.elements(nil, 1, func(at int) {
			m.zd(w)[at] = 0
			if i := int(from[at]); i < m.length {
				m.zd(w)[at] = table[i]
			}
		})
	}},
	{0xFFE0FC00, 0x04203000, smeBytes(func(n, m byte) byte { return n & m })},
	{0xFFE0FC00, 0x04A03000, smeBytes(func(n, m byte) byte { return n ^ m })},
	{0xFFE0FC00, 0x04603000, smeBytes(func(n, m byte) byte { return n | m })},
	{0xFFE0FC00, 0x04200400, smeBytes(func(n, m byte) byte { return n - m })},
	{0xFF20FC00, 0x04209400, smeShift(true, func(v uint32, n, _ int) uint32 { return v >> n })},
	{0xFF20FC00, 0x04209C00, smeShift(false, func(v uint32, n, _ int) uint32 { return v << n })},
	{0xFF20FC00, 0x04209000, smeShift(true, func(v uint32, n, size int) uint32 {
		return uint32(int32(v<<(32-size)) >> (32 - size) >> n)
	})},
	{0xFFE0FC00, 0x44800000, func(m *smeMachine, w uint32) { // sdot
		m.elements(nil, 4, func(at int) {
			putWord(m.zd(w), at, word(m.zd(w), at)+uint32(fourBytes(m.zn(w)[at:], m.zm(w)[at:], nil, nil, true, true)))
		})
	}},
	{0xFFE0FC00, 0x04606000, func(m *smeMachine, w uint32) { // mul of 16 bits
		m.elements(nil, 2, func(at int) {
			x, y := binary.LittleEndian.Uint16(m.zn(w)[at:]), binary.LittleEndian.Uint16(m.zm(w)[at:])
			binary.LittleEndian.PutUint16(m.zd(w)[at:], x*y)
		})
	}},
	{0xFFE0FC00, 0x04A00000, func(m *smeMachine, w uint32) { // add of words
		m.elements(nil, 4, func(at int) { putWord(m.zd(w), at, word(m.zn(w), at)+word(m.zm(w), at)) })
	}},
	{0xFFFFE000, 0x6589A000, smeConvert(func(v uint32) float32 { return qtype.FloatFromHalf(uint16(v)) })},
	{0xFFFFE000, 0x6594A000, smeConvert(func(v uint32) float32 { return float32(int32(v)) })},
	{0xFFFFE000, 0x6595A000, smeConvert(func(v uint32) float32 { return float32(v) })},
	{0xFFE0FC00, 0x65800800, func(m *smeMachine, w uint32) { // fmul
		m.elements(nil, 4, func(at int) { putFloat(m.zd(w), at, float(m.zn(w), at)*float(m.zm(w), at)) })
	}},
	{0xFFE0E000, 0x65A00000, smeMultiplyAdd(1)},
	{0xFFE0E000, 0x65A02000, smeMultiplyAdd(-1)},
}

// fourBytes is the sum of four products of bytes, of those that predicates have.
func fourBytes(n, m []byte, pn, pm []bool, signedN, signedM bool) (sum int32) {
	value := func(b byte, signed bool) int32 {
		if signed {
			return int32(int8(b))
		}
		return int32(b)
	}
	for k := range 4 {
		if pn == nil || pn[k] && pm[k] {
			sum += value(n[k], signedN) * value(m[k], signedM)
		}
	}
	return sum
}

// smeProduct makes an outer product of bytes with or without signs.
func smeProduct(signedN, signedM bool) func(*smeMachine, uint32) {
	return func(m *smeMachine, w uint32) {
		n, v, pn, pm := m.zn(w), m.zm(w), m.pg(w), m.p[smeField(w, 13, 3)]
		m.outerProduct(w, func(sum uint32, r, c int) uint32 {
			return sum + uint32(fourBytes(n[r:], v[c:], pn[r:], pm[c:], signedN, signedM))
		})
	}
}

// row is a row of a tile of words; its elements lie in one row of the array.
func (m *smeMachine) row(tile, r int) []byte { return m.za[4*(r%(m.length/4))+tile] }

// slice is the number of the row or column that an instruction means.
func (m *smeMachine) slice(offset int) int { return int(uint32(m.x[12])) + offset }

// outerProduct makes every word of a tile in a row that the predicate has anything of what f makes
// of it and of the elements at two offsets.
func (m *smeMachine) outerProduct(w uint32, f func(sum uint32, r, c int) uint32) {
	m.elements(nil, 4, func(r int) {
		if !slices.Contains(m.pg(w)[r:r+4], true) {
			return
		}
		row := m.row(smeField(w, 0, 2), r/4)
		m.elements(nil, 4, func(c int) { putWord(row, c, f(word(row, c), r, c)) })
	})
	m.outer++
}

// smeArray is the instructions on the array.
var smeArray = []smeOp{
	{0xFFFFFF00, 0xC0080000, func(m *smeMachine, w uint32) { // zero: a bit for every eighth row
		for r := range m.za {
			if w>>(r%8)&1 != 0 {
				clear(m.za[r])
			}
		}
	}},
	{0xFFFFE013, 0xE09F0000, func(m *smeMachine, w uint32) { // ld1w
		row := m.row(smeField(w, 2, 2), m.slice(0))
		clear(row)
		m.elements(m.pg(w), 4, func(at int) { copy(row[at:], m.bytes(m.xn(w)+uint64(at), 4, false)) })
	}},
	{0xFFFFE013, 0xE0BF0000, func(m *smeMachine, w uint32) { // st1w
		row := m.row(smeField(w, 2, 2), m.slice(0))
		m.elements(m.pg(w), 4, func(at int) { copy(m.bytes(m.xn(w)+uint64(at), 4, true), row[at:at+4]) })
	}},
	{0xFFFFE200, 0xC0820000, func(m *smeMachine, w uint32) { // mova from a row
		row := m.row(smeField(w, 7, 2), m.slice(smeField(w, 5, 2)))
		m.elements(m.pg(w), 4, func(at int) { copy(m.zd(w)[at:], row[at:at+4]) })
	}},
	{0xFFFFE200, 0xC0828000, func(m *smeMachine, w uint32) { // mova from a column
		column := 4 * (m.slice(smeField(w, 5, 2)) % (m.length / 4))
		m.elements(m.pg(w), 4, func(at int) {
			copy(m.zd(w)[at:], m.row(smeField(w, 7, 2), at/4)[column:column+4])
		})
	}},
	{0xFFFFE010, 0xC0800000, func(m *smeMachine, w uint32) { // mova to a row
		row := m.row(smeField(w, 2, 2), m.slice(smeField(w, 0, 2)))
		m.elements(m.pg(w), 4, func(at int) { copy(row[at:], m.zn(w)[at:at+4]) })
	}},
	{0xFFE0001C, 0x80800000, func(m *smeMachine, w uint32) { // fmopa
		n, v, pn, pm := m.zn(w), m.zm(w), m.pg(w), m.p[smeField(w, 13, 3)]
		m.outerProduct(w, func(sum uint32, r, c int) uint32 {
			if !pn[r] || !pm[c] {
				return sum
			}
			return math.Float32bits(ref.FMA32(float(n, r), float(v, c), math.Float32frombits(sum)))
		})
	}},
	{0xFFE0001C, 0xA0800000, smeProduct(true, true)},   // smopa
	{0xFFE0001C, 0xA0A00000, smeProduct(true, false)},  // sumopa
	{0xFFE0001C, 0xA1A00000, smeProduct(false, false)}, // umopa
}
