// Package asm encodes x86-64 instructions: the VEX and EVEX vector instructions that the generated
// kernels are made of, and the few scalar ones that drive their loops. Operands are written in
// Intel order, destination first. It is plain Go and builds everywhere; nothing here runs what it
// encodes.
package asm

import (
	"fmt"
	"strconv"
)

// Operand is anything an instruction may name: Reg, Vec, Mask, Mem or Imm.
type Operand interface{ operand() }

func (Reg) operand()     {}
func (Vec) operand()     {}
func (Mask) operand()    {}
func (Mem) operand()     {}
func (Imm) operand()     {}
func (Imm32) operand()   {}
func (wide) operand()    {}
func (reg32) operand()   {}
func (wordMem) operand() {}

// textOf spells an operand. A switch over the types rather than a method of the interface lets the
// compiler keep the operands of an instruction on the stack.
func textOf(x Operand) string {
	switch x := x.(type) {
	case Reg:
		return x.text()
	case Vec:
		return x.text()
	case Mask:
		return x.text()
	case Mem:
		return x.text()
	case Imm:
		return x.text()
	case Imm32:
		return x.text()
	case wide:
		return x.text()
	case reg32:
		return x.text()
	case wordMem:
		return x.text()
	case Tile:
		return x.text()
	}
	return "?"
}

// Reg is a 64-bit general purpose register.
type Reg uint8

// The general purpose registers, numbered as the instruction encoding numbers them.
const (
	RAX Reg = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	noReg Reg = 0xff // no base or no index in a Mem
)

var (
	regNames = [...]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
		"r13", "r14", "r15"}
	reg32Names = [...]string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d",
		"r12d", "r13d", "r14d", "r15d"}
)

func (r Reg) text() string { return regNames[r&15] }

// Mask is an AVX-512 opmask register, k0 to k7. K0 cannot mask an instruction.
type Mask uint8

// The opmask registers.
const (
	K0 Mask = iota
	K1
	K2
	K3
	K4
	K5
	K6
	K7
)

func (k Mask) text() string { return fmt.Sprintf("k%d", uint8(k)) }

// Imm is an 8-bit immediate, the last operand of the instructions that take one.
type Imm uint8

func (i Imm) text() string { return fmt.Sprintf("%d", uint8(i)) }

// length of a vector register as the L and L'L fields encode it.
type length uint8

const (
	l128 length = iota
	l256
	l512
)

func (l length) bytes() int32 { return 16 << l }

// Vec is a vector register at one of its three lengths, with an optional opmask when it is a
// destination.
type Vec struct {
	n    uint8
	l    length
	mask Mask
	zero bool
}

// X returns the 128-bit register n (0 to 31; 16 and up need AVX-512).
func X(n int) Vec { return Vec{n: uint8(n), l: l128} }

// Y returns the 256-bit register n (0 to 31; 16 and up need AVX-512).
func Y(n int) Vec { return Vec{n: uint8(n), l: l256} }

// Z returns the 512-bit register n (0 to 31).
func Z(n int) Vec { return Vec{n: uint8(n), l: l512} }

// K returns the register as a destination merged under mask k: lanes with a zero bit keep their
// value.
func (v Vec) K(k Mask) Vec { v.mask, v.zero = k, false; return v }

// KZ returns the register as a destination zeroed under mask k: lanes with a zero bit become zero.
func (v Vec) KZ(k Mask) Vec { v.mask, v.zero = k, true; return v }

// X returns the low 128 bits of the register.
func (v Vec) X() Vec { return Vec{n: v.n, l: l128} }

// Y returns the low 256 bits of the register.
func (v Vec) Y() Vec { return Vec{n: v.n, l: l256} }

// Z returns the register at 512 bits.
func (v Vec) Z() Vec { return Vec{n: v.n, l: l512} }

// Bytes returns the length of the register in bytes: 16, 32 or 64.
func (v Vec) Bytes() int { return int(v.l.bytes()) }

func (v Vec) text() string {
	s := fmt.Sprintf("%cmm%d", "xyz"[v.l], v.n)
	if v.mask != K0 {
		s += fmt.Sprintf(" {k%d}", uint8(v.mask))
	}
	if v.zero {
		s += " {z}"
	}
	return s
}

// Mem is a memory operand: base + index*scale + displacement, or a constant of the code's own pool.
type Mem struct {
	base, index Reg
	scale       uint8
	bcast       bool
	mask        Mask
	lanes       uint8 // lanes of an embedded broadcast, for the listing
	pool        int32 // 1 + offset of a pool constant; 0 for an ordinary operand
	disp        int32
}

// At returns the operand [base + disp].
func At(base Reg, disp int) Mem {
	return Mem{base: base, index: noReg, scale: 1, disp: int32(disp)}
}

// AtIndex returns the operand [base + index*scale + disp]; scale is 1, 2, 4 or 8 and index is not
// RSP.
func AtIndex(base, index Reg, scale, disp int) Mem {
	return Mem{base: base, index: index, scale: uint8(scale), disp: int32(disp)}
}

// Off returns the operand moved by disp bytes.
func (m Mem) Off(disp int) Mem { m.disp += int32(disp); return m }

// Bcast returns the operand as an embedded broadcast: one element is loaded and repeated in every
// lane (AVX-512).
func (m Mem) Bcast() Mem { m.bcast = true; return m }

// K returns the operand as a store destination under mask k.
func (m Mem) K(k Mask) Mem { m.mask = k; return m }

func (m Mem) text() string {
	s := "["
	if m.pool != 0 {
		s += "rip + pool" + fmt.Sprintf("%d", m.pool-1)
	} else {
		s += m.base.text()
		if m.index != noReg {
			s += fmt.Sprintf(" + %d*%s", m.scale, m.index.text())
		}
	}
	s += fmt.Sprintf(" + %d]", m.disp)
	if m.bcast {
		s = fmt.Sprintf("dword ptr %s{1to%d}", s, m.lanes)
	}
	if m.mask != K0 {
		s += fmt.Sprintf(" {k%d}", uint8(m.mask))
	}
	return s
}

// wide, reg32 and wordMem exist for listings only: a 64-bit constant, a register by its 32-bit
// name, a 16-bit operand.
type wide uint64

func (w wide) text() string { return strconv.FormatUint(uint64(w), 10) }

type reg32 Reg

func (r reg32) text() string { return reg32Names[r&15] }

type wordMem struct{ Mem }

func (w wordMem) text() string { return "word ptr " + w.Mem.text() }

// Imm32 is an immediate of the scalar instructions, sign-extended to 64 bits.
type Imm32 int32

func (i Imm32) text() string { return itoa(int64(i)) }

// Tile is a tile register of AMX, tmm0 to tmm7. What it holds, rows of up to 64 bytes, is set by
// LdTileCfg.
type Tile uint8

func (Tile) operand()       {}
func (t Tile) text() string { return fmt.Sprintf("tmm%d", uint8(t)) }
func itoa(v int64) string   { return strconv.FormatInt(v, 10) }
