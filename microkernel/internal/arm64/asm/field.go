package asm

import (
	"strings"
	"sync"
)

// field is one operand of an instruction: how its value becomes bits, how it is spelled, and which
// values there are.
type field struct {
	class   class
	written bool   // a general register that the instruction changes
	prefix  string // of the register or number in the text
	last    string // what register 31 is called, where that is not its number
	encode  func(v int) (bits uint32, ok bool)
	values  []int // of numbers: what a test may draw
}

// unsigned returns a field of the given bits for multiples of scale.
func unsigned(bits, scale, at int) field {
	top := (1<<bits - 1) * scale
	return field{
		encode: func(v int) (uint32, bool) { return uint32(v/scale) << at, v >= 0 && v <= top && v%scale == 0 },
		values: []int{0, scale, 3 * scale, top / scale / 2 * scale, top},
	}
}

// signed returns unsigned with a sign.
func signed(bits, scale, at int) field {
	half := 1 << (bits - 1)
	return field{
		encode: func(v int) (uint32, bool) {
			return uint32(v/scale) & (1<<bits - 1) << at, v >= -half*scale && v < half*scale && v%scale == 0
		},
		values: []int{0, scale, -scale, (half - 1) * scale, -half * scale},
	}
}

// shifted returns a vector shift by n of elements of the given bits: to the right it is stored as
// 2*bits - n, to the left as bits + n.
func shifted(bits int, right bool) field {
	f := field{values: []int{1, bits / 2, bits - 1}}
	f.encode = func(v int) (uint32, bool) {
		if right {
			return uint32(2*bits-v) << 16, v >= 1 && v <= bits
		}
		return uint32(bits+v) << 16, v >= 0 && v < bits
	}
	return f
}

// element returns the lane of a vector in the five bits from 16 on: the lane's number above a one
// that stands for its size.
func element(log int) field {
	lanes := 16 >> log
	return field{
		encode: func(v int) (uint32, bool) { return uint32(2*v+1) << log << 16, v >= 0 && v < lanes },
		values: []int{0, lanes / 2, lanes - 1},
	}
}

// numbers are the fields of numbers by the name they have in a syntax.
var numbers = sync.OnceValue(func() map[string]field {
	return map[string]field{
		"i12": unsigned(12, 1, 10), "i16": unsigned(16, 1, 5), "i6": unsigned(6, 1, 10), "hw": unsigned(2, 16, 21),
		"o1": unsigned(12, 1, 10), "o2": unsigned(12, 2, 10), "o4": unsigned(12, 4, 10), "o8": unsigned(12, 8, 10),
		"o16": unsigned(12, 16, 10),
		"p8":  signed(7, 8, 15), "p16": signed(7, 16, 15), "s9": signed(9, 1, 12),
		"r8": shifted(8, true), "r16": shifted(16, true), "r32": shifted(32, true), "r64": shifted(64, true),
		"l8": shifted(8, false), "l16": shifted(16, false), "l32": shifted(32, false), "l64": shifted(64, false),
		"eb": element(0), "eh": element(1), "es": element(2), "ed": element(3),
		"from": unsigned(2, 4, 11), // bytes from the start of the second source of ext, in words
		"byte": unsigned(4, 1, 11), // the same in bytes
		// the lane of a multiplication by element, of 32 bits
		"lane": {
			encode: func(v int) (uint32, bool) { return uint32(v&1)<<21 | uint32(v>>1)<<11, v >= 0 && v < 4 },
			values: []int{0, 1, 2, 3},
		},
		// the source lane of ins, of 32 bits
		"ss": {
			encode: func(v int) (uint32, bool) { return uint32(v) << 13, v >= 0 && v < 4 },
			values: []int{0, 1, 2, 3},
		},
		// the lane of a load or store of one element: bits Q and S (32 bits), Q (64 bits)
		"ls": {
			encode: func(v int) (uint32, bool) { return uint32(v>>1)<<30 | uint32(v&1)<<12, v >= 0 && v < 4 },
			values: []int{0, 1, 2, 3},
		},
		"ld": {
			encode: func(v int) (uint32, bool) { return uint32(v) << 30, v >= 0 && v < 2 },
			values: []int{0, 1},
		},
		// the eight bits of movi, three and five
		"m8": {
			encode: func(v int) (uint32, bool) { return uint32(v>>5)<<16 | uint32(v&31)<<5, v >= 0 && v < 256 },
			values: []int{0, 1, 15, 128, 255},
		},
		// shifts of 64-bit registers are bit-field moves
		"lsl": {
			encode: func(v int) (uint32, bool) { return uint32(64-v)%64<<16 | uint32(63-v)<<10, v >= 0 && v < 64 },
			values: []int{0, 1, 31, 63},
		},
		"lsr": {
			encode: func(v int) (uint32, bool) { return uint32(v)<<16 | 63<<10, v >= 0 && v < 64 },
			values: []int{0, 1, 31, 63},
		},
	}
})

