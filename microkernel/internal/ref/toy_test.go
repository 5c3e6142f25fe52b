package ref_test

import (
	"strings"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// toy is an instruction set that no CPU has: plain Go under another name.
const toy kernel.ISA = 9

func init() { kernel.Register(toy, ref.Target("toy")) }

// TestToyTarget demands that a registered target is all that an instruction set needs: it is
// listed, its specs are spelled, read, validated and built, and its kernels run.
func TestToyTarget(t *testing.T) {
	if isa, err := microkernel.ParseISA("toy"); err != nil || isa != toy {
		t.Fatalf("%v, %v", isa, err)
	}
	if _, err := microkernel.ParseISA("mmx"); err == nil || !strings.Contains(err.Error(), "neon, toy)") {
		t.Errorf("the list of instruction sets: %v", err)
	}
	if !microkernel.Host().Supports(toy) || microkernel.Host().Best() == toy {
		t.Error("the target is not among those of the host, or the widest")
	}
	specs := microkernel.Space(microkernel.Host(), toy, microkernel.ComputeF32, microkernel.F32)
	if len(specs) != 1 {
		t.Fatalf("%d specs", len(specs))
	}
	var read microkernel.Spec
	if err := read.UnmarshalText([]byte("toy/f32/f32/4x16/ku1/load")); err != nil || read != specs[0] {
		t.Fatalf("%s, %v", read, err)
	}
	if err := read.WithSpread().Validate(); err == nil || !strings.Contains(err.Error(), "toy has no spread") {
		t.Errorf("a spread prefetch: %v", err)
	}
	built, err := microkernel.Build(read)
	if err != nil || built.Native() {
		t.Fatalf("native code, or %v", err)
	}
	a, b := []float32{1, 2, 3}, make([]float32, 3*microkernel.PanelWidth)
	for i := range b {
		b[i] = float32(i)
	}
	var c [2]float32
	built.Run(&microkernel.GemmArgs{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
		CStride: 8, M: 1, N: 2, K1: 3})
	if c != [2]float32{0*1 + 16*2 + 32*3, 1*1 + 17*2 + 33*3} {
		t.Errorf("%v", c)
	}
	if _, err := microkernel.NewVec(toy); err != nil {
		t.Error(err)
	}
	if _, err := microkernel.NewWidener(toy, microkernel.Q4_K); err != nil {
		t.Error(err)
	}
}
