package arm64

import (
	"fmt"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
)

// portEmit emits the instruction that represents a class.
type portEmit func(a *asm.Asm, to, from asm.V, m asm.X)

// portOp returns the instruction that represents a class and the extension it needs, or nil if none
// does. Outer products have none here: Peak measures them.
func portOp(c code.Class, f kernel.Features) (emit portEmit, level asm.Level) {
	type v = asm.V
	three := func(o *asm.Op) portEmit {
		return func(a *asm.Asm, to, from v, _ asm.X) { a.I(o, to, from, from) }
	}
	switch c {
	case code.Multiply:
		return three(asm.FMLA), asm.Base
	case code.Dot:
		switch {
		case f.Has(kernel.HasI8MM):
			return three(asm.SMMLA), asm.I8MM
		case f.Has(kernel.HasDotProd):
			return three(asm.SDOT), asm.DotProd
		}
		return three(asm.SMULL), asm.Base
	case code.DotPairs:
		if f.Has(kernel.HasArmBF16) {
			return three(asm.BFMMLA), asm.BF16
		}
	case code.Logic:
		return three(asm.ADDV4S), asm.Base
	case code.Shift:
		return func(a *asm.Asm, to, from v, _ asm.X) { a.I(asm.USHR4S, to, from, asm.Imm(1)) }, asm.Base
	case code.Shuffle:
		return three(asm.TBL), asm.Base
	case code.Convert:
		return func(a *asm.Asm, to, from v, _ asm.X) { a.I(asm.SCVTF, to, from) }, asm.Base
	case code.Load:
		return func(a *asm.Asm, to, _ v, m asm.X) { a.I(asm.LDRQ, to, m, asm.Imm(0)) }, asm.Base
	case code.LoadWord:
		return func(a *asm.Asm, to, _ v, m asm.X) { a.I(asm.LD1R, to, m) }, asm.Base
	case code.Store:
		return func(a *asm.Asm, _, from v, m asm.X) { a.I(asm.STRQ, from, m, asm.Imm(0)) }, asm.Base
	}
	return nil, asm.Base
}

// Port emits iterations of independent instructions that cycle through the classes.
func (probes) Port(mix []code.Class, f kernel.Features) (machine []byte, n int, err error) {
	const last, memory = asm.V(31), asm.X(4)
	ops, level := make([]portEmit, len(mix)), asm.Base
	for i, c := range mix {
		emit, needs := portOp(c, f)
		if emit == nil {
			return nil, 0, fmt.Errorf("neon has no instruction of class %s", c)
		}
		ops[i], level = emit, level|needs
	}
	n = 24 / len(mix) * len(mix)
	machine, err = assemble(level, func(a *asm.Asm) {
		for i := range asm.V(32) {
			a.Zero(i)
		}
		a.I(asm.LDRX, nCount, nArgs, asm.Imm(0))
		a.I(asm.LDRX, memory, nArgs, asm.Imm(8))
		a.Loop(nCount, func() {
			for i := range asm.V(n) {
				ops[int(i)%len(mix)](a, i, last, memory)
			}
		})
		a.Ret()
	})
	return machine, n, err
}