// scalable are the fields of SVE and SME operands by the name they have in a syntax.
var scalable = sync.OnceValue(func() map[string]field {
	return map[string]field{
		"Zt": scalableAt(vector, "z", 0, 32), "Zd": scalableAt(vector, "z", 0, 32),
		"Zn": scalableAt(vector, "z", 5, 32), "Zm": scalableAt(vector, "z", 16, 32),
		"Pd": scalableAt(predicate, "p", 0, 16), "Pg": scalableAt(predicate, "p", 10, 8),
		"Pm": scalableAt(predicate, "p", 13, 8),
		"Td": tileAt(0), "Tt": tileAt(2), "Tn": tileAt(7),
		// the tile of zero, a mask of 64-bit tiles; a row or column beyond the one in w12; the lane
		// of a broadcast; a byte in every lane
		"Tz": {class: number, encode: func(v int) (uint32, bool) { return 0x11 << v, v >= 0 && v < 4 },
			values: []int{0, 1, 2, 3}},
		"Off": {class: number, encode: unsigned(2, 1, 5).encode, values: []int{0, 1, 2, 3}},
		"To":  {class: number, encode: unsigned(2, 1, 0).encode, values: []int{0, 1, 2, 3}},
		"Lane": {
			class: number, encode: func(v int) (uint32, bool) {
				return uint32(v>>2)<<22 | uint32(v&3)<<19,
					v >= 0 && v < 16
			},
			values: []int{0, 3, 4, 9, 15},
		},
		"B8": {class: number, prefix: "#", encode: signed(8, 1, 5).encode, values: []int{0, 1, 15, 127, -128}},
	}
})

func scalableAt(c class, prefix string, at, n int) field {
	return field{class: c, prefix: prefix, encode: func(v int) (uint32, bool) { return uint32(v) << at, v < n }}
}

// tileAt returns the number of one of the four tiles of 32-bit elements.
func tileAt(at int) field {
	return field{
		class: number, encode: func(v int) (uint32, bool) { return uint32(v) << at, v >= 0 && v < 4 },
		values: []int{0, 1, 2, 3},
	}
}

var places = map[byte]int{'d': 0, 't': 0, 'n': 5, 'm': 16, 'a': 10, 'u': 10}

// fieldOf returns the field that a name in a syntax stands for.
func fieldOf(name string) field {
	if f, ok := numbers()[name]; ok {
		f.class, f.prefix = number, "#"
		return f
	}
	if f, ok := scalable()[name]; ok {
		return f
	}
	f := field{class: vector, prefix: strings.ToLower(name[:1])}
	switch name[0] {
	case 'X', 'Y', 'W':
		f.class = general
		f.last = map[byte]string{'X': "xzr", 'Y': "sp", 'W': "wzr"}[name[0]]
		if name[0] == 'Y' {
			f.prefix = "x"
		}
	case 'V', 'Q', 'D', 'S', 'H':
	default:
		panic("arm64/asm: no operand is called " + name)
	}
	place, ok := places[name[1]]
	if !ok || len(name) != 2 {
		panic("arm64/asm: no operand is called " + name)
	}
	f.encode = func(v int) (uint32, bool) { return uint32(v) << place, v < 32 }
	return f
}
