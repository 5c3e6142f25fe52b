package arm

import (
	"math"

	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/internal/kernel"
)

// Peaks is the compute roofs of the instruction set.
func (target) Peaks() map[string]kernel.Features {
	return map[string]kernel.Features{"f32": 0, "int8": kernel.HasDotProd, "bf16": kernel.HasArmBF16}
}

// Peak emits iterations of 24 accumulators that sums of products are added to, on values that are
// neither zero nor denormal. The best instruction that the features allow and kernels are made of
// is the roof.
func (target) Peak(typ string, f kernel.Features) (code []byte, ops int, err error) {
	if typ == "f32" && f.Has(kernel.HasSME) || typ == "int8" && f.Has(kernel.HasSMEInt8) {
		return smePeak(typ == "int8", f)
	}
	const accs, x, y = 24, a64.V(30), a64.V(31)
	op, perInstruction, level, xv, yv := a64.FMLA, 8, a64.Base, math.Float32bits(0.999), math.Float32bits(0.001)
	switch typ {
	case "bf16":
		// 0.996 times minus and plus 0.001
		op, perInstruction, level, xv, yv = a64.BFMMLA, 32, a64.BF16, 0x3f7f3f7f, 0xba833a83
	case "int8":
		op, perInstruction, level, xv, yv = a64.SDOT, 32, a64.DotProd, 0x5a3c6921, 0x1ee5372d
		if f.Has(kernel.HasI8MM) {
			op, perInstruction, level = a64.SMMLA, 64, a64.I8MM
		}
	}
	code, err = assemble(level, func(a *a64.Asm) {
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

// Reader emits passes over blocks, prefetching ahead or not; the arguments are those of every
// target.
func (target) Reader(ahead bool) ([]byte, error) {
	const p, passes = a64.X(4), a64.X(5)
	return assemble(a64.Base, func(a *a64.Asm) {
		for i := range 4 {
			a.Zero(a64.V(i))
		}
		a.I(a64.LDRX, passes, nArgs, a64.Imm(16))
		a.Loop(passes, func() {
			a.I(a64.LDRX, p, nArgs, a64.Imm(0))
			a.I(a64.LDRX, nCount, nArgs, a64.Imm(8))
			a.Loop(nCount, func() {
				for off := 0; off < kernel.ReaderBlock; off += 64 {
					if ahead {
						a.I(a64.PRFM1, p, a64.Imm(off+kernel.ReadAhead))
					}
					a.I(a64.LDPQ, a64.V(4), a64.V(5), p, a64.Imm(off))
					a.I(a64.LDPQ, a64.V(6), a64.V(7), p, a64.Imm(off+32))
					for i := range a64.V(4) {
						a.I(a64.EORV, i, i, 4+i)
					}
				}
				a.AddImm(p, p, kernel.ReaderBlock)
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

// smePeak is Peak on SME: outer products into the four tiles, of vectors as long as the kernels
// use.
func smePeak(bytes bool, f kernel.Features) (code []byte, ops int, err error) {
	const tiles, x, count = 4, a64.V(0), a64.X(1)
	lanes, perLane, op := 8, 2, a64.FMOPA
	if f.Has(kernel.HasSME512) {
		lanes = 16
	}
	if bytes {
		perLane, op = 8, a64.SMOPA
	}
	code, err = assemble(a64.SME, func(a *a64.Asm) {
		a.I(a64.SMSTART)
		a.MovImm(count, 4*lanes)
		a.I(a64.WHILELOB, smeAll, a64.ZR, count)
		a.I(a64.ZEROZA)
		a.I(a64.ZDUPB, x, a64.Imm(0x3F)) // 0.75 as float32
		a.I(a64.LDRX, count, nArgs, a64.Imm(0))
		a.Loop(count, func() {
			for i := range a64.Imm(tiles) {
				a.I(op, i, smeAll, smeAll, x, x)
			}
		})
		a.I(a64.SMSTOP)
		a.Ret()
	})
	return code, tiles * lanes * lanes * perLane, err
}
