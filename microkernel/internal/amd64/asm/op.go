package asm

// form describes which operand of an instruction goes into which field of its encoding.
type form uint8

const (
	rvm  form = iota // reg, vvvv, rm
	rm               // reg, rm
	mr               // rm, reg
	rvmi             // reg, vvvv, rm, imm8
	rmi              // reg, rm, imm8
	mri              // rm, reg, imm8
	vmi              // vvvv, rm, imm8, with an opcode extension in reg
	rvmr             // reg, vvvv, rm, register in imm8[7:4]
	mvr              // rm, vvvv, reg (masked stores)
)

// tuple selects the number of bytes of the memory operand of an instruction. EVEX divides 8-bit
// displacements by it.
type tuple uint8

const (
	full    tuple = iota // the vector length, or one element under an embedded broadcast
	half                 // half the vector length
	quarter              // a quarter
	eighth               // an eighth
	scalar               // one element
	fix16                // 16 bytes whatever the length
	fix32                // 32 bytes whatever the length
)

// availability of an encoding.
type avail uint8

const (
	vex  avail = 1 << iota // has a VEX encoding
	evex                   // has an EVEX encoding
	bc                     // EVEX encoding may broadcast one element
	vw1                    // W is 1 in VEX
	ew1                    // W is 1 in EVEX
	both = vex | evex
)

// mandatory prefix and opcode map, as VEX.pp and VEX.mmmmm encode them.
const (
	pNone = 0
	p66   = 1
	pF3   = 2
	pF2   = 3

	m0F   = 1
	m0F38 = 2
	m0F3A = 3
)

// Op describes one vector instruction. The ops are package variables named as the manual names
// them.
type Op struct {
	name   string
	has    avail
	pp     uint8
	mmm    uint8
	opcode uint8
	form   form
	tup    tuple
	elt    uint8 // bytes of one element: scalar tuples and broadcasts
	ext    uint8 // opcode extension of form vmi
	store  uint8 // opcode when the first operand is memory; 0 if no such form exists
}

// Name returns the mnemonic in lower case.
func (o *Op) Name() string { return o.name }

// memBytes returns the number of bytes that an 8-bit displacement of the EVEX encoding counts.
func (o *Op) memBytes(l length, broadcast bool) int32 {
	if broadcast {
		return int32(o.elt)
	}
	switch o.tup {
	case half:
		return l.bytes() / 2
	case quarter:
		return l.bytes() / 4
	case eighth:
		return l.bytes() / 8
	case scalar:
		return int32(o.elt)
	case fix16:
		return 16
	case fix32:
		return 32
	}
	return l.bytes()
}

// arity returns the number of operands the form takes.
func (f form) arity() int {
	switch f {
	case rm, mr:
		return 2
	case rvmi, rvmr:
		return 4
	}
	return 3
}

// all lists every op in the order of the tables, for tests.
var all []*Op

func def(o Op) *Op {
	all = append(all, &o)
	return &o
}
