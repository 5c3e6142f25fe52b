package vocab

import "sandwich/runtime/gguf"

// WriteBPE writes a byte-level BPE vocabulary of n tokens: the bytes, merges, then the special
// tokens, of which those with the indices bos and eos begin and end a text.
func WriteBPE(w *gguf.Writer, n int, pre, template string, special []string, bos, eos int, addBOS bool) {
	var v vocabulary
	space := ""
	for b := range 256 {
		c := string(byteRune(byte(b)))
		if b == ' ' {
			space = c
		}
		v.add(Normal, c)
	}
	for _, p := range pieces(space, n-256-len(special)) {
		v.add(Normal, p.left+p.right)
		v.merges = append(v.merges, p.left+" "+p.right)
	}
	first := uint32(len(v.tokens))
	v.add(Control, special...)
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
