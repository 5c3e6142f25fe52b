package tokenizer

import (
	"bytes"
	"fmt"
	"strings"

	"sandwich/runtime/tokenizer/internal/tables"
)

// New reads the vocabulary of a model. It returns an error for an unknown tokenizer.ggml.model or
// tokenizer.ggml.pre, for an SPM vocabulary without scores, and for inconsistent metadata.
func New(meta Metadata) (*Tokenizer, error) {
	texts, ok := meta.Strings(keyTokens)
	if !ok || len(texts) == 0 {
		return nil, fmt.Errorf("the model has no vocabulary (%s): use a GGUF file converted with its tokenizer",
			keyTokens)
	}
	if len(texts) > maxTokens || totalBytes(texts) > maxVocabBytes {
		return nil, fmt.Errorf("the vocabulary has %d tokens, more than any model has: the file is damaged", len(texts))
	}
	t := &Tokenizer{user: tables.NewMatcher(), special: tables.NewMatcher(), ends: map[int32]bool{}, spaceSym: -1}
	t.scratches.New = func() any { return new(scratch) }
	var err error
	if t.attrs, err = readAttrs(meta, len(texts)); err != nil {
		return nil, err
	}
	switch model, _ := meta.String(keyModel); model {
	case "llama":
		err = t.loadSPM(meta, texts)
	case "gpt2":
		err = t.loadBPE(meta, texts)
	case "bert":
		err = t.loadWordPiece(texts)
	case "t5":
		err = t.loadUnigram(meta, texts)
	case "gemma4":
		err = t.loadSpacedBPE(meta, texts)
	case "":
		err = fmt.Errorf("the model does not name its tokenizer (%s): use a GGUF file converted with its "+
			"tokenizer", keyModel)
	default:
		err = fmt.Errorf("tokenizer %q (%s) is not supported; supported are llama (SPM), gpt2 (byte-level BPE), "+
			"gemma4 (SPM pieces merged by rules), bert (WordPiece) and t5 (Unigram)", model, keyModel)
	}
	if err != nil {
		return nil, err
	}
	if err := t.readSpecial(meta, texts); err != nil {
		return nil, err
	}
	t.readEnds(meta, texts)
	t.readPair(meta)
	t.widest = t.measure()
	t.fillMatchers(texts)
	t.readStrips(meta, texts)
	t.readChat(meta)
	return t, nil
}

// maxTokens and maxVocabBytes bound the size of a vocabulary. The largest in use have 262,144
// tokens.
const (
	maxTokens     = 1 << 19
	maxVocabBytes = 1 << 30
)

func readAttrs(meta Metadata, n int) ([]attr, error) {
	attrs := make([]attr, n)
	types, ok := meta.Ints(keyTypes)
	if ok && len(types) < n {
		return nil, fmt.Errorf("the vocabulary has %d tokens but %d entries in %s: the file is damaged", n,
			len(types), keyTypes)
	}
	for i := range attrs {
		attrs[i] = attrNormal
		if ok {
			attrs[i] = attrOfType(types[i])
		}
	}
	return attrs, nil
}

// readSpecial reads the ids and flags of BOS, EOS and the unknown token. Values in the file replace
// the defaults of the load function.
func (t *Tokenizer) readSpecial(meta Metadata, texts []string) error {
	for _, k := range []struct {
		key string
		id  *int32
	}{{t.starting, &t.bos}, {keyBOS, &t.bos}, {keyEOS, &t.eos}, {t.ending, &t.eos}, {keyUnknown, &t.unknown}} {
		key, id := k.key, k.id
		v, ok := meta.Uint(key)
		if ok && v >= uint64(len(texts)) {
			return fmt.Errorf("%s is %d but the vocabulary has %d tokens: the file is damaged", key, v, len(texts))
		}
		if ok {
			*id = int32(v)
		}
		if int(*id) >= len(texts) { // the vocabulary is too small for the default
			*id = -1
		}
	}
	if t.ending == "" { // otherwise both tokens are always added
		t.addBOS, t.addEOS = flagOr(meta, keyAddBOS, t.addBOS), flagOr(meta, keyAddEOS, t.addEOS)
	}
	if t.addBOS && t.bos < 0 {
		return fmt.Errorf("%s is set but %s is not: the file is damaged", keyAddBOS, keyBOS)
	}
	if t.addEOS && t.eos < 0 {
		return fmt.Errorf("%s is set but %s is not: the file is damaged", keyAddEOS, keyEOS)
	}
	return nil
}

