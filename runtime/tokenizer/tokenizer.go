package tokenizer

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"sandwich/runtime/toolcall"
)

// Tokenizer turns text into token ids and back as llama.cpp does on the same GGUF file. It is safe
// for concurrent use.
type Tokenizer struct {
	syms  *symbols // the tokens, spelled as they are written out, and the inner symbols of merging
	attrs []attr   // by token id
	merge *mergeTable

	encode    func(t *Tokenizer, dst []int32, sc *scratch, text string, afterSpecial bool) []int32
	split     splitter // BPE: the pre-tokenizer
	wholeWord bool     // BPE: a word that is a token is taken as it is, without merging (Llama 3)
	isSPM     bool     // SPM: pieces start with their space
	addSpace  bool     // SPM: a space is put before text that starts the input or follows a special token
	cutSpaces bool     // SPM: no token holds a space after something else, so that text may be cut before spaces
	spaceSym  int32    // SPM: the symbol of a space, or -1
	// symbol of a single byte: what BPE starts from and SPM falls back to; -1 if the vocabulary has
	// none
	byteSyms [256]int32

	pieces *trie    // WordPiece and Unigram: the tokens by their spelling
	uni    *unigram // Unigram
	loose  bool     // nothing follows from the length of a text
	// keys of the tokens that AddSpecial puts around any text; empty where flags decide
	starting, ending string

	user    *matcher // tokens recognized in any text
	special *matcher // all tokens that text spells out whole

	widest            int   // bytes of text that one token may stand for; see WidestToken
	bos, eos, unknown int32 // -1 for none
	addBOS, addEOS    bool
	ends              map[int32]bool
	pair              string // template of a query and a document; "" for none
	sep               int32  // what parts them, where addSep
	addSep            bool

	chat  func() (*chatFormat, error)
	calls func() *toolcall.Format // how the model writes calls of tools
	// guards finds special tokens in texts of which users wrote parts.
	guards func() *guards

	scratches sync.Pool
}

// EncodeOptions says how Encode treats special tokens.
type EncodeOptions struct {
	AddSpecial   bool // put BOS before and EOS behind the text where the model asks for them
	ParseSpecial bool // recognize control tokens spelled out in the text (chat templates); user-defined ones always are
	Limit        int  // stop soon after so many tokens, when it is known that they are too many; 0: none
}

// New reads the vocabulary of a model. It fails, naming what it met, on an unknown
// tokenizer.ggml.model or .pre, an SPM vocabulary without scores, and metadata that contradict
// themselves. Called by engine and cmd, once per model.
func New(meta Metadata) (*Tokenizer, error) {
	texts, ok := meta.Strings(keyTokens)
	if !ok || len(texts) == 0 {
		return nil, fmt.Errorf("the model has no vocabulary (%s): use a GGUF file converted with its tokenizer",
			keyTokens)
	}
	if len(texts) > maxTokens || totalBytes(texts) > maxVocabBytes {
		return nil, fmt.Errorf("the vocabulary has %d tokens, more than any model has: the file is damaged", len(texts))
	}
	t := &Tokenizer{user: newMatcher(), special: newMatcher(), ends: map[int32]bool{}, spaceSym: -1}
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
		err = fmt.Errorf("tokenizer %q (%s) is not supported: only llama (SPM), gpt2 (byte-level BPE), gemma4 (SPM's "+
			"pieces, merged by rules), bert (WordPiece) and t5 (Unigram) are", model, keyModel)
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

// maxTokens and maxVocabBytes bound what a vocabulary may take; the largest in use have 262,144
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

// readSpecial reads the ids and flags of BOS, EOS and unknown, over the defaults that the load
// function has set.
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
		if int(*id) >= len(texts) { // a default that this vocabulary is too small for
			*id = -1
		}
	}
	if t.ending == "" { // else a text always stands between both
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

func flagOr(meta Metadata, key string, otherwise bool) bool {
	if v, ok := meta.Bool(key); ok {
		return v
	}
	return otherwise
}

// readEnds collects the tokens that end a reply. One known by its spelling becomes a control token
// if the file says otherwise.
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
			t.special.add(text, int32(id), false)
		}
		if t.attrs[id]&attrUser != 0 && t.attrs[id]&(attrControl|attrUnknown) == 0 {
			t.user.add(text, int32(id), false)
		}
	}
}

// readStrips marks the special tokens of Phi-3 that take the spaces behind them with them. No key
// of a file says it: llama.cpp goes by the model's name, too.
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

// appendMerged merges the symbols of one word and appends what remains. Inner symbols, which are no
// tokens, are spelled by bytes.
func (t *Tokenizer) appendMerged(dst []int32, sc *scratch, word []int32) []int32 {
	if len(word) > 1 {
		word = t.merge.merge(sc, word)
	}
	for _, id := range word {
		if sc.made(1, len(dst)); sc.ended {
			break
		}
		if int(id) < len(t.attrs) {
			dst = append(dst, id)
			continue
		}
		for _, b := range t.syms.bytes(id) {
			dst = t.appendByte(dst, b)
		}
	}
	sc.made(1, len(dst))
	return dst
}

// appendByte appends the token of a byte that nothing else spells, or unknown where the vocabulary
// has none. A vocabulary with neither drops the byte.
func (t *Tokenizer) appendByte(dst []int32, b byte) []int32 {
	if id := t.byteSyms[b]; id >= 0 && int(id) < len(t.attrs) {
		return append(dst, id)
	}
	if t.unknown >= 0 {
		return append(dst, t.unknown)
	}
	return dst
}

// measure is what WidestToken answers.
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
		text := t.syms.bytes(int32(id))
		n := len(text)
		if t.isSPM {
			n += bytes.Count(text, []byte(" ")) * (len(spaceMark) - 1) // text may spell its spaces so
		}
		widest = max(widest, n)
	}
	return widest
}

// WidestToken is the most bytes of text that one token stands for, so that text of n bytes has at
// least n/WidestToken() of them. It is 0 where a vocabulary passes over bytes that it has no token
// for, so that nothing follows from a length.
func (t *Tokenizer) WidestToken() int { return t.widest }

// Vocab is the number of tokens; ids run from 0 to Vocab()-1.
func (t *Tokenizer) Vocab() int { return len(t.attrs) }

// BOS is the token that starts a text; false if the model has none. It says nothing about whether
// Encode adds it.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS is the token that ends a text; false if the model has none.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos >= 0 }

// IsEOG reports whether generation ends with this token (EOS, end of turn, end of message and their
// like).
func (t *Tokenizer) IsEOG(id int32) bool { return t.ends[id] }

// IsControl reports whether the token steers the model and is no part of the text.
func (t *Tokenizer) IsControl(id int32) bool {
	return t.known(id) && t.attrs[id]&(attrControl|attrUnknown) != 0
}

func (t *Tokenizer) known(id int32) bool { return id >= 0 && int(id) < len(t.attrs) }
