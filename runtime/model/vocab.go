package model

import (
	"fmt"

	"sandwich/runtime/gguf"
)

// Synthetic vocabularies: tokenizers of the real kind and size with invented pieces. Each piece is
// the merge of two earlier ones, so that any text can be encoded, any token is text, and the header
// has the size of a real model's.

// Token types of GGUF.
const (
	tokenNormal  = 1
	tokenUnknown = 2
	tokenControl = 3
	tokenUnused  = 5
	tokenByte    = 6
)

// letters is sorted by frequency in English, which determines the order of merges.
const letters = "etaoinshrdlucmfwypvbgkjqxz"

// vocabulary is a tokenizer under construction.
type vocabulary struct {
	tokens []string
	types  []int32
	merges []string
	scores []float32
}

// add adds tokens of a type.
func (v *vocabulary) add(typ int32, tokens ...string) {
	for _, t := range tokens {
		v.tokens = append(v.tokens, t)
		v.types = append(v.types, typ)
	}
}

// minVocab is the size of the smallest synthetic vocabulary: bytes, letters, special tokens and
// some merges.
const minVocab = 320

// writeVocabulary writes the metadata of a tokenizer of the architecture's kind.
func writeVocabulary(w *gguf.Writer, c Config) error {
	if c.Vocab < minVocab {
		return fmt.Errorf("a synthetic vocabulary of %d tokens is too small; use at least %d", c.Vocab, minVocab)
	}
	arch, err := archOf(c.Arch)
	if err != nil {
		return err
	}
	if c.Template != "" {
		w.SetString(keyTemplate, c.Template)
	}
	if c.Tokenizer != nil {
		c.Tokenizer.WriteTokens(w, c.Vocab)
		return nil
	}
	arch.Vocabulary(w, c.Vocab)
	return nil
}

// writeSPM writes a SentencePiece vocabulary of n tokens: <unk>, <s>, </s>, the bytes, then merged
// pieces with higher scores than the letters, which follow.
func writeSPM(w *gguf.Writer, n int) {
	spm{special: []string{"<unk>", "<s>", "</s>"}, unknown: 0, bos: 1, eos: 2, template: chatPlain}.write(w, n)
}

// spm describes a SentencePiece vocabulary by its special tokens, which come first.
type spm struct {
	special           []string
	unknown, bos, eos int
	template          string
	ends              bool // an end token follows each text
	merged            bool // it has merge rules instead of scores, as Gemma 4's
}

// write writes a vocabulary of n tokens.
func (s spm) write(w *gguf.Writer, n int) {
	var v vocabulary
	for i, token := range s.special {
		typ := int32(tokenControl)
		if i == s.unknown {
			typ = tokenUnknown
		}
		v.add(typ, token)
	}
	for b := range 256 {
		v.add(tokenByte, fmt.Sprintf("<0x%02X>", b))
	}
	first := len(v.tokens)
	v.scores = make([]float32, first)
	singles := pieceLetters("▁")
	for _, p := range pieces("▁", n-len(v.tokens)-len(singles)) {
		v.add(tokenNormal, p.left+p.right)
		v.merges = append(v.merges, p.left+" "+p.right)
	}
	v.add(tokenNormal, singles...)
	for i := len(v.scores); i < n; i++ {
		v.scores = append(v.scores, -float32(i-first+1))
	}
	if s.merged {
		w.SetString("tokenizer.ggml.model", "gemma4")
		w.SetStrings("tokenizer.ggml.merges", v.merges)
	} else {
		w.SetString("tokenizer.ggml.model", "llama")
		w.SetString("tokenizer.ggml.pre", "default")
	}
	w.SetStrings("tokenizer.ggml.tokens", v.tokens)
	w.SetFloats("tokenizer.ggml.scores", v.scores)
	w.SetInts("tokenizer.ggml.token_type", v.types)
	w.SetUint32("tokenizer.ggml.bos_token_id", uint32(s.bos))
	w.SetUint32("tokenizer.ggml.eos_token_id", uint32(s.eos))
	w.SetUint32("tokenizer.ggml.unknown_token_id", uint32(s.unknown))
	w.SetBool("tokenizer.ggml.add_bos_token", true)
	w.SetBool("tokenizer.ggml.add_eos_token", s.ends)
	writeTemplate(w, s.template)
}

