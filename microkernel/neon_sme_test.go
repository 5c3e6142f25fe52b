package microkernel

import (
	"math/rand/v2"
	"testing"

	arm64gemm "sandwich/microkernel/internal/arm64/gemm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// outerSpecs is every kernel of SME that the features allow.
func outerSpecs(f Features, c Compute) (specs []Spec) {
	for _, b := range allWeightTypes() {
		for _, s := range Space(f, NEON, c, b) {
			if s.Form == Outer {
				specs = append(specs, s)
			}
		}
	}
	return specs
}

// TestOuterProducts checks every kernel of SME that the streaming vectors of this host allow, rows
// and columns beyond a tile, accumulation and special values included.
func TestOuterProducts(t *testing.T) {
	if jit.Race || !Host().Has(HasSME) {
		t.Skipf("this CPU (%s) has no SME; make arm64 runs the test under qemu", Host())
	}
	r := rand.New(rand.NewPCG(50, 51))
	specs := append(outerSpecs(Host(), ComputeF32), outerSpecs(Host(), ComputeInt8)...)
	for _, s := range specs {
		checkSpec(t, r, s)
		checkSpec(t, r, s.WithPrefetch(1024))
	}
	for _, s := range outerSpecs(Host(), ComputeInt8K) {
		checkSpec(t, r, s)
	}
	want := 3 // tiles of eight rows: f32, f16, bf16
	if Host().Has(HasSMEInt8) {
		want += quantizedTypes()
	} else {
		t.Log("outer products of bytes are not right on this host: TestOuterProductsOfBytes stands alone")
	}
	if Host().Has(HasSME512) {
		want += 3 + 2*3 + want - 3 // tiles of sixteen, and one and two panels more for float32
	}
	if len(specs) != want {
		t.Errorf("%d kernels of outer products on %s, want %d", len(specs), Host(), want)
	}
}

// TestOuterProductsOfBytes checks the int8 kernels on any host with SME, with SMOPA, the outer
// product of bytes, replaced by dot products.
func TestOuterProductsOfBytes(t *testing.T) {
	if jit.Race || !Host().Has(HasSME) {
		t.Skipf("this CPU (%s) has no SME; make arm64 runs the test under qemu", Host())
	}
	r := rand.New(rand.NewPCG(52, 53))
	for _, s := range outerSpecs(Host()|HasSMEInt8, ComputeInt8) {
		k := &Kernel{tiles: kernel.NewTiles(s), target: s.ISA.Target()}
		var codes [][]byte
		err := s.EachTile(func(tile Spec) error {
			code, err := arm64gemm.AssembleByRows(tile)
			codes = append(codes, code)
			return err
		})
		if err == nil {
			k.tiles.Funcs, err = jit.Load(codes...)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			blocks := 1 + r.IntN(4)
			p := newProblem(t, r, s, 1+r.IntN(2*s.MR+1), 1+r.IntN(3*PanelWidth), blocks*s.B.Block())
			p.check(k, []int{r.IntN(blocks) * s.B.Block()})
		}
	}
}

// TestOuterProductCode checks that the code of every type contains the outer product of bytes as
// llvm-mc encodes it.
func TestOuterProductCode(t *testing.T) {
	for _, s := range outerSpecs(outerFeatures, ComputeInt8) {
		code, err := s.Assemble()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := 0; i+4 <= len(code); i += 4 { // smopa za0.s, p4/m, p5/m, z24.b, z16.b
			if string(code[i:i+4]) == "\x00\xb3\x90\xa0" {
				n++
			}
		}
		if want := 8 * PanelWidth / min(16, max(8, s.MR)); n != want {
			t.Errorf("%s: %d outer products in a sub-block, want %d", s, n, want)
		}
	}
}

// quantizedTypes counts the types with kernels of the int8 path.
func quantizedTypes() (n int) {
	for _, b := range allWeightTypes() {
		if b.Quantized() {
			n++
		}
	}
	return n
}
