package plans

import (
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
)

// llama160m is the preset of that name: a small llama with an untied head.
func llama160m(typ string) ModelShape {
	return ModelShape{
		Arch: "llama", Name: "llama-160m", Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072,
		Vocab: 32000, Context: 2048,
		Weights: []WeightShape{
			{"embed", 32000, 768, typ, 1}, {"q", 768, 768, typ, 12}, {"k", 768, 768, typ, 12}, {"v", 768, 768, typ, 12},
			{"o", 768, 768, typ, 12},
			{"gate", 3072, 768, typ, 12}, {"up", 3072, 768, typ, 12}, {"down", 768, 3072, typ, 12}, {"head", 32000,
				768, typ, 1},
		},
	}
}

func TestUniqueKeys(t *testing.T) {
	got := llama160m("q8_0").Unique()
	want := []WeightKey{{768, 768, "q8_0"}, {768, 3072, "q8_0"}, {3072, 768, "q8_0"}, {32000, 768, "q8_0"}}
	if !slices.Equal(got, want) {
		t.Errorf("Unique() = %v, want %v", got, want)
	}
	tied := llama160m("f16")
	tied.Weights = tied.Weights[:8] // no head: the embedding alone is never multiplied
	if slices.Contains(tied.Unique(), WeightKey{32000, 768, "f16"}) {
		t.Error("the embedding table is listed as a GEMM")
	}
}

func TestModelDigest(t *testing.T) {
	a, b := llama160m("f32"), llama160m("f32")
	b.Name = "another name"
	slices.Reverse(b.Weights)
	if a.Digest() != b.Digest() {
		t.Error("the digest depends on the name or on the order of the weights")
	}
	for name, change := range map[string]func(*ModelShape){
		"hidden": func(s *ModelShape) { s.Hidden++ },
		"type":   func(s *ModelShape) { s.Weights[0].Type = "f16" },
		"count":  func(s *ModelShape) { s.Weights[1].Count++ },
		"tied":   func(s *ModelShape) { s.Tied = true },
		"arch":   func(s *ModelShape) { s.Arch = "qwen2" },
	} {
		c := llama160m("f32")
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
	if err := llama160m("q4_0").Check(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*ModelShape){
		"hidden":   func(s *ModelShape) { s.Hidden = 0 },
		"layers":   func(s *ModelShape) { s.Layers = 1 << 30 },
		"kv_heads": func(s *ModelShape) { s.KVHeads = 5 },
		"vocab":    func(s *ModelShape) { s.Vocab = -1 },
		"weights":  func(s *ModelShape) { s.Weights = nil },
		"gate":     func(s *ModelShape) { s.Weights[5].N = 1 << 40 },
		"down":     func(s *ModelShape) { s.Weights[7].Type = "" },
	} {
		s := llama160m("q4_0")
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestKVBytesPerToken(t *testing.T) {
	s := llama160m("f32")
	for kv, want := range map[microkernel.KVType]int64{microkernel.KVF16: 2 * 12 * 768 * 2, microkernel.KVF32: 2 * 12 *
		768 * 4, microkernel.KVQ8: 2 * 12 * 768 * 34 / 32} {
		if got := s.KVBytesPerToken(kv); got != want {
			t.Errorf("%s: %d bytes, want %d", kv, got, want)
		}
	}
}
