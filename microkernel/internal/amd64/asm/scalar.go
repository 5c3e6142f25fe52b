package asm

import (
	"encoding/binary"

	"sandwich/microkernel/internal/code"
)

func (a *Asm) rex(w, reg, index, base uint8) {
	a.put(0x40 | w<<3 | bit(reg, 3)<<2 | bit(index, 3)<<1 | bit(base, 3))
}

// rr emits a 64-bit instruction of two registers: opcode with ModRM(reg, rm).
func (a *Asm) rr(opcode byte, reg, rm Reg) {
	a.rex(1, uint8(reg), 0, uint8(rm))
	a.put(opcode, 0xC0|uint8(reg)&7<<3|uint8(rm)&7)
}

// rmem emits an instruction of a register and memory; w is the operand size bit, mandatory bytes
// come before REX-less opcode.
func (a *Asm) rmem(w uint8, reg uint8, m Mem, opcode ...byte) {
	index, base := uint8(0), uint8(0)
	if m.index != noReg {
		index = uint8(m.index)
	}
	if m.pool == 0 {
		base = uint8(m.base)
	}
	if w != 0 || (reg|index|base)&8 != 0 {
		a.rex(w, reg, index, base)
	}
	a.put(opcode...)
	a.modMem(reg&7<<3, &m, 1)
	a.closePool(&fields{isMem: true, mem: m})
}

// Mov copies a 64-bit value: register to register, memory to register or register to memory.
func (a *Asm) Mov(dst, src Operand) {
	switch d := dst.(type) {
	case Reg:
		switch s := src.(type) {
		case Reg:
			a.rr(0x89, s, d)
		case Mem:
			a.rmem(1, uint8(d), s, 0x8B)
			a.Count(code.LoadWord, 1)
		default:
			a.Fail("mov from %s", textOf(src))
		}
	case Mem:
		s, is := src.(Reg)
		if !is {
			a.Fail("mov to memory from %s", textOf(src))
			return
		}
		a.rmem(1, uint8(s), d, 0x89)
		a.Count(code.Store, 1)
	default:
		a.Fail("mov to %s", textOf(dst))
	}
	a.note("mov", dst, src)
}

// Mov32 loads a 32-bit value from memory into a register, the upper half zeroed.
func (a *Asm) Mov32(dst Reg, m Mem) {
	a.rmem(0, uint8(dst), m, 0x8B)
	a.note("mov", reg32(dst), m)
}

// Store32 stores the low 32 bits of a register.
func (a *Asm) Store32(m Mem, src Reg) {
	a.rmem(0, uint8(src), m, 0x89)
	a.note("mov", m, reg32(src))
}

// MovSXD loads a 32-bit value from memory and extends its sign to 64 bits.
func (a *Asm) MovSXD(dst Reg, m Mem) {
	a.rmem(1, uint8(dst), m, 0x63)
	a.note("movsxd", dst, m)
}

// MovZX16 loads a 16-bit value from memory, zero extended.
func (a *Asm) MovZX16(dst Reg, m Mem) {
	a.rmem(0, uint8(dst), m, 0x0F, 0xB7)
	a.note("movzx", reg32(dst), wordMem{m})
}

// MovImm sets a register to a constant.
func (a *Asm) MovImm(dst Reg, v uint64) {
	if v>>32 == 0 {
		if dst >= R8 {
			a.rex(0, 0, 0, uint8(dst))
		}
		a.put(0xB8 | uint8(dst)&7)
		a.put32(int32(uint32(v)))
	} else {
		a.rex(1, 0, 0, uint8(dst))
		a.put(0xB8 | uint8(dst)&7)
		a.Bytes = binary.LittleEndian.AppendUint64(a.Bytes, v)
	}
	a.note("movabs", dst, wide(v))
}

// The arithmetic group: 64-bit add, or, and, sub, xor and compare share one encoding with a number
// for each.
const (
	aluAdd = 0
	aluOr  = 1
	aluAnd = 4
	aluSub = 5
	aluXor = 6
	aluCmp = 7
)

var aluNames = [...]string{"add", "or", "", "", "and", "sub", "xor", "cmp"}

func (a *Asm) alu(ext byte, dst Reg, src Operand) {
	switch s := src.(type) {
	case Reg:
		a.rr(ext<<3|1, s, dst)
	case Mem:
		a.rmem(1, uint8(dst), s, ext<<3|3)
		a.Count(code.LoadWord, 1)
	case Imm32:
		a.rex(1, 0, 0, uint8(dst))
		switch {
		case s >= -128 && s <= 127:
			a.put(0x83, 0xC0|ext<<3|uint8(dst)&7, byte(s))
		case dst == RAX:
			a.put(ext<<3 | 5)
			a.put32(int32(s))
		default:
			a.put(0x81, 0xC0|ext<<3|uint8(dst)&7)
			a.put32(int32(s))
		}
	default:
		a.Fail("%s from %s", aluNames[ext], textOf(src))
	}
	a.note(aluNames[ext], dst, src)
}

