package tokenizer

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"sandwich/runtime/tokenizer/internal/pretok"
	"sandwich/runtime/tokenizer/internal/tables"
	"sandwich/runtime/toolcall"
)

// Tokenizer converts text to token ids and back as llama.cpp does with the same GGUF file. It is
// safe for concurrent use.
type Tokenizer struct {
	syms  *tables.Symbols // the tokens as they are decoded, and the inner symbols of merging
	attrs []attr          // by token id
	merge *tables.MergeTable

	encode    func(t *Tokenizer, dst []int32, sc *scratch, text string, afterSpecial bool) []int32
	split     pretok.Splitter // BPE: the pre-tokenizer
	wholeWord bool            // BPE: a word that is a token is not merged (Llama 3)
	isSPM     bool            // pieces start with a space
	addSpace  bool            // SPM: a space is put before text that starts the input or follows a special token
	cutSpaces bool            // SPM: no token has a space after another character, so text may be split before spaces
	spaceSym  int32           // SPM: the symbol of a space, or -1
	// byteSyms maps a byte to its symbol: BPE starts with them and SPM falls back to them. It is -1
	// if the vocabulary has none.
	byteSyms [256]int32

	pieces *tables.Trie // WordPiece and Unigram: tokens by spelling
	uni    *unigram     // Unigram
	loose  bool         // the length of a text does not bound its number of tokens
	// starting and ending are the keys of the tokens that AddSpecial puts around any text. They are
	// empty if flags decide.
	starting, ending string

	user    *tables.Matcher // tokens recognized in any text
	special *tables.Matcher // all tokens that are spelled out in text

	widest            int   // the result of WidestToken
	bos, eos, unknown int32 // -1 for none
	addBOS, addEOS    bool
	ends              map[int32]bool
	pair              string // template of a query and a document; may be empty
	sep               int32  // separates query and document if addSep is set
	addSep            bool

	chat  func() (*chatFormat, error)
	calls func() *toolcall.Format // the format of tool calls
	// guards finds special tokens in texts with parts that users wrote.
	guards func() *guards

	scratches sync.Pool
}

// EncodeOptions controls how Encode treats special tokens.
type EncodeOptions struct {
	AddSpecial   bool // add BOS before and EOS after the text if the model asks for them
	ParseSpecial bool // recognize control tokens in the text (chat templates); user-defined tokens always are
	Limit        int  // stop soon after the number of tokens exceeds Limit; 0 means no limit
}

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

func flagOr(meta Metadata, key string, otherwise bool) bool {
	if v, ok := meta.Bool(key); ok {
		return v
	}
	return otherwise
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

// appendMerged merges the symbols of one word and appends the resulting tokens. Inner symbols,
// which are not tokens, are encoded byte by byte.
func (t *Tokenizer) appendMerged(dst []int32, sc *scratch, word []int32) []int32 {
	if len(word) > 1 {
		word = t.merge.Merge(&sc.Work, word)
	}
	for _, id := range word {
		if sc.Made(1, len(dst)); sc.Ended {
			break
		}
		if int(id) < len(t.attrs) {
			dst = append(dst, id)
			continue
		}
		for _, b := range t.syms.Bytes(id) {
			dst = t.appendByte(dst, b)
		}
	}
	sc.Made(1, len(dst))
	return dst
}

// appendByte appends the token of a byte that no other token spells, or the unknown token if there
// is none. If the vocabulary has neither, it drops the byte.
func (t *Tokenizer) appendByte(dst []int32, b byte) []int32 {
	if id := t.byteSyms[b]; id >= 0 && int(id) < len(t.attrs) {
		return append(dst, id)
	}
	if t.unknown >= 0 {
		return append(dst, t.unknown)
	}
	return dst
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

// WidestToken returns the largest number of bytes of text that one token encodes: a text of n bytes
// has at least n/WidestToken() tokens. It returns 0 if the vocabulary drops bytes without a token,
// so that the length of a text implies no bound.
func (t *Tokenizer) WidestToken() int { return t.widest }

// Vocab returns the number of tokens. Ids run from 0 to Vocab()-1.
func (t *Tokenizer) Vocab() int { return len(t.attrs) }

// BOS returns the token that starts a text, or false if the model has none. Encode adds it only if
// the model asks for it.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS returns the token that ends a text, or false if the model has none.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos >= 0 }

// IsEOG reports whether the token ends generation: EOS, end of turn, end of message and similar.
func (t *Tokenizer) IsEOG(id int32) bool { return t.ends[id] }

// IsControl reports whether the token controls the model and is not part of the text.
func (t *Tokenizer) IsControl(id int32) bool {
	return t.known(id) && t.attrs[id]&(attrControl|attrUnknown) != 0
}

func (t *Tokenizer) known(id int32) bool { return id >= 0 && int(id) < len(t.attrs) }
