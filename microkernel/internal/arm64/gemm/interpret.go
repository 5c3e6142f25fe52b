package gemm

import (
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// AssembleByRows assembles an SME int8 kernel that computes each outer product row by row with SDOT
// instead of SMOPA. For tests on emulators with an incorrect SMOPA.
func AssembleByRows(s kernel.Spec) ([]byte, error) {
	a := asm.New(asm.SME)
	emitSMEInt8(a, spec{s}, rowByRow)
	return a.Finish()
}

// rowByRow computes one outer product of bytes by dot products.
func rowByRow(e *smeInt8) {
	sum, row := smeD[0], smeD[1]
	for r := range e.s.MR {
		off := e.at(r)
		e.I(asm.ROW, sum, smeAll, smeSums, off)
		e.I(asm.ZDUPS, row, smeT, asm.Imm(r))
		e.I(asm.ZSDOT, sum, smeW, row)
		e.I(asm.TOROW, smeSums, off, smeAll, sum)
	}
}
