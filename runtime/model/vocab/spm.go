package vocab

import (
	"fmt"

	"sandwich/runtime/gguf"
)

// WriteSPM writes a SentencePiece vocabulary of n tokens: <unk>, <s>, </s>, the bytes, then merged
// pieces with higher scores than the letters, which follow.
func WriteSPM(w *gguf.Writer, n int) {
	SPM{Special: []string{"<unk>", "<s>", "</s>"}, Unknown: 0, BOS: 1, EOS: 2, Template: chatPlain}.Write(w, n)
}

// SPM describes a SentencePiece vocabulary by its special tokens, which come first.
type SPM struct {
	Special           []string
	Unknown, BOS, EOS int
	Template          string
	Ends              bool // an end token follows each text
	Merged            bool // it has merge rules instead of scores, as Gemma 4's
}

// Write writes a vocabulary of n tokens.
func (s SPM) Write(w *gguf.Writer, n int) {
	var v vocabulary
	for i, token := range s.Special {
		typ := int32(Control)
		if i == s.Unknown {
			typ = Unknown
		}
		v.add(typ, token)
	}
	for b := range 256 {
		v.add(Byte, fmt.Sprintf("<0x%02X>", b))
	}
	first := len(v.tokens)
	v.scores = make([]float32, first)
	singles := pieceLetters("▁")
	for _, p := range pieces("▁", n-len(v.tokens)-len(singles)) {
		v.add(Normal, p.left+p.right)
		v.merges = append(v.merges, p.left+" "+p.right)
	}
	v.add(Normal, singles...)
	for i := len(v.scores); i < n; i++ {
		v.scores = append(v.scores, -float32(i-first+1))
	}
	if s.Merged {
		w.SetString("tokenizer.ggml.model", "gemma4")
		w.SetStrings("tokenizer.ggml.merges", v.merges)
	} else {
		w.SetString("tokenizer.ggml.model", "llama")
		w.SetString("tokenizer.ggml.pre", "default")
	}
	w.SetStrings("tokenizer.ggml.tokens", v.tokens)
	w.SetFloats("tokenizer.ggml.scores", v.scores)
	w.SetInts("tokenizer.ggml.token_type", v.types)
	w.SetUint32("tokenizer.ggml.bos_token_id", uint32(s.BOS))
	w.SetUint32("tokenizer.ggml.eos_token_id", uint32(s.EOS))
	w.SetUint32("tokenizer.ggml.unknown_token_id", uint32(s.Unknown))
	w.SetBool("tokenizer.ggml.add_bos_token", true)
	w.SetBool("tokenizer.ggml.add_eos_token", s.Ends)
	writeTemplate(w, s.Template)
}

// chatPlain is a chat template similar to that of the family, for synthetic vocabularies.
const chatPlain = `{{ bos_token }}{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}`
