package heuristic

import (
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/weights"
	"sandwich/plans/internal/hosttest"
)

// TestDevicePaths checks that a plan for a device uses paths that device kernels have, the fastest
// ones of the cores if possible, and that weights of experts keep the path of the cores.
func TestDevicePaths(t *testing.T) {
	vnni := []string{"avx2", "avx512", "avx512_vnni"}
	for _, c := range []struct {
		isa          []string
		typ, option  string
		cores, joint microkernel.Compute
	}{
		{vnni, "q8_0", "auto", microkernel.ComputeInt8, microkernel.ComputeInt8},
		{vnni, "q4_k", "", microkernel.ComputeInt8Superblock, microkernel.ComputeInt8Superblock},
		{vnni, "q4_k", "int8-k", microkernel.ComputeInt8K, microkernel.ComputeInt8K},
		{vnni, "q2_k", "auto", microkernel.ComputeInt8Superblock, microkernel.ComputeInt8K},
		{vnni, "iq4_xs", "auto", microkernel.ComputeInt8Superblock, microkernel.ComputeInt8K},
		{vnni, "iq3_s", "int8", microkernel.ComputeInt8, microkernel.ComputeInt8K},
		{vnni, "iq4_nl", "auto", microkernel.ComputeInt8, microkernel.ComputeInt8}, // no device kernel
		{vnni, "f16", "auto", microkernel.ComputeF32, microkernel.ComputeF32},
		{[]string{"avx2", "avx512"}, "q8_0", "auto", microkernel.ComputeF32, microkernel.ComputeInt8},
		{[]string{"neon", "dotprod"}, "q2_k", "auto", microkernel.ComputeInt8, microkernel.ComputeInt8K},
		{[]string{"neon", "dotprod"}, "q6_k", "auto", microkernel.ComputeInt8, microkernel.ComputeInt8},
	} {
		host := hosttest.Cores(t, 2, c.isa...)
		dense := decoder("small", c.typ, 1024, 16, 4, 2048, 32003)
		mixed := dense
		mixed.Experts = 4
		for i, o := range []Options{{Compute: c.option}, {Compute: c.option, Device: true}} {
			want := []microkernel.Compute{c.cores, c.joint}[i]
			for _, w := range mustDefault(t, host, dense, o).Weights {
				if w.Compute != want {
					t.Errorf("%v %s %q, device %v: %+v, want %s", c.isa, c.typ, c.option, o.Device, w, want)
				}
			}
			p := mustDefault(t, host, mixed, o)
			for _, w := range p.Weights {
				if p.Model.OnlyRouted(w.WeightKey) && w.Compute != c.cores {
					t.Errorf("%v %s %q, device %v: experts %+v, want %s", c.isa, c.typ, c.option, o.Device, w, c.cores)
				}
			}
		}
		typ, err := microkernel.ParseWeightType(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		if ok := weights.Supports(typ, c.joint) == nil; ok != (c.typ != "iq4_nl") {
			t.Errorf("a device kernel of %s for %s: %v", c.joint, c.typ, ok)
		}
	}
}
