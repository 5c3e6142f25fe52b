package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
)

// hostKernels returns the kernels of this host's widest instruction set, and the number of random
// products of a test.
func hostKernels(t *testing.T) (k *microkernel.Vec, isa microkernel.ISA, rounds int) {
	t.Helper()
	isa = microkernel.Host().Best()
	k, err := microkernel.NewVec(isa)
	if err != nil {
		t.Fatal(err)
	}
	if tp.RaceEnabled {
		return k, isa, 2
	}
	return k, isa, 40
}

// TestGated checks that a product of gate and up has the bits of two products and SwiGLU over them,
// under any two schedules and with any number of segments of a slice, and that nothing outside C is
// written.
func TestGated(t *testing.T) {
	kernels, isa, rounds := hostKernels(t)
	for _, typ := range []gguf.Type{gguf.F32, gguf.Q8_0} {
		weightType, _ := microkernel.ParseWeightType(typ.String())
		for _, widen := range []bool{false, true} {
			b := weightType
			if widen {
				b = microkernel.F32
			}
			space := microkernel.Space(microkernel.Host(), isa, microkernel.ComputeF32, b)
			if len(space) == 0 || widen && (typ == gguf.F32 || isa == microkernel.Go) {
				continue
			}
			t.Run(fmt.Sprintf("%s/widen=%v", typ, widen), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(typ), 7))
				for round := range rounds {
					k, n, m := weightType.KStep()*(1+rng.IntN(64/weightType.KStep())), 1+rng.IntN(150), 1+rng.IntN(40)
					if round == 0 && !tp.RaceEnabled {
						m, n = 3000, 100 // several segments
					}
					gate := newProblem(t, rng, typ, microkernel.ComputeF32, m, n, k)
					up := newProblem(t, rng, typ, microkernel.ComputeF32, m, n, k)
					up.o.A, up.o.AStride = gate.o.A, gate.o.AStride
					bias := up.o.Bias
					up.o.Bias = nil
					up.oracle(up.o.W.Layout)
					if bias != nil {
						up.bias(t, rng)
					}
					key := plans.WeightKey{N: n, K: k, Type: typ.String()}
					p := product{o: gate.o, upO: up.o}
					for i, g := range []**Gemm{&p.gemm, &p.up} {
						var err error
						s := randomSchedule(rng, space[rng.IntN(len(space))], weightType, widen, gate)
						if round == 0 {
							s.BM, s.BN, s.Pack = 0, 0, false
						}
						if *g, err = New(kernels, s, key); err != nil {
							t.Fatalf("weight %d: %v", i, err)
						}
					}
					p.grid = p.gemm
					ref := microkernel.RefVec()
					ref.GLU(microkernel.SwiGLU, &gate.want[0], &gate.want[0], &up.want[0], m*n)
					p.check(t, rng, gate)
				}
			})
		}
	}
}

// any computes a task in place or, half of the time, in a private buffer.
func (p *product) any(rng *rand.Rand, scratch, own unsafe.Pointer, task int) {
	if rng.IntN(2) == 0 {
		p.computeChunk(scratch, p.grid.slice(p.o.M, task))
		return
	}
	private := *p
	private.computePrivate(scratch, own, p.grid.slice(p.o.M, task))
	private.commit(scratch, p.grid.slice(p.o.M, task))
}

// check computes every slice once, in any order, and compares C and its guards with the oracle.
func (p *product) check(t *testing.T, rng *rand.Rand, want *problem) {
	t.Helper()
	for i := range want.c {
		want.c[i] = poison
	}
	scratch := alloc(t, 2*p.gemm.segmentSize(want.m)+max(p.gemm.ScratchBytes(), p.up.ScratchBytes()))
	own := alloc(t, p.gemm.sliceBytes(want.m))
	for _, task := range rng.Perm(p.gemm.Tasks(want.m)) {
		p.any(rng, scratch.Pointer(), own.Pointer(), task)
	}
	want.compare(t)
	if t.Failed() {
		t.Fatalf("gate under %s, up under %s", p.gemm.s, p.up.s)
	}
}

// TestSumAndGELU checks that a product that adds has the bits of the complete product and one
// addition, and one with an activation those of the product and the activation.
func TestSumAndGELU(t *testing.T) {
	kernels, isa, rounds := hostKernels(t)
	space := microkernel.Space(microkernel.Host(), isa, microkernel.ComputeF32, microkernel.F32)
	rng := rand.New(rand.NewPCG(3, 7))
	for round := range rounds {
		gelu := round%2 == 1
		want := newProblem(t, rng, gguf.F32, microkernel.ComputeF32, 1+rng.IntN(40), 1+rng.IntN(150), 1+rng.IntN(64))
		s := randomSchedule(rng, space[rng.IntN(len(space))], microkernel.F32, false, want)
		g, err := New(kernels, s, plans.WeightKey{N: want.n, K: want.k, Type: "f32"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.c {
			want.c[i] = poison
		}
		if gelu {
			microkernel.RefVec().GELURows(&want.want[0], want.n, &want.want[0], want.n, want.m, want.n)
		}
		for r := range want.m {
			for c := 0; c < want.n && !gelu; c++ {
				x := float32(rng.NormFloat64())
				want.c[(r+guardRows)*want.cWidth+c] = x
				want.want[r*want.n+c] = x + want.want[r*want.n+c]
			}
		}
		p := product{gemm: g, grid: g, o: want.o, sum: !gelu, gelu: gelu}
		scratch := alloc(t, g.segmentSize(want.m)+g.ScratchBytes())
		own := alloc(t, g.sliceBytes(want.m))
		for _, task := range rng.Perm(g.Tasks(want.m)) {
			p.any(rng, scratch.Pointer(), own.Pointer(), task)
		}
		if want.compare(t); t.Failed() {
			t.Fatalf("under %s", s)
		}
	}
}
