package vocab

import (
	"fmt"

	"sandwich/runtime/gguf"
)

// Copy reads the tokenizer of a file. It fails unless the file has byte-level BPE.
func Copy(f *gguf.File) (*Copied, error) {
	b := &Copied{}
	if kind, _ := f.String("tokenizer.ggml.model"); kind != "gpt2" {
		return nil, fmt.Errorf("its tokenizer is %q: use a file with byte-level BPE (gpt2)", kind)
	}
	b.pre, _ = f.String("tokenizer.ggml.pre")
	b.tokens, _ = f.Strings("tokenizer.ggml.tokens")
	b.types, _ = f.Ints("tokenizer.ggml.token_type")
	b.merges, _ = f.Strings("tokenizer.ggml.merges")
	if len(b.tokens) < 256 || len(b.types) != len(b.tokens) || len(b.merges) == 0 {
		return nil, fmt.Errorf("its tokenizer has %d tokens, %d token types and %d merges: the file is damaged",
			len(b.tokens), len(b.types), len(b.merges))
	}
	for _, name := range []string{"bos", "eos", "eot", "eom", "padding", "unknown"} {
		s := specialToken{name: name}
		if id, ok := f.Uint(s.key()); ok && id < uint64(len(b.tokens)) {
			s.id = uint32(id)
			b.special = append(b.special, s)
		}
	}
	for _, name := range []string{"add_bos_token", "add_eos_token", "add_space_prefix"} {
		if on, ok := f.Bool("tokenizer.ggml." + name); ok {
			b.flags = append(b.flags, flag{name, on})
		}
	}
	return b, nil
}

// Copied is the tokenizer of another file.
type Copied struct {
	pre            string
	tokens, merges []string
	types          []int32
	special        []specialToken
	flags          []flag
}

// specialToken is the name of a special token in the metadata and its id.
type specialToken struct {
	name string
	id   uint32
}

// key returns the metadata key of the id.
func (s specialToken) key() string { return "tokenizer.ggml." + s.name + "_token_id" }

// flag is a boolean of the metadata.
type flag struct {
	name string
	on   bool
}

// Len returns the number of tokens.
func (b *Copied) Len() int { return len(b.tokens) }

// WriteTokens writes a tokenizer of n tokens that begins with those of b.
func (b *Copied) WriteTokens(w *gguf.Writer, n int) {
	v := vocabulary{tokens: b.tokens, types: b.types, merges: b.merges}
	met := make(map[string]bool, n)
	for _, t := range b.tokens {
		met[t] = true
	}
	// Merges whose result is a token of b are omitted.
	for _, p := range pieces(string(byteRune(' ')), n) {
		if whole := p.left + p.right; len(v.tokens) < n && met[p.left] && met[p.right] && !met[whole] {
			met[whole] = true
			v.add(Normal, whole)
			v.merges = append(v.merges, p.left+" "+p.right)
		}
	}
	for i := len(v.tokens); i < n; i++ {
		v.add(Unused, fmt.Sprintf("[unused %d]", i))
	}
	w.SetString("tokenizer.ggml.model", "gpt2")
	w.SetString("tokenizer.ggml.pre", b.pre)
	w.SetStrings("tokenizer.ggml.tokens", v.tokens)
	w.SetInts("tokenizer.ggml.token_type", v.types)
	w.SetStrings("tokenizer.ggml.merges", v.merges)
	for _, s := range b.special {
		w.SetUint32(s.key(), s.id)
	}
	for _, f := range b.flags {
		w.SetBool("tokenizer.ggml."+f.name, f.on)
	}
}
