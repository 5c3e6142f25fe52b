package asm

import (
	"fmt"
	"strings"
	"sync"
)

// class is what kind of operand a field takes.
type class uint8

const (
	vector class = iota
	general
	number
	predicate
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

// Op describes one instruction. The ops are package variables named after the instruction.
type Op struct {
	syntax string
	word   uint32
	level  Level
	once   sync.Once
	parsed
}

// parsed is a syntax taken apart: when the first instruction is emitted, not when a process starts,
// of which most never emit one.
type parsed struct {
	fields []field
	pieces []string // the text around the fields
}

// all lists every op, for tests.
var all []*Op

// def makes an instruction of Armv8.0-A out of its fixed bits and its syntax, in which operands
// stand as
//
//	%Vd %Qd %Dd %Sd %Hd   vector register in field d, spelled v, q, d, s, h
//	%Xd %Wd               general register, 31 is the zero register;  %Yd  31 is the stack pointer
//	%NAME                 a number, see numbers
//
// Fields: d and t are bits 0 to 4, n 5 to 9, m 16 to 20, a and u (second of a pair) 10 to 14.
func def(word uint32, syntax string) *Op { return defAt(Base, word, syntax) }

func defAt(level Level, word uint32, syntax string) *Op {
	o := &Op{syntax: syntax, word: word, level: level}
	all = append(all, o)
	return o
}

// parse takes the syntax apart.
func (o *Op) parse() *parsed {
	o.once.Do(func() {
		parts := strings.Split(o.syntax, "%")
		o.pieces = []string{parts[0]}
		for _, p := range parts[1:] {
			n := 0
			for n < len(p) && (p[n] >= 'a' && p[n] <= 'z' || p[n] >= 'A' && p[n] <= 'Z' || p[n] >= '0' && p[n] <= '9') {
				n++
			}
			if p[0] == 'T' {
				n = 2 // a tile's number, with the letters of a slice behind it
			}
			f := fieldOf(p[:n])
			f.written = f.class == general && o.writes(p[:n], p[n:])
			o.fields = append(o.fields, f)
			o.pieces = append(o.pieces, p[n:])
		}
	})
	return &o.parsed
}

// writes says that the instruction changes the general register of a name in its syntax: its
// result, what it loads, or an address that it moves on, as the text behind the name shows.
func (o *Op) writes(name, after string) bool {
	switch name[1] {
	case 'd':
		return true
	case 't':
		return strings.HasPrefix(o.syntax, "ld")
	}
	return strings.HasPrefix(after, "], ")
}

var places = map[byte]int{'d': 0, 't': 0, 'n': 5, 'm': 16, 'a': 10, 'u': 10}

// fieldOf is the field that a name in a syntax stands for.
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
		panic("a64: no operand is called " + name)
	}
	place, ok := places[name[1]]
	if !ok || len(name) != 2 {
		panic("a64: no operand is called " + name)
	}
	f.encode = func(v int) (uint32, bool) { return uint32(v) << place, v < 32 }
	return f
}

// text spells an instruction as assemblers read it.
func (o *Op) text(args []Operand) string {
	of := o.parse()
	s := of.pieces[0]
	for i, f := range of.fields {
		_, v := args[i].operand()
		if v == 31 && f.last != "" {
			s += f.last
		} else {
			prefix := f.prefix
			if strings.HasSuffix(s, "[") {
				prefix = strings.TrimPrefix(prefix, "#") // the index of a lane
			}
			s += fmt.Sprintf("%s%d", prefix, v)
		}
		s += of.pieces[i+1]
	}
	return s
}

// unsigned is a field of the given bits for multiples of scale.
func unsigned(bits, scale, at int) field {
	top := (1<<bits - 1) * scale
	return field{
		encode: func(v int) (uint32, bool) { return uint32(v/scale) << at, v >= 0 && v <= top && v%scale == 0 },
		values: []int{0, scale, 3 * scale, top / scale / 2 * scale, top},
	}
}

// signed is unsigned with a sign.
func signed(bits, scale, at int) field {
	half := 1 << (bits - 1)
	return field{
		encode: func(v int) (uint32, bool) {
			return uint32(v/scale) & (1<<bits - 1) << at, v >= -half*scale && v < half*scale && v%scale == 0
		},
		values: []int{0, scale, -scale, (half - 1) * scale, -half * scale},
	}
}

// shifted is a vector shift by n of elements of the given bits: to the right it is stored as 2*bits
// - n, to the left as bits + n.
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

// element is the lane of a vector in the five bits from 16 on: the lane's number above a one that
// stands for its size.
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
