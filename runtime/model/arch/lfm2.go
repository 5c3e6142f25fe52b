package arch

import (
	"cmp"
	"fmt"
	"slices"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/hf"
	"sandwich/runtime/model/metadata"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "lfm2", Decoder: lfm2, Vocabulary: lfm2Vocabulary,
		HF: []string{"lfm2"}, ReadHF: readLFM2HF,
		Read: readShortConv,
		Check: func(c model.Config) error {
			if err := checkConv(c); err != nil {
				return err
			}
			return checkDense(c)
		},
	})
	Register(Architecture{Name: "lfm2moe", Decoder: lfm2, Vocabulary: lfm2Vocabulary,
		HF: []string{"lfm2_moe"}, ReadHF: readLFM2ExpertsHF,
		Read: func(m *metadata.Reader, c *model.Config) {
			readShortConv(m, c)
			m.Experts(c)
			c.Experts.Dense = m.CountOr("leading_dense_block_count", 1<<10)
			c.Gating = model.Router{Score: readGating(m).Score, Norm: true} // other keys are ignored, as in llama.cpp
		},
		Check: func(c model.Config) error {
			if err := checkConv(c); err != nil {
				return err
			}
			return c.Experts.Check()
		},
	})
}

// readShortConv reads the metadata of layers with a short convolution.
func readShortConv(m *metadata.Reader, c *model.Config) {
	c.Recurrence.Conv = m.Size("shortconv.l_cache", metadata.MaxConv)
	c.Windows.Size = m.CountOr("attention.sliding_window", 1<<26)
}

// checkConv returns an error for a convolution of fewer than two positions.
func checkConv(c model.Config) error {
	if c.Recurrence.Conv < 2 {
		return fmt.Errorf("a convolution of %d positions is too short, it needs 2: the file is damaged",
			c.Recurrence.Conv)
	}
	return nil
}

// lfm2 writes Liquid AI: LFM2 Technical Report, 2025: gated short convolutions, and attention in
// the layers that have KV heads. lfm2moe has experts in all layers but the first ones.
func lfm2(b *model.Builder) {
	rope := b.Rope(model.Rope{Neox: true})
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		b.Norm("attn_norm") // H [T, hidden]
		if b.LayerHeads.KV == 0 {
			b.ShortConv() // Mix [T, 3*hidden], Att and Y [T, hidden]
		} else {
			b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
			b.Rotate(model.Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
			b.Attend(model.Attn{Scale: b.HeadScale(), Window: b.Windows.Size}) // Att [T, heads*headDim]
			b.AttnOut()                                                        // Y [T, hidden]
		}
		b.Norm("ffn_norm") // H [T, hidden]
		if !b.Experts.In(i) {
			b.FFN(model.SwiGLU) // Gate [T, ffn], Y [T, hidden]
			continue
		}
		b.Mix(model.Mixture{Act: model.SwiGLU, Router: biasedRouter(b, model.Always)}) // Y [T, hidden]
	}
	b.Norm("token_embd_norm") // H [T, hidden]
	b.Head(1)                 // Logits [wanted rows, vocab]
}

// lfm2Vocabulary writes a byte-level BPE vocabulary with the tokens of ChatML.
func lfm2Vocabulary(w *gguf.Writer, tokens int) {
	special := []string{"<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"}
	vocab.WriteBPE(w, tokens, "lfm2", chatLFM2, special, 1, 4, true)
}

// readLFM2HF reads which layers have attention, and computes the width of the feed-forward.
func readLFM2HF(h *hf.File, c *model.Config) error {
	var f struct {
		NormEps    float64 `json:"norm_eps"`
		ShortConv  int     `json:"conv_L_cache"`
		ConvBias   bool    `json:"conv_bias"`
		BlockFFN   int     `json:"block_ff_dim"`
		BlockTimes float64 `json:"block_ffn_dim_multiplier"`
		BlockOf    int     `json:"block_multiple_of"`
		BlockAuto  *bool   `json:"block_auto_adjust_ff_dim"`
		FullLayers []int   `json:"full_attn_idxs"`
		TiedOld    *bool   `json:"tie_embedding"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if f.ConvBias {
		return fmt.Errorf("convolutions with a bias (conv_bias) are %w", model.ErrUnsupported)
	}
	c.Recurrence.Conv, c.Eps = f.ShortConv, cmp.Or(f.NormEps, c.Eps)
	c.Tied = true
	for _, tied := range []*bool{h.Tied, f.TiedOld} {
		if tied != nil {
			c.Tied = *tied
		}
	}
	if c.FFN = cmp.Or(f.BlockFFN, h.FFN); h.ModelType != "lfm2_moe" && (f.BlockAuto == nil || *f.BlockAuto) {
		of := cmp.Or(f.BlockOf, 256)
		n := int(cmp.Or(f.BlockTimes, 1) * float64(2*c.FFN/3))
		if of < 1 || n < 1 || n > 1<<20 {
			return fmt.Errorf("a feed-forward of %d rounded to a multiple of %d (block_multiple_of) is out of range",
				n, of)
		}
		c.FFN = (n + of - 1) / of * of
	}
	attends, err := h.LayersOfKind("full_attention", "conv")
	if err != nil {
		return err
	}
	if attends == nil && f.FullLayers == nil {
		return h.Require(map[string]int{"layer_types": 0})
	}
	if err := h.Require(map[string]int{"conv_L_cache": f.ShortConv}); err != nil {
		return err
	}
	if h.Layers < 1 || h.Layers > 1<<10 {
		return nil // Check returns the error
	}
	c.KVHeadsOf = make([]int, h.Layers)
	for i := range c.KVHeadsOf {
		if attends != nil && attends[i] || attends == nil && slices.Contains(f.FullLayers, i) {
			c.KVHeadsOf[i] = c.KVHeads
		}
	}
	return nil
}

// readLFM2ExpertsHF reads experts in addition. Their weights must be normalized.
func readLFM2ExpertsHF(h *hf.File, c *model.Config) error {
	var f struct {
		DenseLayersFirst int `json:"num_dense_layers"`
	}
	if err := h.Decode(&f); err != nil {
		return err
	}
	if (h.NormTopK != nil && !*h.NormTopK) || cmp.Or(h.RoutedTimes, 1) != 1 {
		return fmt.Errorf("norm_topk_prob false or a routed_scaling_factor other than 1 is %w in %s",
			model.ErrUnsupported, h.ModelType)
	}
	c.Experts = model.Experts{Count: h.Experts, Used: h.ExpertsUsed, FFN: h.ExpertFFN, Dense: f.DenseLayersFirst}
	c.Gating = model.Router{Score: model.Sigmoid, Norm: true}
	return readLFM2HF(h, c)
}

// chatLFM2 is a chat template similar to that of the family, for synthetic vocabularies.
const chatLFM2 = `{{ bos_token }}` + vocab.ChatML
