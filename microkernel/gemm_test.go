package microkernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/kerneltest"
	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
)

// problem is a GEMM whose operands end where inaccessible memory begins.
type problem struct {
	t       testing.TB
	s       Spec
	l       Layout
	m       int
	a, b, c []byte
	aStride int
	cStride int
	want    []byte
}

const poisonC = 0x7FC0DEAD // a NaN that no computation makes

func newProblem(t *testing.T, r *rand.Rand, s Spec, m, n, k int) *problem {
	p := &problem{t: t, s: s, l: Layout{s.B, n, k}, m: m, cStride: 4*n + 4*r.IntN(20)}
	raw, _ := rawWeights(r, s.B, n, k)
	packed := make([]byte, p.l.Bytes())
	if err := Pack(packed, p.l, 0, n, raw, 0); err != nil {
		t.Fatal(err)
	}
	// The last panel ends with its last element, without the padding of the stride.
	last := (p.l.Panels()-1)*p.l.PanelStride() + p.l.panelBytes(k)
	p.b = kerneltest.Guarded(t, last)
	copy(p.b, packed[:last])
	row := s.Compute.ActRowBytes(k)
	p.aStride = row + 4*r.IntN(20)
	p.a = kerneltest.Guarded(t, (m-1)*p.aStride+row)
	for i := range m {
		if s.Compute == ComputeInt8K {
			randomActQ8K(r, p.a[i*p.aStride:][:row])
			continue
		}
		if s.Compute.Quantizes() {
			randomActQ8(r, p.a[i*p.aStride:][:row], s.Compute)
			continue
		}
		if s.Compute.RoundsBF16() {
			randomBF16(r, p.a[i*p.aStride:][:row], k)
			continue
		}
		for j := range k {
			v := r.Float32()*2 - 1
			if r.IntN(50) == 0 {
				v *= 1e-38 // products that underflow
			}
			binary.LittleEndian.PutUint32(p.a[i*p.aStride+4*j:], math.Float32bits(v))
		}
	}
	p.c = kerneltest.Guarded(t, (m-1)*p.cStride+4*n)
	p.want = make([]byte, len(p.c))
	return p
}

// randomBF16 is a row of activations as they are after rounding.
func randomBF16(r *rand.Rand, row []byte, k int) {
	for j := range k {
		v := r.Float32()*2 - 1
		switch r.IntN(100) {
		case 0:
			v *= 1e-37 // products that underflow
		case 1:
			v *= 1e37
		}
		binary.LittleEndian.PutUint16(row[2*j:], ref.RoundBF16(v))
	}
}

// randomActQ8 is a row of blocks, of which those of a group have one scale where the path wants it.
func randomActQ8(r *rand.Rand, row []byte, c Compute) {
	for b := range len(row) / ActQ8Bytes {
		q := kernel.ActQ8At(unsafe.Pointer(&row[0]), b)
		q.Scale = r.Float32() * 0.1
		if c == ComputeInt8Superblock && b%(kernel.ActQ8Group/ActQ8Block) > 0 {
			q.Scale = kernel.ActQ8At(unsafe.Pointer(&row[0]), b-1).Scale
		}
		for i := range q.Q {
			q.Q[i] = int8(r.IntN(255) - 127)
			if r.IntN(3) == 0 {
				q.Q[i] = []int8{-127, 127}[r.IntN(2)] // the extremes, where 16-bit sums are fullest
			}
		}
		setSums(q, c)
	}
}

// randomActQ8K is a row of superblocks.
func randomActQ8K(r *rand.Rand, row []byte) {
	for b := range len(row) / kernel.ActQ8KBytes {
		q := kernel.ActQ8KAt(unsafe.Pointer(&row[0]), b)
		q.Scale = r.Float32() * 0.1
		for i := range q.Q {
			q.Q[i] = int8(r.IntN(255) - 127)
			if r.IntN(3) == 0 {
				q.Q[i] = []int8{-127, 127}[r.IntN(2)]
			}
		}
		q.SetSums()
	}
}

// setSums makes the sums as a path reads them.
func setSums(q *ActQ8, c Compute) {
	if c == ComputeInt8Superblock {
		q.SetSums(1)
		return
	}
	q.SetSums(q.Scale)
}

func (p *problem) fill() {
	for i := 0; i+4 <= len(p.c); i += 4 {
		binary.LittleEndian.PutUint32(p.c[i:], poisonC)
	}
	copy(p.want, p.c)
}

