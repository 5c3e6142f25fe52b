package plans_test

import (
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/internal/plantest"
)

func TestUniqueKeys(t *testing.T) {
	got := plantest.Llama160M("q8_0").Unique()
	want := []plans.WeightKey{{768, 768, "q8_0"}, {768, 3072, "q8_0"}, {3072, 768, "q8_0"}, {32000, 768, "q8_0"}}
	if !slices.Equal(got, want) {
		t.Errorf("Unique() = %v, want %v", got, want)
	}
	tied := plantest.Llama160M("f16")
	tied.Weights = tied.Weights[:8] // no head: the embedding alone is never multiplied
	if slices.Contains(tied.Unique(), plans.WeightKey{N: 32000, K: 768, Type: "f16"}) {
		t.Error("the embedding table is listed as a GEMM")
	}
}

func TestModelDigest(t *testing.T) {
	a, b := plantest.Llama160M("f32"), plantest.Llama160M("f32")
	b.Name = "another name"
	slices.Reverse(b.Weights)
	if a.Digest() != b.Digest() {
		t.Error("the digest depends on the name or on the order of the weights")
	}
	for name, change := range map[string]func(*plans.ModelShape){
		"hidden": func(s *plans.ModelShape) { s.Hidden++ },
		"type":   func(s *plans.ModelShape) { s.Weights[0].Type = "f16" },
		"count":  func(s *plans.ModelShape) { s.Weights[1].Count++ },
		"tied":   func(s *plans.ModelShape) { s.Tied = true },
		"arch":   func(s *plans.ModelShape) { s.Arch = "qwen2" },
	} {
		c := plantest.Llama160M("f32")
		change(&c)
		if c.Digest() == a.Digest() {
			t.Errorf("the digest does not see %s", name)
		}
	}
	if !strings.HasPrefix(a.Digest(), "sha256:") || len(a.Digest()) != 7+64 {
		t.Errorf("digest %q", a.Digest())
	}
}

func TestModelShapeCheck(t *testing.T) {
	if err := plantest.Llama160M("q4_0").Check(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*plans.ModelShape){
		"hidden":   func(s *plans.ModelShape) { s.Hidden = 0 },
		"layers":   func(s *plans.ModelShape) { s.Layers = 1 << 30 },
		"kv_heads": func(s *plans.ModelShape) { s.KVHeads = 5 },
		"vocab":    func(s *plans.ModelShape) { s.Vocab = -1 },
		"weights":  func(s *plans.ModelShape) { s.Weights = nil },
		"gate":     func(s *plans.ModelShape) { s.Weights[5].N = 1 << 40 },
		"down":     func(s *plans.ModelShape) { s.Weights[7].Type = "" },
		"head_dim": func(s *plans.ModelShape) { s.HeadDim = 1 << 24 },
		"up": func(s *plans.ModelShape) {
			s.Weights[6].N, s.Weights[6].K, s.Weights[6].Count = 1<<24, 1<<24, 1<<20 // more bytes than int64 holds
		},
	} {
		s := plantest.Llama160M("q4_0")
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestKVBytesPerToken(t *testing.T) {
	s := plantest.Llama160M("f32")
	for kv, want := range map[microkernel.KVType]int64{microkernel.KVF16: 2 * 12 * 768 * 2, microkernel.KVF32: 2 * 12 *
		768 * 4, microkernel.KVQ8: 2 * 12 * 768 * 34 / 32} {
		if got := s.KVBytesPerToken(kv); got != want {
			t.Errorf("%s: %d bytes, want %d", kv, got, want)
		}
	}
}
