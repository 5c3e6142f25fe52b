package tokenizer

// Metadata is the part of a GGUF file that the tokenizer reads. *gguf.File implements it; tests use
// maps. Each method returns false if the key is absent or has another type.
type Metadata interface {
	String(key string) (string, bool)
	Uint(key string) (uint64, bool)
	Bool(key string) (bool, bool)
	Strings(key string) ([]string, bool)
	Floats(key string) ([]float32, bool)
	Ints(key string) ([]int32, bool)
}

// Metadata keys of the GGUF specification that describe a vocabulary.
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

// attr is a set of token attributes. The values equal llama.cpp's, so that its reference data can
// be compared.
type attr uint8

const (
	attrUnknown attr = 1 << iota // represents text that the vocabulary cannot spell
	attrUnused                   // padding of the embedding matrix; never produced, decoded as nothing
	attrNormal                   // produced by merging
	attrControl                  // controls the model; recognized in text only on request
	attrUser                     // added after training; always recognized in text
	attrByte                     // byte fallback, spelled <0xXX>
	attrStrips                   // removes the white space after it from the text

	// attrSpecial are the tokens that are spelled out in text and that merging never produces.
	attrSpecial = attrUnknown | attrControl | attrUser
)

// attrOfType converts a value of tokenizer.ggml.token_type (1 to 6) to attributes. It returns 0 for
// other values: such a token is never produced.
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

// flagOr returns a flag of the metadata, or another value if the key is absent.
func flagOr(meta Metadata, key string, otherwise bool) bool {
	if v, ok := meta.Bool(key); ok {
		return v
	}
	return otherwise
}
