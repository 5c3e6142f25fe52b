package x86

import (
	"sandwich/microkernel/internal/asm"
	"sandwich/microkernel/internal/kernel"
)

// What a test needs that runs kernels of AMX where there is none, with the tile instructions
// interpreted.

// AMXRows is the rows of a tile register, AMXSubBlocks the sub-blocks whose weights a call may keep
// as bytes.
const (
	AMXRows      = amxRows
	AMXSubBlocks = amxSubBlocks
)

// AMXArgs is the arguments of a tile function of Dot AMX.
type AMXArgs struct{ amxKept }

// Aim fills them in for a call, and returns those that all tile functions have.
func (a *AMXArgs) Aim(k *kernel.Tiles, g *kernel.GemmArgs) *kernel.TileArgs {
	aimAMX(k, &a.amxArgs, g)
	return &a.TileArgs
}

// EmitAMX generates a tile of Dot AMX.
func EmitAMX(a *asm.Asm, s kernel.Spec) {
	_, emit := newAMX(a, spec{s})
	emit()
}
