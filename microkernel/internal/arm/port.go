package arm

import (
	"fmt"

	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
)

// portEmit emits the instruction that stands for a class.
type portEmit func(a *a64.Asm, to, from a64.V, m a64.X)

// portOp is the instruction that stands for a class; nil for what has none here, and for outer
// products, which have a peak.
func portOp(c code.Class, f kernel.Features) (emit portEmit, level a64.Level) {
	type v = a64.V
	three := func(o *a64.Op) portEmit {
		return func(a *a64.Asm, to, from v, _ a64.X) { a.I(o, to, from, from) }
	}
	switch c {
	case code.Multiply:
		return three(a64.FMLA), a64.Base
	case code.Dot:
		switch {
		case f.Has(kernel.HasI8MM):
			return three(a64.SMMLA), a64.I8MM
		case f.Has(kernel.HasDotProd):
			return three(a64.SDOT), a64.DotProd
		}
		return three(a64.SMULL), a64.Base
	case code.DotPairs:
		if f.Has(kernel.HasArmBF16) {
			return three(a64.BFMMLA), a64.BF16
		}
	case code.Logic:
		return three(a64.ADDV4S), a64.Base
	case code.Shift:
		return func(a *a64.Asm, to, from v, _ a64.X) { a.I(a64.USHR4S, to, from, a64.Imm(1)) }, a64.Base
	case code.Shuffle:
		return three(a64.TBL), a64.Base
	case code.Convert:
		return func(a *a64.Asm, to, from v, _ a64.X) { a.I(a64.SCVTF, to, from) }, a64.Base
	case code.Load:
		return func(a *a64.Asm, to, _ v, m a64.X) { a.I(a64.LDRQ, to, m, a64.Imm(0)) }, a64.Base
	case code.LoadWord:
		return func(a *a64.Asm, to, _ v, m a64.X) { a.I(a64.LD1R, to, m) }, a64.Base
	case code.Store:
		return func(a *a64.Asm, _, from v, m a64.X) { a.I(a64.STRQ, from, m, a64.Imm(0)) }, a64.Base
	}
	return nil, a64.Base
}

// Port emits iterations of independent instructions of classes in turn.
func (target) Port(mix []code.Class, f kernel.Features) (machine []byte, n int, err error) {
	const last, memory = a64.V(31), a64.X(4)
	ops, level := make([]portEmit, len(mix)), a64.Base
	for i, c := range mix {
		emit, needs := portOp(c, f)
		if emit == nil {
			return nil, 0, fmt.Errorf("no instruction of neon stands for %s", c)
		}
		ops[i], level = emit, level|needs
	}
	n = 24 / len(mix) * len(mix)
	machine, err = assemble(level, func(a *a64.Asm) {
		for i := range a64.V(32) {
			a.Zero(i)
		}
		a.I(a64.LDRX, nCount, nArgs, a64.Imm(0))
		a.I(a64.LDRX, memory, nArgs, a64.Imm(8))
		a.Loop(nCount, func() {
			for i := range a64.V(n) {
				ops[int(i)%len(mix)](a, i, last, memory)
			}
		})
		a.Ret()
	})
	return machine, n, err
}
