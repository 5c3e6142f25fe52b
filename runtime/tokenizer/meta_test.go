package tokenizer

// fields is metadata by hand.
type fields map[string]any

func field[T any](m fields, key string) (T, bool) {
	v, ok := m[key].(T)
	return v, ok
}

func (m fields) String(key string) (string, bool)    { return field[string](m, key) }
func (m fields) Uint(key string) (uint64, bool)      { return field[uint64](m, key) }
func (m fields) Bool(key string) (bool, bool)        { return field[bool](m, key) }
func (m fields) Strings(key string) ([]string, bool) { return field[[]string](m, key) }
func (m fields) Floats(key string) ([]float32, bool) { return field[[]float32](m, key) }
func (m fields) Ints(key string) ([]int32, bool)     { return field[[]int32](m, key) }

// with is a copy with some fields changed; nil removes one.
func (m fields) with(changes fields) fields {
	out := fields{}
	for key, v := range m {
		out[key] = v
	}
	for key, v := range changes {
		if v == nil {
			delete(out, key)
		} else {
			out[key] = v
		}
	}
	return out
}

// bytesBPE is a byte-level vocabulary: all bytes (ids 0 to 255), the joins given as "left right" in
// the byte spelling, and the special tokens.
func bytesBPE(rules []string, special ...string) fields {
	var texts []string
	for b := range 256 {
		for r, spelled := range byteOfRune {
			if int(spelled) == b {
				texts = append(texts, string(rune(r)))
			}
		}
	}
	for _, rule := range rules {
		joined := ""
		for _, r := range rule {
			if r != ' ' {
				joined += string(r)
			}
		}
		texts = append(texts, joined)
	}
	types := make([]int32, len(texts)+len(special))
	for i := range types {
		types[i] = 1
		if i >= len(texts) {
			types[i] = 3
		}
	}
	return fields{
		keyModel: "gpt2", keyPre: "gpt-2",
		keyTokens: append(texts, special...), keyTypes: types, keyMerges: rules,
	}
}

// pieceSPM is an SPM vocabulary: <unk> <s> </s>, all bytes (ids 3 to 258), then the pieces, the
// first ones best.
func pieceSPM(pieces ...string) fields {
	texts := []string{"<unk>", "<s>", "</s>"}
	types := []int32{2, 3, 3}
	const hex = "0123456789ABCDEF"
	for b := range 256 {
		texts = append(texts, "<0x"+hex[b>>4:b>>4+1]+hex[b&15:b&15+1]+">")
		types = append(types, 6)
	}
	for _, piece := range pieces {
		texts = append(texts, piece)
		types = append(types, 1)
	}
	scores := make([]float32, len(texts))
	for i := range scores {
		scores[i] = -float32(i)
	}
	return fields{keyModel: "llama", keyTokens: texts, keyTypes: types, keyScores: scores}
}