// Add adds a register, memory or Imm32 to a register (64 bits), and sets the flags, as do the next
// five.
func (a *Asm) Add(dst Reg, src Operand) { a.alu(aluAdd, dst, src) }

// Sub subtracts.
func (a *Asm) Sub(dst Reg, src Operand) { a.alu(aluSub, dst, src) }

// And is bitwise and.
func (a *Asm) And(dst Reg, src Operand) { a.alu(aluAnd, dst, src) }

// Or is bitwise or.
func (a *Asm) Or(dst Reg, src Operand) { a.alu(aluOr, dst, src) }

// Xor is bitwise exclusive or.
func (a *Asm) Xor(dst Reg, src Operand) { a.alu(aluXor, dst, src) }

// Cmp compares: the flags of dst - src.
func (a *Asm) Cmp(dst Reg, src Operand) { a.alu(aluCmp, dst, src) }

// Test sets the flags of x and y.
func (a *Asm) Test(x, y Reg) {
	a.rr(0x85, y, x)
	a.note("test", x, y)
}

// Dec subtracts one; the carry flag stays.
func (a *Asm) Dec(r Reg) {
	a.rex(1, 0, 0, uint8(r))
	a.put(0xFF, 0xC8|uint8(r)&7)
	a.note("dec", r)
}

// IMul multiplies dst by src, keeping the low 64 bits.
func (a *Asm) IMul(dst, src Reg) {
	a.rex(1, uint8(dst), 0, uint8(src))
	a.put(0x0F, 0xAF, 0xC0|uint8(dst)&7<<3|uint8(src)&7)
	a.note("imul", dst, src)
}

// Shl shifts left by a constant.
func (a *Asm) Shl(r Reg, n uint8) { a.shift(4, "shl", r, n) }

// Shr shifts right by a constant, zeros entering.
func (a *Asm) Shr(r Reg, n uint8) { a.shift(5, "shr", r, n) }

func (a *Asm) shift(ext byte, name string, r Reg, n uint8) {
	a.rex(1, 0, 0, uint8(r))
	if n == 1 {
		a.put(0xD1, 0xC0|ext<<3|uint8(r)&7)
	} else {
		a.put(0xC1, 0xC0|ext<<3|uint8(r)&7, n)
	}
	a.note(name, r, Imm(n))
}

// Lea computes the address of a memory operand.
func (a *Asm) Lea(dst Reg, m Mem) {
	a.rmem(1, uint8(dst), m, 0x8D)
	a.note("lea", dst, m)
}

// Push pushes a register. A generated function may have at most 64 bytes on the stack.
func (a *Asm) Push(r Reg) { a.stack(0x50, "push", r) }

// Pop pops a register.
func (a *Asm) Pop(r Reg) { a.stack(0x58, "pop", r) }

func (a *Asm) stack(opcode byte, name string, r Reg) {
	if r >= R8 {
		a.rex(0, 0, 0, uint8(r))
	}
	a.put(opcode | uint8(r)&7)
	a.note(name, r)
}

// Hint is a prefetch distance in the cache hierarchy.
type Hint uint8

// The prefetch hints.
const (
	NTA Hint = iota
	T0
	T1
	T2
)

// Prefetch asks for the cache line of a memory operand; it never faults.
func (a *Asm) Prefetch(h Hint, m Mem) {
	a.rmem(0, uint8(h), m, 0x0F, 0x18)
	a.Count(code.LoadWord, 1)
	a.note([...]string{"prefetchnta", "prefetcht0", "prefetcht1", "prefetcht2"}[h], m)
}

// KMovW sets a 16-bit opmask from a register.
func (a *Asm) KMovW(k Mask, r Reg) { a.kmov(k, r, 0, pNone, "kmovw", reg32(r)) }

// KMovD sets a 32-bit opmask from a register.
func (a *Asm) KMovD(k Mask, r Reg) { a.kmov(k, r, 0, pF2, "kmovd", reg32(r)) }

// KMovQ sets a 64-bit opmask from a register.
func (a *Asm) KMovQ(k Mask, r Reg) { a.kmov(k, r, 1, pF2, "kmovq", r) }

func (a *Asm) kmov(k Mask, r Reg, w, pp uint8, name string, shown Operand) {
	if a.level < AVX512 {
		a.Fail("%s needs AVX-512", name)
	}
	if w == 0 && r < R8 {
		a.put(0xC5, 0xF8|pp)
	} else {
		a.put(0xC4, 0xC1|(bit(uint8(r), 3)^1)<<5, w<<7|0x78|pp)
	}
	a.put(0x92, 0xC0|uint8(k)<<3|uint8(r)&7)
	a.note(name, k, shown)
}

// VZeroUpper clears the upper halves of the vector registers; every function that touched them ends
// with it.
func (a *Asm) VZeroUpper() {
	a.put(0xC5, 0xF8, 0x77)
	a.note("vzeroupper")
}

// Ret returns to the trampoline.
func (a *Asm) Ret() {
	a.put(0xC3)
	a.note("ret")
}
