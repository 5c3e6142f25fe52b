package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
)

// poison is the content of C before a product, and outside the product after it.
var poison = float32(math.Float32frombits(0x7FC0BEEF))

// alloc returns zeroed memory off the heap that is freed with the test.
func alloc(t testing.TB, bytes int) *mem.Buffer {
	t.Helper()
	b, err := mem.Alloc(max(bytes, 64), mem.Options{Node: mem.AnyNode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free() })
	return b
}

// problem is a product with its operands and the result of the oracle.
type problem struct {
	m, n, k int
	typ     gguf.Type
	compute microkernel.Compute
	o       Operands
	c       []float32 // whole memory of C, guards included
	cWidth  int
	want    []float32 // [m][n]
}

// Guards around C: rows before and after, columns after.
const (
	guardRows = 2
	guardCols = 19
)

func newProblem(t testing.TB, rng *rand.Rand, typ gguf.Type, compute microkernel.Compute, m, n, k int) *problem {
	t.Helper()
	p := &problem{m: m, n: n, k: k, typ: typ, compute: compute, cWidth: n + guardCols}
	weightType, err := microkernel.ParseWeightType(typ.String())
	if err != nil {
		t.Fatal(err)
	}
	l := microkernel.Layout{Type: weightType, N: n, K: k}
	values := make([]float32, n*k)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	data := make([]byte, n*typ.RowBytes(k))
	if err := gguf.Quantize(data, typ, values); err != nil {
		t.Fatal(err)
	}
	w := alloc(t, l.Bytes())
	if err := microkernel.Pack(w.Bytes(), l, 0, n, data, 0); err != nil {
		t.Fatal(err)
	}
	p.o = Operands{M: m, W: &Packed{Layout: l, Compute: compute, Data: w.Pointer()}}
	p.activations(t, rng)
	p.oracle(l)
	if rng.IntN(2) == 0 {
		p.bias(t, rng)
	}
	c := alloc(t, 4*(m+2*guardRows)*p.cWidth)
	p.c = c.Float32s()[:(m+2*guardRows)*p.cWidth]
	p.o.C, p.o.CStride = unsafe.Pointer(&p.c[guardRows*p.cWidth]), 4*p.cWidth
	return p
}

func (p *problem) activations(t testing.TB, rng *rand.Rand) {
	stride := p.k + 5
	a := alloc(t, 4*p.m*stride)
	rows := a.Float32s()
	for i := range p.m * stride {
		rows[i] = float32(rng.NormFloat64())
	}
	p.o.A, p.o.AStride = a.Pointer(), 4*stride
	if p.compute == microkernel.ComputeF32 {
		return
	}
	roundedStride := p.compute.ActRowBytes(p.k) + 24
	q := alloc(t, p.m*roundedStride)
	vec, err := microkernel.NewVec(microkernel.Go)
	if err != nil {
		t.Fatal(err)
	}
	for r := range p.m {
		vec.QuantizeRow(p.compute, &rows[r*stride], p.k, unsafe.Add(q.Pointer(), r*roundedStride))
	}
	p.o.SetQuantized(p.compute, q.Pointer(), roundedStride)
}

// oracle computes every element as one chain over all of k, in plain Go.
func (p *problem) oracle(l microkernel.Layout) {
	p.want = make([]float32, p.m*p.n)
	spec := microkernel.Spec{ISA: microkernel.Go, Compute: p.compute, B: l.Type, MR: 4, NR: microkernel.PanelWidth}
	a, stride := p.o.A, p.o.AStride
	if p.compute != microkernel.ComputeF32 {
		a, stride = p.o.Quantized.Base, p.o.Quantized.Stride
	}
	if p.compute == microkernel.ComputeBF16 { // it rounds as the instruction does
		host := microkernel.Host()
		spec.Dot = microkernel.Space(host, host.Best(), p.compute, l.Type)[0].Dot
	}
	for panel := range l.Panels() {
		at := panel * microkernel.PanelWidth
		microkernel.RunRef(spec, &microkernel.GemmArgs{A: a, AStride: stride, B: unsafe.Add(p.o.W.Data,
			panel*l.PanelStride()), BStride: l.PanelStride(),
			C: unsafe.Pointer(&p.want[at]), CStride: 4 * p.n, M: p.m, N: min(microkernel.PanelWidth, p.n-at), K1: p.k})
	}
}

func (p *problem) bias(t testing.TB, rng *rand.Rand) {
	b := alloc(t, 4*p.n).Float32s()
	for i := range p.n {
		b[i] = float32(rng.NormFloat64())
		for r := range p.m {
			p.want[r*p.n+i] += b[i]
		}
	}
	p.o.Bias = unsafe.Pointer(&b[0])
}

// check runs every slice once, in the order given, and compares C and its guards.
func (p *problem) check(t testing.TB, g *Gemm, order []int) {
	t.Helper()
	for i := range p.c {
		p.c[i] = poison
	}
	scratch := alloc(t, g.ScratchBytes())
	for i := range scratch.Bytes() {
		scratch.Bytes()[i] = 0xFF
	}
	for _, task := range order {
		g.Run(scratch.Pointer(), task, &p.o)
	}
	p.compare(t)
}

