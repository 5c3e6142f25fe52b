package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// TestSchemesGiveEqualBits checks that every polymerization scheme gives the bits of the oracle.
func TestSchemesGiveEqualBits(t *testing.T) {
	isa := microkernel.Host().Best()
	kernels, err := microkernel.NewVec(isa)
	if err != nil {
		t.Fatal(err)
	}
	spec := microkernel.Spec{ISA: isa, MR: 4, NR: 16, KU: 4}
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	const m, n, k = 37, 200, 96
	layout := microkernel.Layout{N: n, K: k}
	rng := rand.New(rand.NewPCG(1, 2))
	floats := func(count int) (*mem.Buffer, []float32) {
		b, err := mem.Alloc(4*count, mem.Options{Node: mem.AnyNode})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Free() })
		x := b.Float32s()[:count]
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return b, x
	}
	weights, _ := floats(layout.Bytes() / 4)
	a, _ := floats(m * k)
	want, wantC := floats(m * n)
	for p := range layout.Panels() {
		microkernel.RunRef(spec, &microkernel.GemmArgs{A: a.Pointer(), AStride: 4 * k, B: unsafe.Add(weights.Pointer(),
			p*layout.PanelStride()),
			BStride: layout.PanelStride(), C: unsafe.Add(want.Pointer(), 64*p), CStride: 4 * n, M: m,
			N: min(16, n-16*p), K1: k})
	}
	for _, workers := range []int{1, 3} {
		team, err := pool.New(make([]int, workers), pool.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, ways := range [][2]int{{0, 0}, {1, workers}, {workers, 1}, {2, 5}} {
			t.Run(fmt.Sprint(workers, ways), func(t *testing.T) {
				s := plans.Schedule{Kernel: spec, BM: 8, BN: 48, BK: 32, WaysM: ways[0], WaysN: ways[1]}
				g, err := New(kernels, s, plans.WeightKey{N: n, K: k, Type: "f32"})
				if err != nil {
					t.Fatal(err)
				}
				c, got := floats(m * n)
				for i := range got {
					got[i] = float32(math.NaN())
				}
				o := Operands{M: m, W: &Packed{Layout: layout, Data: weights.Pointer()}, A: a.Pointer(), AStride: 4 * k,
					C: c.Pointer(), CStride: 4 * n}
				var next pool.Counter
				team.Run(func(w *pool.Worker) { g.Work(w, &next, nil, &o) })
				if !slices.Equal(got, wantC) {
					t.Errorf("the product differs from the oracle")
				}
			})
		}
		team.Close()
	}
}
