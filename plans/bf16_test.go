package plans_test

import (
	"errors"
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

// TestPairsKeepTheirKernels checks that a plan is invalid if the path of a bf16 weight is not that
// of its kernel.
func TestPairsKeepTheirKernels(t *testing.T) {
	h := hosttest.Cores(t, 2, hosttest.BF16...)
	for want, spoil := range map[string]func(*plans.Plan){
		"compute path bf16, but the weight": func(p *plans.Plan) { p.Weights[0].Compute = microkernel.ComputeF32 },
		"compute path f32, but the weight has": func(p *plans.Plan) {
			p.Decode.Tables[0].Rules[0].Schedule.Kernel = microkernel.Space(h.Features(), microkernel.AVX512,
				microkernel.ComputeF32, microkernel.BF16)[0]
		},
	} {
		p := plantest.Default(t, h, plantest.Llama160M("bf16"), "bf16")
		spoil(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestPairsAreShown checks that plan show and verify report bf16 rounding.
func TestPairsAreShown(t *testing.T) {
	b := bundletest.New(t)
	b.Host = *hosttest.Cores(t, 4, hosttest.BF16...)
	b.Plan = *plantest.Default(t, &b.Host, plantest.Llama160M("bf16"), "bf16")
	dir := bundletest.Write(t, b)
	v, read, err := check.VerifyDir(dir, &b.Host, nil)
	if err != nil || v.Rounding != "rounding depends on bf16 instructions" {
		t.Errorf("verdict %+v, %v", v, err)
	}
	if s := summary.Of(read); s.Exact || s.Rounding != v.Rounding || s.Weights[0].Compute != microkernel.ComputeBF16 {
		t.Errorf("shown as %+v", s)
	}
	b.Host = *hosttest.Rated(t, 205.5e9, 405.6e9, hosttest.BF16...)
	const want = "rounding depends on bf16 instructions: bf16 reaches 405.6 GFLOP/s on 1 PU, 1.97 times the " +
		"205.5 of f32"
	if s := summary.Of(b); s.Rounding != want || check.Verify(b, nil, nil).Rounding != want {
		t.Errorf("shown as %q, want %q", s.Rounding, want)
	}
	if v := check.Verify(read, hosttest.Cores(t, 4, "avx2", "avx512"), nil); !errors.Is(v.Err, plans.ErrISA) ||
		v.ExitCode() != 4 ||
		v.Rounding != "" {
		t.Errorf("on another CPU: %+v", v)
	}
}
