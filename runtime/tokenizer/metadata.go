package tokenizer

// Metadata is the part of a GGUF file the tokenizer reads; *gguf.File satisfies it and tests feed
// maps. Each method returns false when the key is absent or holds another type.
type Metadata interface {
	String(key string) (string, bool)
	Uint(key string) (uint64, bool)
	Bool(key string) (bool, bool)
	Strings(key string) ([]string, bool)
	Floats(key string) ([]float32, bool)
	Ints(key string) ([]int32, bool)
}

// The metadata keys of the GGUF specification that describe a vocabulary.
const (
	keyModel      = "tokenizer.ggml.model"
	keyPre        = "tokenizer.ggml.pre"
	keyTokens     = "tokenizer.ggml.tokens"
	keyScores     = "tokenizer.ggml.scores"
	keyTypes      = "tokenizer.ggml.token_type"
	keyMerges     = "tokenizer.ggml.merges"
	keyBOS        = "tokenizer.ggml.bos_token_id"
	keyEOS        = "tokenizer.ggml.eos_token_id"
	keyEOT        = "tokenizer.ggml.eot_token_id"
	keyEOM        = "tokenizer.ggml.eom_token_id"
	keyInfillPad  = "tokenizer.ggml.fim_pad_token_id"
	keyInfillRepo = "tokenizer.ggml.fim_rep_token_id"
	keyInfillFile = "tokenizer.ggml.fim_sep_token_id"
	keyUnknown    = "tokenizer.ggml.unknown_token_id"
	keyAddBOS     = "tokenizer.ggml.add_bos_token"
	keyAddEOS     = "tokenizer.ggml.add_eos_token"
	keyAddSpace   = "tokenizer.ggml.add_space_prefix"
	keyTemplate   = "tokenizer.chat_template"
	keyName       = "general.name"

	keyFirst        = "tokenizer.ggml.cls_token_id"
	keySeparator    = "tokenizer.ggml.seperator_token_id"
	keyAddSep       = "tokenizer.ggml.add_sep_token"
	keyPairTemplate = "tokenizer.chat_template.rerank"
	keyMergeSpaces  = "tokenizer.ggml.remove_extra_whitespaces"
	keyCharsMap     = "tokenizer.ggml.precompiled_charsmap"
)

// attr is a set of token attributes; the values are the ones of llama.cpp, so that its reference
// data can be compared.
type attr uint8

const (
	attrUnknown attr = 1 << iota // stands for text the vocabulary cannot spell
	attrUnused                   // padding of the embedding matrix; never produced, spelled as nothing
	attrNormal                   // produced by merging
	attrControl                  // steers the model; recognized in text only on request
	attrUser                     // added after training; recognized in text always
	attrByte                     // byte fallback, spelled <0xXX>
	attrStrips                   // takes the spaces behind it in a text with it

	// attrSpecial are the tokens that text spells out whole and merging never produces.
	attrSpecial = attrUnknown | attrControl | attrUser
)

// attrOfType maps tokenizer.ggml.token_type (1 to 6) to attributes. Other values are treated as
// undefined: never produced.
func attrOfType(typ int32) attr {
	switch typ {
	case 1:
		return attrNormal
	case 2:
		return attrUnknown
	case 3:
		return attrControl
	case 4:
		return attrUser
	case 5:
		return attrUnused
	case 6:
		return attrByte
	}
	return 0
}
