// Package vocab writes the metadata of tokenizers for synthetic models.
package vocab

// Synthetic vocabularies: tokenizers of the real kind and size with invented pieces. Each piece is
// the merge of two earlier ones, so that any text can be encoded, any token is text, and the header
// has the size of a real model's.

// Token types of GGUF.
const (
	Normal  = 1
	Unknown = 2
	Control = 3
	Unused  = 5
	Byte    = 6
)

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

// MinTokens is the size of the smallest synthetic vocabulary: bytes, letters, special tokens and
// some merges.
const MinTokens = 320
