package tokenizer

import (
	"context"
	"sync"

	"sandwich/runtime/chat"
	"sandwich/runtime/jinja"
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

// scratch is the state of one EncodeContext call. Its memory is reused by later calls.
type scratch struct {
	tables.Work
	word []int32
	text []byte // WordPiece: a word; Unigram: the normalized text
	best []best // Unigram
}

// best is the most probable split of a text up to a position: its score, its last token and the
// start of that token.
type best struct {
	score float64
	from  int32
	token int32
}

// unigram is the additional state of a Unigram vocabulary.
type unigram struct {
	scores  []float64        // by token; 0 for user-defined tokens, which always win
	unknown float64          // score of a character that is in no token
	merge   bool             // collapse runs of spaces and remove them at both ends
	chars   *tables.CharsMap // normalization of characters; nil for none
	user    *tables.Trie     // user-defined tokens, which are not normalized
}

// guards finds special tokens in a text with guarded parts.
type guards struct {
	trusted *tables.Matcher // tokens to recognize outside guarded parts
	guarded *tables.Matcher // tokens to recognize in guarded parts
}

// chatFormat is a named way to render conversations.
type chatFormat struct {
	name   string
	render renderFunc
}

// renderFunc renders one version of a conversation.
type renderFunc func(ctx context.Context, t *Tokenizer, h *chat.History, v *chat.Version, c Conversation) (
	jinja.Output, error)

// EncodeOptions controls how Encode treats special tokens.
type EncodeOptions struct {
	AddSpecial   bool // add BOS before and EOS after the text if the model asks for them
	ParseSpecial bool // recognize control tokens in the text (chat templates); user-defined tokens always are
	Limit        int  // stop soon after the number of tokens exceeds Limit; 0 means no limit
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
