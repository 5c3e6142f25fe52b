package arm64

import (
	"math"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// probes implements kernel.ProbeGenerator.
type probes struct{}

// Registers of the loops.
const (
	nArgs  = asm.X(0)
	nCount = asm.X(1)
	smeAll = asm.P(1)
)

// assemble returns the code that emit emits.
func assemble(level asm.Level, emit func(a *asm.Asm)) ([]byte, error) {
	a := asm.New(level)
	emit(a)
	return a.Finish()
}

// Peak emits a loop of multiply-adds into 24 accumulators, of values that are neither zero nor
// subnormal, by the fastest instruction that kernels use with these features.
func (probes) Peak(typ string, f kernel.Features) (code []byte, ops int, err error) {
	if typ == "f32" && f.Has(kernel.HasSME) || typ == "int8" && f.Has(kernel.HasSMEInt8) {
		return smePeak(typ == "int8", f)
	}
	const accs, x, y = 24, asm.V(30), asm.V(31)
	op, perInstruction, level, xv, yv := asm.FMLA, 8, asm.Base, math.Float32bits(0.999), math.Float32bits(0.001)
	switch typ {
	case "bf16":
		// 0.996 times minus and plus 0.001
		op, perInstruction, level, xv, yv = asm.BFMMLA, 32, asm.BF16, 0x3f7f3f7f, 0xba833a83
	case "int8":
		op, perInstruction, level, xv, yv = asm.SDOT, 32, asm.DotProd, 0x5a3c6921, 0x1ee5372d
		if f.Has(kernel.HasI8MM) {
			op, perInstruction, level = asm.SMMLA, 64, asm.I8MM
		}
	}
	code, err = assemble(level, func(a *asm.Asm) {
		for i := range accs {
			a.Zero(asm.V(i))
		}
		a.Splat(x, xv)
		a.Splat(y, yv)
		a.I(asm.LDRX, nCount, nArgs, asm.Imm(0))
		a.Loop(nCount, func() {
			for i := range accs {
				a.I(op, asm.V(i), x, y)
			}
		})
		a.Ret()
	})
	return code, accs * perInstruction, err
}

// Reader emits passes over blocks that combine them by exclusive or.
func (probes) Reader(prefetch bool) ([]byte, error) {
	const p, passes = asm.X(4), asm.X(5)
	return assemble(asm.Base, func(a *asm.Asm) {
		for i := range 4 {
			a.Zero(asm.V(i))
		}
		a.I(asm.LDRX, passes, nArgs, asm.Imm(16))
		a.Loop(passes, func() {
			a.I(asm.LDRX, p, nArgs, asm.Imm(0))
			a.I(asm.LDRX, nCount, nArgs, asm.Imm(8))
			a.Loop(nCount, func() {
				for off := 0; off < kernel.ReaderBlock; off += 64 {
					if prefetch {
						a.I(asm.PRFM1, p, asm.Imm(off+kernel.ReadAhead))
					}
					a.I(asm.LDPQ, asm.V(4), asm.V(5), p, asm.Imm(off))
					a.I(asm.LDPQ, asm.V(6), asm.V(7), p, asm.Imm(off+32))
					for i := range asm.V(4) {
						a.I(asm.EORV, i, i, 4+i)
					}
				}
				a.AddImm(p, p, kernel.ReaderBlock)
			})
		})
		a.I(asm.EORV, asm.V(0), asm.V(0), asm.V(1))
		a.I(asm.EORV, asm.V(2), asm.V(2), asm.V(3))
		a.I(asm.EORV, asm.V(0), asm.V(0), asm.V(2))
		a.I(asm.EXT, asm.V(1), asm.V(0), asm.V(0), asm.Imm(8))
		a.I(asm.EORV, asm.V(0), asm.V(0), asm.V(1))
		a.I(asm.STRD, asm.V(0), nArgs, asm.Imm(24))
		a.Ret()
	})
}

// smePeak returns Peak for SME: outer products into the four tiles, of vectors as long as kernels
// use.
func smePeak(bytes bool, f kernel.Features) (code []byte, ops int, err error) {
	const tiles, x, count = 4, asm.V(0), asm.X(1)
	lanes, perLane, op := 8, 2, asm.FMOPA
	if f.Has(kernel.HasSME512) {
		lanes = 16
	}
	if bytes {
		perLane, op = 8, asm.SMOPA
	}
	code, err = assemble(asm.SME, func(a *asm.Asm) {
		a.I(asm.SMSTART)
		a.MovImm(count, 4*lanes)
		a.I(asm.WHILELOB, smeAll, asm.ZR, count)
		a.I(asm.ZEROZA)
		a.I(asm.ZDUPB, x, asm.Imm(0x3F)) // 0.75 as float32
		a.I(asm.LDRX, count, nArgs, asm.Imm(0))
		a.Loop(count, func() {
			for i := range asm.Imm(tiles) {
				a.I(op, i, smeAll, smeAll, x, x)
			}
		})
		a.I(asm.SMSTOP)
		a.Ret()
	})
	return code, tiles * lanes * lanes * perLane, err
}
