package arch

import (
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/vocab"
)

func init() {
	Register(Architecture{Name: "smollm3", HF: []string{"smollm3"}, Decoder: smollm3, Vocabulary: smollmVocabulary})
}

// smollm3 writes llama without positions in every fourth layer (Bakouch et al.: SmolLM3, 2025; Yang
// et al.: Rope to Nope and Back Again, 2025).
func smollm3(b *model.Builder) {
	rope := b.Rope(model.Rope{})
	b.Embed(1) // X [T, hidden]
	for i := range b.Layers() {
		r := rope
		if i%4 == 3 {
			r = nil
		}
		b.Norm("attn_norm")    // H [T, hidden]
		b.QKV(model.IfPresent) // Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		b.Rotate(model.Rotation{Rope: r})
		b.Attend(model.Attn{Scale: b.HeadScale()}) // Att [T, heads*headDim]
		b.AttnOut()                                // Y [T, hidden]
		b.Norm("ffn_norm")                         // H [T, hidden]
		b.FFN(model.SwiGLU)                        // Gate [T, ffn], Y [T, hidden]
	}
	b.Norm("output_norm") // H [T, hidden]
	b.Head(1)             // Logits [wanted rows, vocab]
}

// smollmVocabulary writes a byte-level BPE vocabulary with the tokens of ChatML.
func smollmVocabulary(w *gguf.Writer, tokens int) {
	vocab.WriteBPE(w, tokens, "smollm", vocab.ChatML, []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, 0, 2,
		false)
}
