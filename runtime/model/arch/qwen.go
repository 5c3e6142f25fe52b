package arch

import (
	"fmt"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "qwen2", HF: []string{"qwen2"}, Decoder: qwen2, Vocabulary: qwenVocabulary})
}

// qwen2 writes Yang et al., Qwen2 Technical Report, 2024: llama with biases of q, k and v.
func qwen2(b *model.Builder) {
	rope := b.Rope(model.Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")  // H [T, hidden]
		b.QKV(model.Usually) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                                // Y [T, hidden]
		b.Norm("ffn_norm")                         // H [T, hidden]
		b.FFN(model.SwiGLU)                        // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm")          // H [T, hidden]
	b.HeadBias(1, model.IfPresent) // Logits [wanted rows, vocab]
}

// qwenVocabulary writes a byte-level BPE vocabulary with the special tokens of Qwen.
func qwenVocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
	vocab.WriteBPE(w, tokens, "qwen2", vocab.ChatML, special, 0, 2, false)
}

func init() {
	Register(Architecture{Name: "qwen2moe", Decoder: qwen2moe, Vocabulary: qwenVocabulary, HF: []string{"qwen2_moe"},
		ReadHF: func(h *hf.File, c *model.Config) error {
			c.Experts = model.Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Shared: h.SharedFFN}
			if h.NormTopK != nil && *h.NormTopK {
				return fmt.Errorf("norm_topk_prob true is %w in qwen2_moe", model.ErrUnsupported)
			}
			return nil
		},
		Read: func(m *metadata.Reader, c *model.Config) {
			m.ExpertsOf(c)
			c.Experts.Shared = m.SizeOr("expert_shared_feed_forward_length", 1<<20, c.FFN)
		},
		Check: checkExperts,
	})
}

// qwen2moe writes qwen2 with experts, whose weights are not normalized, and a shared gated
// feed-forward (Yang et al., 2024, section 2.2.2).
func qwen2moe(b *model.Builder) {
	rope := b.Rope(model.Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")  // H [T, hidden]
		b.QKV(model.Usually) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope})
		b.Attend(model.Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                                // Y [T, hidden]
		b.Norm("ffn_norm")                         // H [T, hidden]
		b.Shared(model.SwiGLU)                     // Shared [T, shared ffn], Y [T, hidden]
		b.Mix(model.Mixture{Act: model.SwiGLU, Router: model.Router{Scale: 1}, Accumulate: true,
			Gate: "ffn_gate_inp_shexp"})
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

func init() {
	Register(Architecture{Name: "qwen3", HF: []string{"qwen3"}, Decoder: qwen3, Vocabulary: qwenVocabulary})
}

// qwen3 writes Yang et al., Qwen3 Technical Report, 2025: llama with norms of the heads of Q and K.
func qwen3(b *model.Builder) {
	rope := b.Rope(model.Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
		b.Attend(model.Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                                // Y [T, hidden]
		b.Norm("ffn_norm")                         // H [T, hidden]
		b.FFN(model.SwiGLU)                        // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

func init() {
	Register(Architecture{Name: "qwen3moe", HF: []string{"qwen3_moe"}, Decoder: qwen3moe, Vocabulary: qwenVocabulary,
		Read: func(m *metadata.Reader, c *model.Config) { m.ExpertsOf(c) },
		ReadHF: func(h *hf.File, c *model.Config) error {
			c.Experts = model.Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN}
			if h.NormTopK != nil && !*h.NormTopK {
				return fmt.Errorf("norm_topk_prob false is %w in qwen3_moe", model.ErrUnsupported)
			}
			return nil
		},
		Check: checkExperts,
	})
}

// qwen3moe writes qwen3 with a mixture of experts instead of each feed-forward.
func qwen3moe(b *model.Builder) {
	rope := b.Rope(model.Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for range b.Layers() {
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
		b.Attend(model.Attn{Scale: b.HeadScale()})                                          // Att [T, heads*headDim]
		b.AttnOut()                                                                         // Y [T, hidden]
		b.Norm("ffn_norm")                                                                  // H [T, hidden]
		b.Mix(model.Mixture{Act: model.SwiGLU, Router: model.Router{Norm: true, Scale: 1}}) // Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}
