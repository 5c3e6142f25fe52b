package vocab

import "sandwich/runtime/gguf"

// WriteWordPiece writes a WordPiece vocabulary that begins with BERT's special tokens.
func WriteWordPiece(w *gguf.Writer, tokens int) {
	const start = "▁" // of a word
	var v vocabulary
	v.add(Control, "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
	for _, c := range letters + ".,!?'-0123456789" {
		v.add(Normal, start+string(c), string(c))
	}
	for _, p := range pieces(start, tokens-len(v.tokens)+len(letters)) {
		if p.left != start && len(v.tokens) < tokens { // single letters at the start of a word are already listed
			v.add(Normal, p.left+p.right)
		}
	}
	w.SetString("tokenizer.ggml.model", "bert")
	w.SetString("tokenizer.ggml.pre", "default")
	w.SetStrings("tokenizer.ggml.tokens", v.tokens)
	w.SetInts("tokenizer.ggml.token_type", v.types)
	w.SetUint32("tokenizer.ggml.token_type_count", 2)
	for _, s := range []specialToken{{"padding", 0}, {"unknown", 1}, {"cls", 2}, {"bos", 2}, {"seperator", 3},
		{"eos", 3}, {"mask", 4}} {
		w.SetUint32(s.key(), s.id)
	}
}
