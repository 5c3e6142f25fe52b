package engine

import (
	"fmt"
	"math"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans/heuristic"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/synth"
)

// hasPairs says that this CPU has a dot product of bfloat16.
func hasPairs() bool {
	host := microkernel.Host()
	return host.Has(microkernel.HasBF16) || host.Has(microkernel.HasArmBF16)
}

// TestBitEqualPairs is TestBitEqual for the bf16 path, which has one vector width: it compares
// threads, chunks and batches. In the mixed file some products that share their input read it in
// two forms.
func TestBitEqualPairs(t *testing.T) {
	skipUnderRace(t)
	if !hasPairs() {
		t.Skipf("this CPU (%s) has no dot product of bfloat16; use one with avx512_bf16 or NEON bf16",
			microkernel.Host())
	}
	for name, file := range map[string]*gguf.File{
		"bf16":    smallModel(t, "qwen3", gguf.BF16),
		"mixed":   smallFile(t, "qwen3", gguf.Q8_0, synth.Mix(gguf.BF16, gguf.Q8_0)),
		"experts": smallModel(t, "qwen3moe", gguf.BF16),
	} {
		t.Run(name, func(t *testing.T) {
			o := heuristic.Options{Compute: "bf16", Threads: 1}
			want := logitsAlone(t, file, o, 512)
			for _, chunk := range []int{1, 7, 64} {
				same(t, fmt.Sprintf("chunk %d", chunk), want, logitsAlone(t, file, o, chunk))
			}
			near(t, want, logitsAlone(t, file, heuristic.Options{Compute: "f32", Threads: 1}, 512))
			o.Threads = 2
			same(t, "two threads", want, logitsAlone(t, file, o, 512))
			same(t, "batch of 8", want, logitsInBatch(t, file, o, 8))
		})
	}
}

// near wants logits that differ, since activations were rounded, but not by much.
func near(t *testing.T, got, want [][]float32) {
	t.Helper()
	var square, all float64
	for i := range want {
		for j, w := range want[i] {
			square += math.Pow(float64(got[i][j]-w), 2)
			all += float64(w) * float64(w)
		}
	}
	if r := math.Sqrt(square / all); r == 0 || r > 0.05 {
		t.Errorf("logits are %.4f of their size away from those of float32", r)
	}
}
