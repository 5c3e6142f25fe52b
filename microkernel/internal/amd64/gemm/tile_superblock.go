package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
)

// startGroups is start for the chain "group": C is zeroed unless the chains continue. The
// accumulators are the sums of a block of 256 k and C holds the chains, because registers for both
// and the integers would leave no tile. C is read and written once per 64 dot products.
func (e *int8Tile) startGroups() {
	var t kernel.TileArgs
	for _, acc := range e.acc {
		e.zero(acc)
	}
	ready := e.NewLabel()
	e.Mov(e.cRow, e.arg(unsafe.Offsetof(t.Load)))
	e.Test(e.cRow, e.cRow)
	e.Jcc(asm.NotZero, ready)
	e.eachC(e.cRow, e.storeTo)
	e.Bind(ready)
}

// endGroup adds the sums of the finished group, times the scale of its activations, to C and
// starts the next group. The row pointers of A are after the group's last block.
func (e *int8Tile) endGroup() {
	const scale = kernel.ActScale - kernel.ActQ8Bytes
	c := e.x[0]
	e.eachC(e.cRow, func(r, j int, m asm.Mem, masked *asm.Vec) {
		acc := e.acc[r*e.v+j]
		e.loadFrom(c, j, m, masked)
		if e.wide() {
			e.I(asm.VFMADD231PS, c, acc, e.a(r, scale).Bcast())
		} else {
			e.I(asm.VBROADCASTSS, e.t[0], e.a(r, scale))
			e.I(asm.VFMADD231PS, c, acc, e.t[0])
		}
		e.storeVec(c, j, m, masked)
	})
	for _, acc := range e.acc {
		e.zero(acc)
	}
}
