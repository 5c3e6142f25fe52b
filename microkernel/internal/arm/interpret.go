package arm

import (
	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/internal/kernel"
)

// AssembleByRows is Assemble for a kernel of outer products of bytes with dot products in their place: for tests on emulators that
// do not know SMOPA, or get it wrong.
func AssembleByRows(s kernel.Spec) ([]byte, error) {
	return assemble(a64.SME, func(a *a64.Asm) { emitSMEInt8With(a, spec{s}, rowByRow) })
}

// rowByRow does with dot products what one outer product of bytes does.
func rowByRow(e *smeInt8) {
	sum, row := smeD[0], smeD[1]
	for r := range e.s.MR {
		off := e.at(r)
		e.I(a64.ROW, sum, smeAll, smeSums, off)
		e.I(a64.ZDUPS, row, smeT, a64.Imm(r))
		e.I(a64.ZSDOT, sum, smeW, row)
		e.I(a64.TOROW, smeSums, off, smeAll, sum)
	}
}