// writeBPE writes a byte-level BPE vocabulary of n tokens: the bytes, merges, then the special
// tokens, of which those with the indices bos and eos begin and end a text.
func writeBPE(w *gguf.Writer, n int, pre, template string, special []string, bos, eos int, addBOS bool) {
	var v vocabulary
	space := ""
	for b := range 256 {
		c := string(byteRune(byte(b)))
		if b == ' ' {
			space = c
		}
		v.add(tokenNormal, c)
	}
	for _, p := range pieces(space, n-256-len(special)) {
		v.add(tokenNormal, p.left+p.right)
		v.merges = append(v.merges, p.left+" "+p.right)
	}
	first := uint32(len(v.tokens))
	v.add(tokenControl, special...)
	w.SetString("tokenizer.ggml.model", "gpt2")
	w.SetString("tokenizer.ggml.pre", pre)
	w.SetStrings("tokenizer.ggml.tokens", v.tokens)
	w.SetInts("tokenizer.ggml.token_type", v.types)
	w.SetStrings("tokenizer.ggml.merges", v.merges)
	w.SetUint32("tokenizer.ggml.bos_token_id", first+uint32(bos))
	w.SetUint32("tokenizer.ggml.eos_token_id", first+uint32(eos))
	w.SetUint32("tokenizer.ggml.padding_token_id", first)
	w.SetBool("tokenizer.ggml.add_bos_token", addBOS)
	writeTemplate(w, template)
}

// writeTemplate writes a chat template unless the file has one.
func writeTemplate(w *gguf.Writer, template string) {
	if !w.Has(keyTemplate) {
		w.SetString(keyTemplate, template)
	}
}

const keyTemplate = "tokenizer.chat_template"

// byteRune returns the character for a byte in byte-level BPE: printable bytes map to themselves,
// the others to U+0100 and following, in order.
func byteRune(b byte) rune {
	printable := func(c int) bool { return c >= 33 && c < 127 || c >= 161 && c < 173 || c >= 174 }
	if printable(int(b)) {
		return rune(b)
	}
	n := rune(256)
	for c := range int(b) {
		if !printable(c) {
			n++
		}
	}
	return n
}

// pieceLetters returns the pieces of one character: the word mark and the letters.
func pieceLetters(space string) []string {
	out := []string{space}
	for _, c := range letters {
		out = append(out, string(c))
	}
	return out
}

// piece is a merge of two earlier pieces.
type piece struct{ left, right string }

// pieces returns n merges, frequent ones first: pairs of letters (the first may be the word mark),
// then pairs of such pairs. A pair with the word mark is only the first part of another merge. All
// results are distinct. n is at most about 470,000.
func pieces(space string, n int) []piece {
	singles := pieceLetters(space)
	pairs := diagonal(singles, singles[1:], n)
	if len(pairs) == n {
		return pairs
	}
	var front, inner []string
	for _, p := range pairs {
		front = append(front, p.left+p.right)
		if p.left != space {
			inner = append(inner, p.left+p.right)
		}
	}
	return append(pairs, diagonal(front, inner, n-len(pairs))...)
}

// diagonal returns up to n combinations of a left and a right part, in order of the sum of their
// indices.
func diagonal(left, right []string, n int) []piece {
	var out []piece
	for sum := range len(left) + len(right) - 1 {
		for i := max(0, sum-len(right)+1); i <= min(sum, len(left)-1); i++ {
			if len(out) == n {
				return out
			}
			out = append(out, piece{left[i], right[sum-i]})
		}
	}
	return out
}

