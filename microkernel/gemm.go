package microkernel

import (
	"fmt"
	"runtime"
	"unsafe"

	"sandwich/microkernel/internal/asm"
	"sandwich/microkernel/internal/jit"
)

// GemmArgs is one call of a kernel: C[0:M, 0:N] = A[0:M, K0:K1] times the transpose of W[0:N, K0:K1], for one group of panels.
//
// A points at k = 0 of the first row: float32, ActQ8 blocks for ComputeInt8, bfloat16 for ComputeBF16. B points at k = 0 of the first panel of the
// group. C is float32. Nothing is written outside the M rows and N columns, and nothing is read outside the operands.
type GemmArgs struct {
	A       unsafe.Pointer
	AStride int // bytes between rows
	B       unsafe.Pointer
	BStride int // bytes between panels
	C       unsafe.Pointer
	CStride int // bytes between rows

	M, N   int // rows, any; columns, 1 to NR
	K0, K1 int // multiples of the weight type's KStep; K1 may also be the end of an odd K
	// Accumulate continues the chains from the stored C. A k-block after the first sets it; the first starts from zero.
	Accumulate bool
	// Next, where it is known, is where the block of weights begins that is multiplied after this one, at its k and with the same
	// distance between panels: kernels that prefetch do so there. It need not be mapped.
	Next unsafe.Pointer
}

// Kernel is a generated register-tile kernel. It is immutable and safe for concurrent use.
type Kernel struct {
	spec  Spec
	tiles []jit.Func // [rows-1][panels-1]: a function for every smaller tile too, for the tails; nil: plain Go
}

// Spec is what the kernel was built from.
func (k *Kernel) Spec() Spec { return k.spec }

// Native says that the kernel is generated code rather than its plain-Go oracle.
func (k *Kernel) Native() bool { return k.tiles != nil }

// Run computes one call. It allocates nothing. The caller bounds M and K so that it lasts at most about 200 microseconds.
//
// Rows are divided into tiles of nearly equal height: 16 rows under MR 14 run as 8 and 8, not as 14 and 2.
func (k *Kernel) Run(g *GemmArgs) {
	if k.tiles == nil {
		RunRef(k.spec, g)
		return
	}
	if g.M <= 0 || g.N <= 0 {
		return
	}
	if k.spec.Dot == AMX {
		k.runAMX(g)
		return
	}
	panels := (g.N + PanelWidth - 1) / PanelWidth
	t := k.tileArgs(g, g.N-(panels-1)*PanelWidth)
	k.runRows(&t, g, panels)
	runtime.KeepAlive(g)
}

// runRows divides the rows of a call into tiles.
func (k *Kernel) runRows(t *tileArgs, g *GemmArgs, panels int) {
	for _, higher := range [...]bool{true, false} {
		if f := k.rowTiles(t, g, panels, higher); f.Valid() {
			f.Call(unsafe.Pointer(t))
		}
	}
}

// rowTiles is the function that runs the row tiles which have one row more than the others, or these others after them, and points t at them; the
// zero Func where there are none.
func (k *Kernel) rowTiles(t *tileArgs, g *GemmArgs, panels int, higher bool) jit.Func {
	s := &k.spec
	tiles := (g.M + s.MR - 1) / s.MR
	rows, more := g.M/tiles, g.M%tiles
	n := tiles - more
	if higher {
		rows, n = rows+1, more
		t.period, t.tick = uintptr(tiles), uintptr(tiles)
	}
	if n == 0 {
		return jit.Func{}
	}
	t.tiles = uintptr(n)
	t.aStep, t.cStep = uintptr(rows*g.AStride), uintptr(rows*g.CStride)
	return k.tiles[(rows-1)*(s.NR/PanelWidth)+panels-1]
}

// tileArgs translates the call; last is the number of columns in the last panel.
func (k *Kernel) tileArgs(g *GemmArgs, last int) tileArgs {
	s := &k.spec
	t := tileArgs{
		a: uintptr(g.A), lda: uintptr(g.AStride),
		b: uintptr(g.B) + uintptr(PanelOffset(s.B, g.K0)), bStride: uintptr(g.BStride),
		c: uintptr(g.C), ldc: uintptr(g.CStride),
		mask: 1<<last - 1, columns: uintptr(last),
	}
	t.a += uintptr(s.Compute.ActRowBytes(g.K0))
	n := g.K1 - g.K0
	turn := s.turn()
	t.main = uintptr(n / turn)
	s.aim(&t, g)
	t.rest = uintptr(n % turn)
	switch {
	case s.Compute == ComputeBF16:
		t.rest = (t.rest + 1) / 2 // the last pair of an odd K is whole
	case s.B == BF16:
		t.odd = t.rest % 2
		t.rest /= 2
	}
	if g.Accumulate {
		t.load = 1
	}
	if s.ISA == AVX2 {
		for i := range last {
			t.lanes[i] = -1
		}
	}
	return t
}

// aim says where the kernel prefetches.
func (s *Spec) aim(t *tileArgs, g *GemmArgs) {
	t.next = uintptr(g.Next)
	if g.Next == nil {
		t.next = t.b // spread: the block at hand, which costs nothing more
	}
	t.behind = min(t.main, uintptr(s.turnsAhead()))
	t.ahead = t.main - t.behind
	if g.Next != nil {
		t.jump = t.next - t.b - t.main*uintptr(PanelOffset(s.B, s.turn()))
	}
}

// Assemble generates the machine code of one tile of the spec's size, on any host: equal specs give equal bytes.
func (s Spec) Assemble() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.ISA == NEON {
		code, err := s.assembleNEON()
		if err != nil {
			return nil, fmt.Errorf("kernel spec %s: %w", s, err)
		}
		return code, nil
	}
	emit := emitFloat
	switch {
	case s.Dot == AMX:
		emit = emitAMX
	case s.Compute == ComputeInt8:
		emit = emitInt8
	case s.Compute == ComputeBF16:
		emit = emitBF16
	case s.B.Quantized():
		emit = emitQuant
	}
	code, err := assemble(s.ISA, func(a *asm.Asm) { emit(a, s) })
	if err != nil {
		return nil, fmt.Errorf("kernel spec %s: %w", s, err)
	}
	return code, nil
}

// Build generates a kernel that this host can run. Where executable memory is forbidden, and under the race detector, the
// kernel is its plain-Go oracle.
func Build(s Spec) (*Kernel, error) {
	ks, err := BuildAll([]Spec{s})
	if err != nil {
		return nil, err
	}
	return ks[0], nil
}
