package microkernel

import (
	"math"

	"sandwich/microkernel/internal/asm"
)

// peakCode emits n iterations of independent multiply-adds on 12 (AVX2) or 24 (AVX-512) accumulators, more than latency times ports of any core
// so far, with the factors in registers, on values that are neither zero nor denormal (the clock of a core depends on them). Arguments: [RDI] = n.
func peakCode(s PeakSpec, f Features) (code []byte, ops int, err error) {
	if s.ISA == NEON {
		return neonPeakCode(s, f)
	}
	if s == (PeakSpec{AVX512, "int8"}) && f.Has(HasAMX) {
		return amxPeakCode()
	}
	vec, regs := asm.Y, 16
	if s.ISA == AVX512 {
		vec, regs = asm.Z, 32
	}
	accs := regs * 3 / 4
	op, perLane := asm.VFMADD213PS, 2 // acc = acc*x + y, which stays near 1
	x, y := math.Float32bits(0.999), math.Float32bits(0.001)
	switch s {
	case PeakSpec{AVX512, "int8"}:
		op, perLane, x, y = asm.VPDPBUSD, 8, 0x5a3c6921, 0x1ee5372d
	case PeakSpec{AVX2, "int8"}:
		op, perLane, x, y = asm.VPDPBUSDV, 8, 0x5a3c6921, 0x1ee5372d
	case PeakSpec{AVX512, "bf16"}:
		op, perLane, x, y = asm.VDPBF16PS, 4, 0x3f7f3f7f, 0xba833a83 // 0.996 times minus and plus 0.001
	}
	code, err = assemble(s.ISA, func(a *asm.Asm) {
		for i := range accs {
			zeroVec(a, s.ISA, i)
		}
		a.I(asm.VPBROADCASTD, vec(regs-2), a.ConstU32(x))
		a.I(asm.VPBROADCASTD, vec(regs-1), a.ConstU32(y))
		a.Mov(asm.RCX, asm.At(asm.RDI, 0))
		a.Align(64)
		loop := a.Here()
		for i := range accs {
			a.I(op, vec(i), vec(regs-2), vec(regs-1))
		}
		a.Dec(asm.RCX)
		a.Jcc(asm.NotZero, loop)
		a.VZeroUpper()
		a.Ret()
	})
	return code, accs * s.ISA.Lanes() * perLane, err
}

// zeroVec clears vector register i.
func zeroVec(a *asm.Asm, isa ISA, i int) {
	if isa == AVX512 {
		a.I(asm.VPXORD, asm.Z(i), asm.Z(i), asm.Z(i))
	} else {
		a.I(asm.VPXOR, asm.Y(i), asm.Y(i), asm.Y(i))
	}
}

// readAhead is the prefetch distance of the reader in bytes: far enough for the latency of memory at the rate one core reads.
const readAhead = 4096

// readerCode emits passes over blocks of readerBlock bytes that fold them into four accumulators with exclusive or, prefetching ahead: prefetches past the
// end are harmless. Arguments: [RDI] = pointer, [RDI+8] = blocks, [RDI+16] = passes, [RDI+24] = result.
func readerCode(isa ISA) ([]byte, error) {
	if isa == NEON {
		return neonReaderCode()
	}
	vec, xor := asm.Y, asm.VPXOR
	if isa == AVX512 {
		vec, xor = asm.Z, asm.VPXORD
	}
	size := isa.Lanes() * 4
	return assemble(isa, func(a *asm.Asm) {
		for i := range 4 {
			zeroVec(a, isa, i)
		}
		a.Mov(asm.RDX, asm.At(asm.RDI, 16))
		pass := a.Here()
		a.Mov(asm.RSI, asm.At(asm.RDI, 0))
		a.Mov(asm.RCX, asm.At(asm.RDI, 8))
		a.Align(64)
		loop := a.Here()
		for off := 0; off < readerBlock; off += size {
			if off%64 == 0 {
				a.Prefetch(asm.T0, asm.At(asm.RSI, off+readAhead))
			}
			acc := off / size % 4
			a.I(xor, vec(acc), vec(acc), asm.At(asm.RSI, off))
		}
		a.Add(asm.RSI, asm.Imm32(readerBlock))
		a.Dec(asm.RCX)
		a.Jcc(asm.NotZero, loop)
		a.Dec(asm.RDX)
		a.Jcc(asm.NotZero, pass)
		for i := range 3 {
			a.I(xor, vec(0), vec(0), vec(i+1))
		}
		foldVec(a, isa)
		a.I(asm.VMOVQ, asm.At(asm.RDI, 24), asm.X(0))
		a.VZeroUpper()
		a.Ret()
	})
}

// foldVec folds vector register 0 into its low 64 bits with exclusive or.
func foldVec(a *asm.Asm, isa ISA) {
	if isa == AVX512 {
		a.I(asm.VEXTRACTI64X4, asm.Y(1), asm.Z(0), asm.Imm(1))
		a.I(asm.VPXOR, asm.Y(0), asm.Y(0), asm.Y(1))
	}
	a.I(asm.VEXTRACTI128, asm.X(1), asm.Y(0), asm.Imm(1))
	a.I(asm.VPXOR, asm.X(0), asm.X(0), asm.X(1))
	a.I(asm.VPSHUFD, asm.X(1), asm.X(0), asm.Imm(0xEE)) // the high half
	a.I(asm.VPXOR, asm.X(0), asm.X(0), asm.X(1))
}