// readEnds collects the tokens that end a reply. A token that is known by its spelling becomes a
// control token, even if the file has another type for it.
func (t *Tokenizer) readEnds(meta Metadata, texts []string) {
	byText := make(map[string]bool)
	for _, text := range endTexts {
		byText[text] = true
	}
	for _, text := range infillEndTexts {
		byText[text] = false
	}
	not := notEnds(texts)
	for id, text := range texts {
		control, ok := byText[text]
		switch {
		case !ok:
		case not[text] && text == "</s>":
			t.attrs[id] = attrNormal
		default:
			t.ends[int32(id)] = !not[text]
			if control {
				t.attrs[id] |= attrControl
			}
		}
	}
	for _, key := range []string{keyEOS, keyEOT, keyEOM, keyInfillPad, keyInfillRepo, keyInfillFile} {
		if v, ok := meta.Uint(key); ok && v < uint64(len(texts)) {
			t.ends[int32(v)] = true
		}
	}
	if t.eos >= 0 {
		t.ends[t.eos] = true
	}
}

func (t *Tokenizer) fillMatchers(texts []string) {
	for id, text := range texts {
		if t.attrs[id]&attrSpecial != 0 {
			t.special.Add(text, int32(id), false)
		}
		if t.attrs[id]&attrUser != 0 && t.attrs[id]&(attrControl|attrUnknown) == 0 {
			t.user.Add(text, int32(id), false)
		}
	}
}

// readStrips marks the special tokens of Phi-3 that remove the white space after them. No key of a
// GGUF file has this property; like llama.cpp, readStrips goes by the model's name.
func (t *Tokenizer) readStrips(meta Metadata, texts []string) {
	name, _ := meta.String(keyName)
	if name = strings.ToLower(name); !strings.Contains(name, "phi-3") && !strings.Contains(name, "phi3") {
		return
	}
	for id, text := range texts {
		keeps := text == "<unk>" || text == "<s>" || text == "<|endoftext|>"
		if (t.attrs[id]&attrSpecial != 0 || text == "</s>") && !keeps {
			t.attrs[id] |= attrStrips
		}
	}
}

// readPair reads how a query and a document are separated. WordPiece needs no separator: every text
// ends in [SEP].
func (t *Tokenizer) readPair(meta Metadata) {
	t.pair, _ = meta.String(keyPairTemplate)
	t.pair = strings.Clone(t.pair)
	id, ok := meta.Uint(keySeparator)
	if ok = ok && id < uint64(len(t.attrs)); ok {
		t.sep = int32(id)
	}
	t.addSep = ok && t.ending == "" && flagOr(meta, keyAddSep, true)
}

// measure computes the result of WidestToken.
func (t *Tokenizer) measure() (widest int) {
	if t.loose {
		return 0
	}
	for b := range t.byteSyms {
		if id := t.byteSyms[b]; (id < 0 || int(id) >= len(t.attrs)) && t.unknown < 0 {
			return 0
		}
	}
	for id := range t.attrs {
		text := t.syms.Bytes(int32(id))
		n := len(text)
		if t.isSPM {
			n += bytes.Count(text, []byte(" ")) * (len(spaceMark) - 1) // text may spell a space as spaceMark
		}
		widest = max(widest, n)
	}
	return widest
}