// chatML is a chat template similar to that of the family, for synthetic vocabularies.
const chatML = `{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// chatLFM2 is a chat template similar to that of the family, for synthetic vocabularies.
const chatLFM2 = `{{ bos_token }}` + chatML

// chatLlama3 is a chat template similar to that of the family, for synthetic vocabularies.
const chatLlama3 = `{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>

{{ message['content'] }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}`

// chatDeepSeek is a chat template similar to that of the family, for synthetic vocabularies.
const chatDeepSeek = `{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}<｜Assistant｜>{{ message['content'] }}<｜end▁of▁sentence｜>{% elif message['role'] == 'user' %}<｜User｜>{{ message['content'] }}{% else %}{{ message['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}<｜Assistant｜>{% endif %}`

// chatLlama4 is a chat template similar to that of the family, for synthetic vocabularies.
const chatLlama4 = `{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}<|header_start|>{{ message['role'] }}<|header_end|>

{{ message['content'] }}<|eot|>{% endfor %}{% if add_generation_prompt %}<|header_start|>assistant<|header_end|>

{% endif %}`

// chatGemma is a chat template similar to that of the family, for synthetic vocabularies.
const chatGemma = `{{ bos_token }}{% for message in messages %}<start_of_turn>{{ 'model' if message['role'] == 'assistant' else message['role'] }}
{{ message['content'] }}<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %}`

// chatGemma4 is a chat template similar to that of the family, for synthetic vocabularies.
const chatGemma4 = `{{ bos_token }}{% for message in messages %}<|turn>{{ 'model' if message['role'] == 'assistant' else message['role'] }}
{{ message['content'] }}<turn|>
{% endfor %}{% if add_generation_prompt %}<|turn>model
{% endif %}`

// chatHarmony is a chat template similar to that of the family, for synthetic vocabularies.
const chatHarmony = `{% if tools %}<|start|>developer<|message|># Tools

namespace functions {
{% for tool in tools %}// {{ tool.function.description }}
type {{ tool.function.name }} = (_: {{ tool.function.parameters | tojson }}) => any;
{% endfor %}}<|end|>{% endif %}{% set last = namespace(name='') %}{% for message in messages %}{% if message['role'] == 'assistant' and message['tool_calls'] %}{% set call = message['tool_calls'][0].function %}{% set last.name = call.name %}<|start|>assistant<|channel|>commentary to=functions.{{ call.name }} <|constrain|>json<|message|>{{ call.arguments | tojson }}<|call|>{% elif message['role'] == 'assistant' %}<|start|>assistant<|channel|>final<|message|>{{ message['content'] }}<|end|>{% elif message['role'] == 'tool' %}<|start|>functions.{{ last.name }} to=assistant<|channel|>commentary<|message|>{{ message['content'] }}<|end|>{% else %}<|start|>{{ message['role'] }}<|message|>{{ message['content'] }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}`

// chatMistral is a chat template similar to that of the family, for synthetic vocabularies.
const chatMistral = `{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}{{ message['content'] }}</s>{% else %}[INST]{{ message['content'] }}[/INST]{% endif %}{% endfor %}`

// chatGranite is a chat template similar to that of the family, for synthetic vocabularies.
const chatGranite = `{% for message in messages %}<|start_of_role|>{{ message['role'] }}<|end_of_role|>{{ message['content'] }}<|end_of_text|>
{% endfor %}{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}`

// chatGLM is a chat template similar to that of the family, for synthetic vocabularies.
const chatGLM = `[gMASK]<sop>{% for message in messages %}<|{{ message['role'] }}|>
{{ message['content'] }}{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}`

// chatPhi3 is a chat template similar to that of the family, for synthetic vocabularies.
const chatPhi3 = `{% for message in messages %}<|{{ message['role'] }}|>
{{ message['content'] }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}`

// chatPlain is a chat template similar to that of the family, for synthetic vocabularies.
const chatPlain = `{{ bos_token }}{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}`
