package heuristic

import (
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
)

// TestSlicesEndTogether lays out weights whose width divides badly: no thread may be left with much
// more than its share, counted by handing out every slice.
func TestSlicesEndTogether(t *testing.T) {
	features, err := microkernel.ParseFeatures("avx2,avx512")
	if err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 2, 3, 8, 24} {
		c := Cores{Threads: threads, L1: 32 << 10, L2: 1 << 20}
		h := host{Cores: c, features: features, isa: microkernel.AVX512, spaces: map[spaceKey][]microkernel.Spec{},
			chosen: map[choice]microkernel.Spec{}}
		for _, key := range []plans.WeightKey{{N: 5632, K: 2048, Type: "f32"}, {N: 11008, K: 4096, Type: "f32"},
			{N: 4864, K: 896, Type: "f32"}, {N: 151936, K: 1024, Type: "f32"}} {
			for _, m := range []int{1, 16, 64, 128, 300, 1024} {
				s, err := h.schedule(key, microkernel.F32, microkernel.ComputeF32, m)
				if err != nil {
					t.Fatal(err)
				}
				most, share := busiest(s, key.N, m, threads), float64(key.N*((m+s.BM-1)/s.BM))/float64(threads)
				finest := 1 + float64(s.Kernel.NR)/share // one tile of columns more than its share
				if waste := float64(most) / share; waste > max(1.05, finest) {
					t.Errorf("%dx%d, M = %d, %d threads, %s: the busiest thread has %.2f of its share", key.N, key.K, m,
						threads, s, waste)
				}
			}
		}
	}
}

// busiest assigns slices to threads one after another, rows first, and returns the most columns of
// a thread.
func busiest(s plans.Schedule, n, m, threads int) int {
	rows := (m + s.BM - 1) / s.BM
	columns := make([]int, threads)
	for task := range slicesOf(s, n, m) {
		from := task / rows * s.BN
		columns[task%threads] += min(s.BN, n-from)
	}
	largest := 0
	for _, c := range columns {
		largest = max(largest, c)
	}
	return largest
}

// TestKeptSlicesAreEven divides products of kernels whose sums stay in tiles among one to sixteen
// threads. Lower slices leave less to do to the busiest thread, and no division is worse.
func TestKeptSlicesAreEven(t *testing.T) {
	for kernel, typ := range map[string]string{"avx512/int8-k/q4_k/32x64/ku32/load/amx/spread": "q4_k",
		"avx512/int8-k/q4_k/32x64/ku32/overlap/amx/spread":     "q4_k",
		"avx512/bf16-tile/bf16/32x64/ku32/load/tdpbf16/spread": "bf16"} {
		spec, err := microkernel.ParseSpec(kernel)
		if err != nil {
			t.Fatal(err)
		}
		improved := 0
		for _, n := range []int{1024, 1152, 1536, 2048, 6912, 8192} {
			for threads := 1; threads <= 16; threads++ {
				c, key := Cores{Threads: threads, L1: 48 << 10, L2: 2 << 20}, plans.WeightKey{Type: typ, N: n, K: 2048}
				s, err := c.Slice(spec, false, key, 512)
				if err != nil {
					t.Fatal(err)
				}
				before := s
				before.BM, before.BN = 512, evenCut(n, keptColumns, spec.NR)
				c.shareAmong(&before, key, 512, keptChunks)
				now := waste(s, n, 512, threads) * keptWork(spec, s.BM) / float64(s.BM)
				then := waste(before, n, 512, threads) * keptWork(spec, before.BM) / float64(before.BM)
				if now > then {
					t.Errorf("%s, %d columns, %d threads: slices of %dx%d take %.3f of the time of %dx%d", kernel, n,
						threads, s.BM, s.BN, now/then, before.BM, before.BN)
				}
				if now*1.05 < then {
					improved++
				}
				if s.BM < minKeptRows {
					t.Errorf("%s: slices of %d rows", kernel, s.BM)
				}
			}
		}
		t.Logf("%s: %d of 96 divisions are faster by 5 %% or more", kernel, improved)
		if improved < 10 {
			t.Errorf("%s: %d of 96 divisions are more even", kernel, improved)
		}
	}
}
