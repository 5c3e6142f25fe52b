package model

import "sandwich/runtime/gguf"

func init() {
	Register(Architecture{Name: "gemma-embedding", Decoder: gemma3, Vocabulary: gemmaEmbeddingVocabulary,
		Check: checkWindows,
		HF:    []string{gemmaBidirectional}, Knows: []string{"windows", "gelu", "linear"},
		ReadHF: func(h *HF, c *Config) error {
			if err := readGemma3HF(h, c); err != nil {
				return err
			}
			c.Tied, c.Bidirectional = false, true
			return h.require(map[string]int{"sliding_window": h.sliding()})
		},
		// Vera et al., EmbeddingGemma: Powerful and Lightweight Text Representations, 2025: gemma3
		// with bidirectional attention, also in windows.
		Read: func(m *Metadata, c *Config) {
			c.Bidirectional = true
			m.Windows(c, 6)
			c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 10000)
		}})
}

// gemmaEmbeddingVocabulary writes Gemma's vocabulary with an end token after each text.
func gemmaEmbeddingVocabulary(w *gguf.Writer, tokens int) { writeGemma(w, tokens, true) }
