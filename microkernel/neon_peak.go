package microkernel

import (
	"math"

	"sandwich/microkernel/internal/a64"
)

// neonPeakCode is peakCode for arm64: 24 accumulators that sums of products are added to, on values that are neither zero nor denormal.
// The best instruction that the features allow and kernels are made of is the roof.
func neonPeakCode(s PeakSpec, f Features) (code []byte, ops int, err error) {
	if s.Type == "f32" && f.Has(HasSME) || s.Type == "int8" && f.Has(HasSMEInt8) {
		return smePeakCode(s.Type == "int8", f)
	}
	const accs, x, y = 24, a64.V(30), a64.V(31)
	op, perInstruction, level, xv, yv := a64.FMLA, 8, a64.Base, math.Float32bits(0.999), math.Float32bits(0.001)
	switch s.Type {
	case "bf16":
		op, perInstruction, level, xv, yv = a64.BFMMLA, 32, a64.BF16, 0x3f7f3f7f, 0xba833a83 // 0.996 times minus and plus 0.001
	case "int8":
		op, perInstruction, level, xv, yv = a64.SDOT, 32, a64.DotProd, 0x5a3c6921, 0x1ee5372d
		if f.Has(HasI8MM) {
			op, perInstruction, level = a64.SMMLA, 64, a64.I8MM
		}
	}
	code, err = assembleNEON(level, func(a *a64.Asm) {
		for i := range accs {
			a.Zero(a64.V(i))
		}
		a.Splat(x, xv)
		a.Splat(y, yv)
		a.I(a64.LDRX, nCount, nArgs, a64.Imm(0))
		a.Loop(nCount, func() {
			for i := range accs {
				a.I(op, a64.V(i), x, y)
			}
		})
		a.Ret()
	})
	return code, accs * perInstruction, err
}

// neonReaderCode is readerCode for arm64; the arguments are the same.
func neonReaderCode() ([]byte, error) {
	const p, passes = a64.X(4), a64.X(5)
	return assembleNEON(a64.Base, func(a *a64.Asm) {
		for i := range 4 {
			a.Zero(a64.V(i))
		}
		a.I(a64.LDRX, passes, nArgs, a64.Imm(16))
		a.Loop(passes, func() {
			a.I(a64.LDRX, p, nArgs, a64.Imm(0))
			a.I(a64.LDRX, nCount, nArgs, a64.Imm(8))
			a.Loop(nCount, func() {
				for off := 0; off < readerBlock; off += 64 {
					a.I(a64.PRFM1, p, a64.Imm(off+readAhead))
					a.I(a64.LDPQ, a64.V(4), a64.V(5), p, a64.Imm(off))
					a.I(a64.LDPQ, a64.V(6), a64.V(7), p, a64.Imm(off+32))
					for i := range a64.V(4) {
						a.I(a64.EORV, i, i, 4+i)
					}
				}
				a.AddImm(p, p, readerBlock)
			})
		})
		a.I(a64.EORV, a64.V(0), a64.V(0), a64.V(1))
		a.I(a64.EORV, a64.V(2), a64.V(2), a64.V(3))
		a.I(a64.EORV, a64.V(0), a64.V(0), a64.V(2))
		a.I(a64.EXT, a64.V(1), a64.V(0), a64.V(0), a64.Imm(8))
		a.I(a64.EORV, a64.V(0), a64.V(0), a64.V(1))
		a.I(a64.STRD, a64.V(0), nArgs, a64.Imm(24))
		a.Ret()
	})
}
