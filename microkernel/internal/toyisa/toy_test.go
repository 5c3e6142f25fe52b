// Package toyisa_test adds an instruction set from outside the module's backends. It shows that one
// package with one registration is all that an instruction set needs: every other package finds it
// through package kernel.
package toyisa_test

import (
	"strings"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
)

// The toy instruction set runs plain Go under a name of its own, with a feature and a dot product
// of its own.
var (
	hasToy = kernel.RegisterFeature("toy_simd", 0)
	hasDot = kernel.RegisterFeature("toy_dot", hasToy)
	toyDot = kernel.RegisterDot(kernel.DotInfo{Name: "toydot", Compute: kernel.ComputeInt8, Needs: hasDot})
	toy    = kernel.RegisterNew(target())
)

func target() *kernel.Target {
	t := ref.NewTarget("toy")
	t.Needs = hasToy
	t.Dots = []kernel.Dot{toyDot}
	return t
}

func init() { kernel.RegisterDetector(func() kernel.Features { return hasToy | hasDot }) }

// TestNames checks that names of the toy instruction set, its features and its dot product are
// written and parsed, and listed in errors.
func TestNames(t *testing.T) {
	if isa, err := microkernel.ParseISA("toy"); err != nil || isa != toy {
		t.Fatalf("%v, %v", isa, err)
	}
	if _, err := microkernel.ParseISA("mmx"); err == nil || !strings.Contains(err.Error(), "neon, toy)") {
		t.Errorf("the list of instruction sets: %v", err)
	}
	if f, err := microkernel.ParseFeatures("toy_simd,toy_dot"); err != nil || f != hasToy|hasDot {
		t.Errorf("features %s, %v", f, err)
	}
	if f := hasDot.Closed(); f != 0 {
		t.Errorf("%s does not need %s", f, hasToy)
	}
	if _, err := microkernel.ParseFeatures("mmx"); err == nil || !strings.Contains(err.Error(), "toy_dot") {
		t.Errorf("the list of features: %v", err)
	}
	const text = "toy/int8/q8_0/4x16/ku32/load/toydot"
	s, err := microkernel.ParseSpec(text)
	if err != nil || s.ISA != toy || s.Dot != toyDot || s.String() != text {
		t.Errorf("%s, %v", s, err)
	}
	if need := s.Needs(); need != hasToy|hasDot {
		t.Errorf("needs %s", need)
	}
}

// TestHost checks that the host has the detected features and is able to run the instruction set.
func TestHost(t *testing.T) {
	if !microkernel.Host().Supports(toy) || microkernel.Host().Best() == toy {
		t.Error("the host does not support the toy instruction set, or it is the widest")
	}
	if microkernel.Features(0).Supports(toy) {
		t.Error("the toy instruction set needs no feature")
	}
}

// TestSpecs checks that specs are listed, stored, validated and rejected by the target's rules.
func TestSpecs(t *testing.T) {
	for _, b := range qtype.All() {
		if n := len(microkernel.Space(microkernel.Host(), toy, microkernel.ComputeF32, b)); n != 1 {
			t.Errorf("%d specs for %s", n, b)
		}
	}
	specs := microkernel.Space(microkernel.Host(), toy, microkernel.ComputeF32, microkernel.F32)
	var read microkernel.Spec
	if err := read.UnmarshalText([]byte("toy/f32/f32/4x16/ku1/load")); err != nil || read != specs[0] {
		t.Fatalf("%s, %v", read, err)
	}
	if err := read.WithSpread().Validate(); err == nil || !strings.Contains(err.Error(), "toy has no spread") {
		t.Errorf("a spread prefetch: %v", err)
	}
}

// TestKernels checks that kernels are built and compute: float32 by hand, every compute path and
// weight type against plain Go.
func TestKernels(t *testing.T) {
	built, err := microkernel.Build(microkernel.Spec{ISA: toy, MR: 4, NR: 16, KU: 1})
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
	for path := range microkernel.Computes {
		for _, w := range qtype.All() {
			for _, s := range microkernel.Space(microkernel.Host(), toy, path, w) {
				if _, err := microkernel.Build(s); err != nil {
					t.Errorf("%s: %v", s, err)
				}
			}
		}
	}
}

// TestOtherCode checks that row operations, attention, widening and probes exist.
func TestOtherCode(t *testing.T) {
	v, err := microkernel.NewVec(toy)
	if err != nil {
		t.Fatal(err)
	}
	x := []float32{3, 4}
	if v.Scale(&x[0], 2, len(x)); x[0] != 6 || x[1] != 8 {
		t.Errorf("%v", x)
	}
	layout := microkernel.KVLayout{HeadDim: 32, Elem: microkernel.KVF32}
	if _, err := microkernel.NewAttention(toy, layout, microkernel.AttentionForm{}); err != nil {
		t.Error(err)
	}
	if _, err := microkernel.NewWidener(toy, microkernel.Q4_K); err != nil {
		t.Error(err)
	}
	peak, err := microkernel.NewPeak(microkernel.PeakSpec{ISA: toy, Type: "f32"}, microkernel.Host())
	if err != nil {
		t.Fatal(err)
	}
	if peak.Run(1); peak.Ops <= 0 {
		t.Errorf("%d operations", peak.Ops)
	}
	reader, err := microkernel.NewReader(toy, microkernel.Host())
	if err != nil {
		t.Fatal(err)
	}
	if word := reader.Read(make([]byte, 2048), 1); word != 0 {
		t.Errorf("zeros read as %x", word)
	}
}
