package asm

import (
	"slices"

	"sandwich/microkernel/internal/code"
)

// Cond is the condition of a branch.
type Cond uint8

// The conditions, as the instruction encodes them.
const (
	Equal        Cond = 0x0 // also: the result was zero
	NotEqual     Cond = 0x1
	AboveOrEqual Cond = 0x2 // unsigned >=
	Below        Cond = 0x3 // unsigned <
	Negative     Cond = 0x4
	Above        Cond = 0x8 // unsigned >
	BelowOrEqual Cond = 0x9
	GreaterEqual Cond = 0xA // signed >=
	Less         Cond = 0xB // signed <
	Greater      Cond = 0xC
	LessOrEqual  Cond = 0xD
)

// branchField is where an instruction keeps the distance to its target, in words.
type branchField struct{ bits, at int }

func (f branchField) fixup(at int) code.Fixup {
	return code.Fixup{At: at, End: at, Bits: f.bits, Shift: f.at}
}

var (
	literal = branchField{19, 5} // conditional branches and loads of constants
	far     = branchField{26, 0} // branches
	bit     = branchField{14, 5} // branches on one bit
)

func (a *Asm) jump(word uint32, l Label, f branchField) {
	a.Jump(l, f.fixup(len(a.Bytes)))
	a.put(word)
}

// register returns the number of a register in an instruction that the table does not hold.
func (a *Asm) register(n uint8) uint32 {
	if n > 31 {
		a.Fail("there is no register %d", n)
	}
	return uint32(n) & 31
}

// B branches to the label.
func (a *Asm) B(l Label) { a.jump(0x14000000, l, far) }

// BC branches to the label when the condition holds.
func (a *Asm) BC(c Cond, l Label) { a.jump(0x54000000|uint32(c), l, literal) }

// CBZ branches to the label when the register is zero.
func (a *Asm) CBZ(x X, l Label) { a.jump(0xB4000000|a.register(uint8(x)), l, literal) }

// CBNZ branches to the label when the register is not zero.
func (a *Asm) CBNZ(x X, l Label) { a.jump(0xB5000000|a.register(uint8(x)), l, literal) }

// TBZ branches to the label when bit n (0 to 31) of the register is zero.
func (a *Asm) TBZ(x X, n int, l Label) {
	if n < 0 || n > 31 {
		a.Fail("tbz: there is no bit %d within the low 32", n)
		return
	}
	a.jump(0x36000000|uint32(n)<<19|a.register(uint8(x)), l, bit)
}

// Ret returns to the caller.
func (a *Asm) Ret() { a.I(RET) }

// MovX copies a general register.
func (a *Asm) MovX(d, s X) { a.I(ORR, d, ZR, s) }

// Move copies a vector register.
func (a *Asm) Move(d, s V) { a.I(MOVV, d, s, s) }

// Zero clears a vector register.
func (a *Asm) Zero(v V) { a.I(MOVI, v, Imm(0)) }

// MovImm loads a number into a register in as few instructions as moves of 16 bits can.
func (a *Asm) MovImm(d X, v int) {
	u := uint64(v)
	if v < 0 && v >= -1<<16 {
		a.I(MOVN, d, Imm(^u&0xFFFF), Imm(0))
		return
	}
	a.I(MOVZ, d, Imm(u&0xFFFF), Imm(0))
	for i := 1; i < 4; i++ {
		if part := u >> (16 * i) & 0xFFFF; part != 0 {
			a.I(MOVK, d, Imm(part), Imm(16*i))
		}
	}
}

// AddImm sets d to s plus a number of up to 24 bits, of either sign.
func (a *Asm) AddImm(d, s X, v int) {
	o := ADDI
	if v < 0 {
		o, v = SUBI, -v
	}
	if v >= 1<<24 {
		a.Fail("%d is too far for an addition", v)
		return
	}
	if high := v >> 12; high != 0 {
		a.writes(d)
		a.put(o.word | 1<<22 | uint32(high)<<10 | a.register(uint8(s))<<5 | a.register(uint8(d)))
		s, v = d, v&0xFFF
		if v == 0 {
			return
		}
	}
	if v != 0 || d != s {
		a.I(o, d, s, Imm(v))
	}
}

// Cmp compares a register with a number of twelve bits.
func (a *Asm) Cmp(x X, v int) { a.I(SUBSI, ZR, x, Imm(v)) }

// CmpX compares two registers.
func (a *Asm) CmpX(x, y X) { a.I(SUBS, ZR, x, y) }

// Loop runs body as often as the counter says, at least once, and counts it down to zero. The body
// leaves the counter alone: one that loops within it also counted would run on beyond its operands.
func (a *Asm) Loop(count X, body func()) {
	a.Align(16)
	top := a.Here()
	a.counters = append(a.counters, count)
	body()
	a.counters = a.counters[:len(a.counters)-1]
	a.I(SUBSI, count, count, Imm(1))
	a.BC(NotEqual, top)
}

// writes refuses to change the counter of a loop within the loop.
func (a *Asm) writes(x X) {
	if x != ZR && slices.Contains(a.counters, x) {
		a.Fail("x%d counts a loop, within which it is written", x)
	}
}
