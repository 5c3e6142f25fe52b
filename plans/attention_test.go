package plans_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/check"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/hosttest"
	"sandwich/plans/internal/plantest"
	"sandwich/plans/summary"
)

// TestAttentionIsKept checks that the dot product of attention survives writing and reading, makes
// a plan inexact, is shown with its measured rates, and is refused on a CPU without it. A plan with
// float32 attention does not mention it.
func TestAttentionIsKept(t *testing.T) {
	rates := map[string]float64{"f32": 200e9, "tdpbf16": 800e9}
	b := bundletest.New(t)
	b.Host = *hosttest.Attending(t, rates, hosttest.Tiles...)
	b.Plan = *plantest.Default(t, &b.Host, plantest.Llama160M("f32"), "")
	exact, digest := bundletest.Write(t, b), b.Plan.Digest()
	text, err := os.ReadFile(filepath.Join(exact, "plan.yaml"))
	if err != nil || strings.Contains(string(text), "attention") || !b.Plan.Exact() {
		t.Errorf("an exact plan says\n%s%v", text, err)
	}
	b.Plan.Attention = microkernel.AttendTDPBF16
	v, read, err := check.VerifyDir(bundletest.Write(t, b), &b.Host, nil)
	const want = "rounding depends on attention by tdpbf16: attention by tdpbf16 reaches 800 GFLOP/s on a core, " +
		"4.00 times the 200 of f32"
	if err != nil || v.Rounding != want || read.Plan.Attention != microkernel.AttendTDPBF16 {
		t.Fatalf("read as %s, %q: %v", read.Plan.Attention, v.Rounding, err)
	}
	if s := summary.Of(read); s.Exact || s.Attention != "tdpbf16" || read.Plan.Digest() == digest {
		t.Errorf("shown as %+v", s)
	}
	if err := check.Bundle(read, hosttest.Cores(t, 2, hosttest.BF16...), nil); !errors.Is(err, plans.ErrISA) ||
		!strings.Contains(err.Error(), "amx_int8") {
		t.Errorf("on a CPU without tiles: %v", err)
	}
}

// TestAttentionThatNoKernelHas checks that a plan is invalid if no kernel has its dot product of
// attention for the instruction set and the type of the KV cache.
func TestAttentionThatNoKernelHas(t *testing.T) {
	p := plantest.Default(t, hosttest.Cores(t, 2, "avx2"), plantest.Llama160M("f32"), "")
	for _, d := range []microkernel.AttentionDot{microkernel.AttendDPBF16, microkernel.AttendTDPBF16,
		microkernel.AttendDPBUSD, 77} {
		if p.Attention = d; p.Validate() == nil {
			t.Errorf("attention by %s is valid on avx2", d)
		}
	}
	p = plantest.Default(t, hosttest.Cores(t, 2, hosttest.Tiles...), plantest.Llama160M("f32"), "")
	for kv, ok := range map[microkernel.KVType]bool{microkernel.KVF16: false, microkernel.KVQ8: true} {
		if p.Attention, p.KV = microkernel.AttendDPBUSD, kv; (p.Validate() == nil) != ok || !p.Exact() {
			t.Errorf("integers of a cache of %s: %v", kv, p.Validate())
		}
	}
	if p.Attention = microkernel.AttendF32; p.Validate() != nil {
		t.Error(p.Validate())
	}
}
