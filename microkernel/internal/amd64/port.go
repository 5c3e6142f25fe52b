package amd64

import (
	"fmt"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
)

// portOp emits the instruction that represents a class. It has at most three register operands, and
// the registers it reads hold zeros.
type portOp func(a *asm.Asm, to, from asm.Vec, m asm.Mem)

// three returns an instruction of three registers.
func three(o *asm.Op) portOp {
	return func(a *asm.Asm, to, from asm.Vec, _ asm.Mem) { a.I(o, to, from, from) }
}

// portOp returns the instruction that represents a class, or nil if no instruction does
// or, for tiles, because Peak measures them.
func (t probes) portOp(c code.Class, f kernel.Features) portOp {
	wide := t.level == asm.AVX512
	switch c {
	case code.Multiply:
		return three(asm.VFMADD231PS)
	case code.Dot:
		switch {
		case wide && f.Has(kernel.HasVNNI):
			return three(asm.VPDPBUSD)
		case !wide && f.Has(kernel.HasAVXVNNI):
			return three(asm.VPDPBUSDV)
		}
		return three(asm.VPMADDUBSW)
	case code.DotPairs:
		if wide && f.Has(kernel.HasBF16) {
			return three(asm.VDPBF16PS)
		}
	case code.Logic:
		return three(asm.VPADDD)
	case code.Shift:
		return func(a *asm.Asm, to, from asm.Vec, _ asm.Mem) { a.I(asm.VPSRLD, to, from, asm.Imm(1)) }
	case code.Shuffle:
		return three(asm.VPSHUFB)
	case code.Convert:
		return func(a *asm.Asm, to, from asm.Vec, _ asm.Mem) { a.I(asm.VCVTDQ2PS, to, from) }
	case code.Load:
		return func(a *asm.Asm, to, _ asm.Vec, m asm.Mem) { a.I(asm.VMOVUPS, to, m) }
	case code.LoadWord:
		return func(a *asm.Asm, to, _ asm.Vec, m asm.Mem) { a.I(asm.VBROADCASTSS, to, m) }
	case code.Store:
		return func(a *asm.Asm, _, from asm.Vec, m asm.Mem) { a.I(asm.VMOVUPS, m, from) }
	}
	return nil
}

// Port emits n iterations of independent instructions that cycle through the classes. Arguments:
// [RDI] = n, [RDI+8] = memory.
func (t probes) Port(mix []code.Class, f kernel.Features) (machine []byte, n int, err error) {
	ops := make([]portOp, len(mix))
	for i, c := range mix {
		if ops[i] = t.portOp(c, f); ops[i] == nil {
			return nil, 0, fmt.Errorf("%s has no instruction of class %s", t.name, c)
		}
	}
	n = t.registers * 3 / 4 / len(mix) * len(mix)
	machine, err = t.assemble(func(a *asm.Asm) {
		for i := range t.registers {
			t.zero(a, i)
		}
		a.Mov(asm.RCX, asm.At(asm.RDI, 0))
		a.Mov(asm.RSI, asm.At(asm.RDI, 8))
		a.Align(64)
		loop := a.Here()
		for i := range n {
			ops[i%len(mix)](a, t.vec(i), t.vec(t.registers-1), asm.At(asm.RSI, 0))
		}
		a.Dec(asm.RCX)
		a.Jcc(asm.NotZero, loop)
		a.VZeroUpper()
		a.Ret()
	})
	return machine, n, err
}
