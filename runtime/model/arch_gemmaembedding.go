package model

import "sandwich/runtime/gguf"

func init() {
	Register(Architecture{Name: "gemma-embedding", Decoder: gemma3, Vocabulary: gemmaEmbeddingVocabulary,
		Check: checkWindows,
		// Vera et al., EmbeddingGemma: Powerful and Lightweight Text Representations, 2025: gemma3
		// whose rows see each other in both directions, its windows too.
		Read: func(m *Metadata, c *Config) {
			c.Both = true
			m.Windows(c, 6)
			c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 10000)
		}})
}

// gemmaEmbeddingVocabulary is Gemma's, with an end behind each text.
func gemmaEmbeddingVocabulary(w *gguf.Writer, tokens int) { writeGemma(w, tokens, true) }
