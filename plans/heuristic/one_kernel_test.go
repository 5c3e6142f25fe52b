package heuristic

import (
	"errors"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/internal/hosttest"
)

func TestUseKernel(t *testing.T) {
	h := hosttest.Cores(t, 4, "amx_int8", "avx2", "avx512", "avx512_vnni")
	spec := func(text string) microkernel.Spec {
		s, err := microkernel.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	amx := spec("avx512/int8/q4_k/16x16/ku32/load/amx")
	p := mustDefault(t, h, llama160m("q4_k"), Options{})
	if err := UseKernel(p, h, amx); err != nil {
		t.Fatal(err)
	}
	for _, table := range p.Prefill.Tables {
		for _, m := range []int{1, 16, 100, 5000} {
			if s, _ := p.Prefill.Lookup(table.WeightKey, m); s.Kernel != amx || s.BM%16 != 0 || s.BN%16 != 0 {
				t.Errorf("%s m=%d: %s", table.WeightKey, m, s)
			}
		}
	}
	for text, say := range map[string]string{
		"avx512/int8/q8_0/16x16/ku32/load/amx": "for q8_0 weights",
		"avx512/f32/q4_k/4x32/ku32/load":       "in f32",
		"avx512/int8/q4_k/40x16/ku32/load/amx": "MR 40",
		"neon/int8/q4_k/4x16/ku32/lane/sdot":   "needs neon",
	} {
		p := mustDefault(t, h, llama160m("q4_k"), Options{})
		err := UseKernel(p, h, spec(text))
		if err == nil || !strings.Contains(err.Error(), say) || strings.Contains(say, "needs") != errors.Is(err,
			plans.ErrISA) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