// compare checks C and its guards.
func (p *problem) compare(t testing.TB) {
	t.Helper()
	for r := range p.m + 2*guardRows {
		for col := range p.cWidth {
			got, want := p.c[r*p.cWidth+col], poison
			if r >= guardRows && r < guardRows+p.m && col < p.n {
				want = p.want[(r-guardRows)*p.n+col]
			}
			if math.Float32bits(got) != math.Float32bits(want) {
				t.Errorf("element (%d, %d) of %d x %d x %d is %v, want %v", r-guardRows, col, p.m, p.n, p.k, got, want)
				return
			}
		}
	}
}

// randomSchedule returns any legal schedule of a kernel, with slices smaller and larger than the
// problem.
func randomSchedule(rng *rand.Rand, spec microkernel.Spec, typ microkernel.WeightType, widen bool,
	p *problem) plans.Schedule {
	s := plans.Schedule{Kernel: spec, Widen: widen}
	pick := func(unit, limit int) int { // a multiple of unit, sometimes 0
		if rng.IntN(4) == 0 {
			return 0
		}
		return unit * (1 + rng.IntN(limit/unit+2))
	}
	s.BM, s.BN = pick(spec.MR, p.m), pick(spec.NR, p.n)
	s.BK = pick(max(typ.KStep(), 2), p.k)
	s.Pack = s.BM > 0 && rng.IntN(2) == 0
	return s
}

// TestGemmSlices checks that under any schedule every product has the bits of one chain per element
// over all of k, and that nothing outside C is written.
func TestGemmSlices(t *testing.T) {
	rounds := 12
	if tp.RaceEnabled {
		rounds = 1
	}
	for _, isa := range microkernel.Host().ISAs() {
		kernels, err := microkernel.NewVec(isa)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range []gguf.Type{gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.Q4_0, gguf.Q4_K, gguf.Q2_K} {
			weightType, _ := microkernel.ParseWeightType(typ.String())
			for _, compute := range []microkernel.Compute{microkernel.ComputeF32, microkernel.ComputeInt8,
				microkernel.ComputeBF16, microkernel.ComputeInt8Superblock} {
				for _, widen := range []bool{false, true} {
					b := weightType
					if widen {
						b = microkernel.F32
					}
					space := microkernel.Space(microkernel.Host(), isa, compute, b)
					if len(space) == 0 || widen && (compute != microkernel.ComputeF32 || typ == gguf.F32) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/widen=%v", isa, typ, compute, widen), func(t *testing.T) {
						rng := rand.New(rand.NewPCG(uint64(isa), uint64(typ)))
						for range rounds {
							k := weightType.KStep() * (1 + rng.IntN(max(3, 200/weightType.KStep())))
							p := newProblem(t, rng, typ, compute, 1+rng.IntN(40), 1+rng.IntN(150), k)
							s := randomSchedule(rng, space[rng.IntN(len(space))], weightType, widen, p)
							g, err := New(kernels, s, plans.WeightKey{N: p.n, K: p.k, Type: typ.String()})
							if err != nil {
								t.Fatal(err)
							}
							t.Run(s.String(), func(t *testing.T) { p.check(t, g, rng.Perm(g.Tasks(p.m))) })
						}
					})
				}
			}
		}
	}
}

// TestGemmRefuses names schedules that would cut where nothing can be cut.
func TestGemmRefuses(t *testing.T) {
	kernels, err := microkernel.NewVec(microkernel.Go)
	if err != nil {
		t.Fatal(err)
	}
	spec := func(typ microkernel.WeightType) microkernel.Spec {
		return microkernel.Space(microkernel.Host(), microkernel.Go, microkernel.ComputeF32, typ)[0]
	}
	q8 := plans.WeightKey{N: 64, K: 64, Type: "q8_0"}
	for name, c := range map[string]struct {
		s   plans.Schedule
		key plans.WeightKey
	}{
		"width":    {plans.Schedule{Kernel: spec(microkernel.Q8_0), BN: 24}, q8},
		"depth":    {plans.Schedule{Kernel: spec(microkernel.Q8_0), BK: 16}, q8},
		"negative": {plans.Schedule{Kernel: spec(microkernel.Q8_0), BM: -4}, q8},
		"kernel":   {plans.Schedule{Kernel: spec(microkernel.F16)}, q8},
		"widened":  {plans.Schedule{Kernel: spec(microkernel.Q8_0), Widen: true}, q8},
		"widen f32": {plans.Schedule{Kernel: spec(microkernel.F32), Widen: true}, plans.WeightKey{N: 64, K: 64,
			Type: "f32"}},
		"type":  {plans.Schedule{Kernel: spec(microkernel.F32)}, plans.WeightKey{N: 64, K: 64, Type: "q9_9"}},
		"shape": {plans.Schedule{Kernel: spec(microkernel.Q8_0)}, plans.WeightKey{N: 64, K: 40, Type: "q8_0"}},
		"empty": {plans.Schedule{Kernel: spec(microkernel.Q8_0)}, plans.WeightKey{N: 0, K: 64, Type: "q8_0"}},
	} {
		if _, err := New(kernels, c.s, c.key); err == nil {
			t.Errorf("%s: %s was accepted", name, c.s)
		}
	}
}