// run computes every group of panels, in k-blocks cut at the given places, with f into c.
func (p *problem) run(f func(*GemmArgs), c []byte, cuts ...int) {
	k0 := 0
	for _, k1 := range append(cuts, p.l.K) {
		for n := 0; n < p.l.N; n += p.s.NR {
			g := GemmArgs{
				A: unsafe.Pointer(&p.a[0]), AStride: p.aStride,
				B: unsafe.Pointer(&p.b[n/PanelWidth*p.l.PanelStride()]), BStride: p.l.PanelStride(),
				C: unsafe.Pointer(&c[4*n]), CStride: p.cStride,
				M: p.m, N: min(p.s.NR, p.l.N-n), K0: k0, K1: k1, Accumulate: k0 > 0,
			}
			if n+p.s.NR < p.l.N { // the first group after the last one is told nothing
				g.NextB = unsafe.Add(g.B, p.s.NR/PanelWidth*p.l.PanelStride()+PanelOffset(p.s.B, k0))
			}
			f(&g)
		}
		k0 = k1
	}
}

func (p *problem) compare(what string) {
	p.t.Helper()
	if err := p.diff(what); err != nil {
		p.t.Fatal(err)
	}
}

// diff names the first element of C that is not what it should be, padding between rows included.
func (p *problem) diff(what string) error {
	for i := 0; i+4 <= len(p.c); i += 4 {
		got, want := binary.LittleEndian.Uint32(p.c[i:]), binary.LittleEndian.Uint32(p.want[i:])
		if got != want {
			m, n := i/p.cStride, i%p.cStride/4
			return fmt.Errorf("%s %s: M=%d N=%d K=%d: C[%d,%d] = %v (%#x), want %v (%#x)", p.s, what, p.m,
				p.l.N, p.l.K, m, n,
				math.Float32frombits(got), got, math.Float32frombits(want), want)
		}
	}
	return nil
}

// check runs the kernel whole and in k-blocks against the oracle, which runs whole.
func (p *problem) check(k *Kernel, cuts []int) {
	p.t.Helper()
	p.checkRun(k.Run, cuts)
}

// checkRun is check of a kernel that is run in another way.
func (p *problem) checkRun(run func(*GemmArgs), cuts []int) {
	p.t.Helper()
	p.fill()
	p.run(func(g *GemmArgs) { RunRef(p.s, g) }, p.want)
	p.run(run, p.c)
	p.compare("whole")
	for i := 0; i+4 <= len(p.c); i += 4 {
		binary.LittleEndian.PutUint32(p.c[i:], poisonC)
	}
	p.run(run, p.c, cuts...)
	p.compare(fmt.Sprint("cut at ", cuts))
}

// spaces lists every spec this host can run, in an order shuffled by seed.
func spaces(seed uint64) []Spec {
	var all []Spec
	for _, isa := range Host().ISAs() {
		for c := range kernel.Computes {
			for _, wt := range qtype.All() {
				all = append(all, Space(Host(), isa, c, wt)...)
			}
		}
	}
	rand.New(rand.NewPCG(seed, 9)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// TestKernelsAgainstRef compares specs with the oracle, bit for bit, on random data with poisoned
// outputs, guard pages after every operand, odd sizes and k-blocks. Short runs check a sample,
// -long all.
func TestKernelsAgainstRef(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	specs := spaces(12)
	n := len(specs)
	switch {
	case jit.Race:
		n = min(n, 40) // plain Go under the race detector: few types, no tiles
	case !*long:
		n = min(n, 400)
	}
	for some := range slices.Chunk(specs[:n], 400) { // each frees its guard pages, of which a process has so many
		t.Run(fmt.Sprint(some[0]), func(t *testing.T) {
			for _, s := range some {
				if p := s.WithPrefetch(64 * (1 + r.IntN(64))); r.IntN(4) == 0 && p.Validate() == nil {
					s = p
				} else if p := s.WithSpread(); r.IntN(4) == 0 && p.Validate() == nil {
					s = p
				}
				checkSpec(t, r, s)
			}
		})
	}
	t.Logf("%d of %d specs", n, len(specs))
}

func checkSpec(t *testing.T, r *rand.Rand, s Spec) {
	t.Helper()
	built, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	if s.ISA != Go && !jit.Race && !built.Native() {
		t.Fatalf("%s runs in plain Go", s)
	}
	for range 2 {
		m, n := 1+r.IntN(2*s.MR+1), 1+r.IntN(2*s.NR)
		k := s.B.Block() * (1 + r.IntN(max(2, 128/s.B.Block())))
		cut := s.B.Block() * r.IntN(k/s.B.Block()+1)
		if !s.B.Quantized() {
			k = 1 + r.IntN(70)
			cut = r.IntN(k + 1)
			cut -= cut % max(2, s.Compute.KStep(s.B))
		}
		p := newProblem(t, r, s, m, n, k)
		var cuts []int
		if cut > 0 && cut < k {
			cuts = append(cuts, cut)
		}
		p.check(built, cuts)
	}
}
