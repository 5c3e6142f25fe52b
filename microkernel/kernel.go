package microkernel

import (
	"runtime"

	"sandwich/microkernel/internal/kernel"
)

// Kernel is a generated register-tile kernel. It is immutable and safe for concurrent use.
type Kernel struct {
	tiles  kernel.Tiles // without functions: plain Go
	target *kernel.Target
}

// Spec returns the description the kernel was built from.
func (k *Kernel) Spec() Spec { return k.tiles.Spec }

// Native reports whether the kernel is generated code rather than its plain-Go oracle.
func (k *Kernel) Native() bool { return k.tiles.Funcs != nil }

// Run computes one call. It allocates nothing. The caller bounds M and K so that a call lasts at
// most about 200 microseconds.
//
// Rows are divided into tiles of nearly equal height: 16 rows under MR 14 run as 8 and 8, not as
// 14 and 2.
func (k *Kernel) Run(g *GemmArgs) {
	if k.tiles.Funcs == nil {
		RunRef(k.tiles.Spec, g)
		return
	}
	if g.M <= 0 || g.N <= 0 {
		return
	}
	if k.tiles.Plain() {
		k.tiles.RunPlain(g) // without a copy
	} else {
		k.target.GEMM.Run(&k.tiles, *g)
	}
	runtime.KeepAlive(g)
}
