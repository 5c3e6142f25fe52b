// Package pretok splits text into the words within which a BPE tokenizer merges, as the
// pre-tokenizers of published models do.
package pretok

import "unicode/utf8"

// PreTokenizer holds the settings that a value of tokenizer.ggml.pre selects.
type PreTokenizer struct {
	Split     Splitter
	WholeWord bool // do not merge a word that is a token: merging cannot produce some of these
	AddBOS    bool // default of tokenizer.ggml.add_bos_token
}

// cutter splits text into words and calls f for each in order, until f returns false. Together the
// words are the whole text. It returns the last result of f.
type cutter func(text string, f func(word string) bool) bool

// Splitter cuts text into words in stages: each stage splits the words of the previous one.
type Splitter []cutter

// Each splits text into words and calls f for each in order, until f returns false. It returns the
// last result of f.
func (s Splitter) Each(text string, f func(word string) bool) bool {
	switch len(s) {
	case 0:
		return f(text)
	case 1:
		return s[0](text, f)
	}
	return s[0](text, func(word string) bool { return s[1:].Each(word, f) })
}

// stages returns a splitter with one stage per scanner. What a scanner matches is a word, and so is
// the text between two matches.
func stages(scanners ...scanner) (s Splitter) {
	for _, scan := range scanners {
		s = append(s, scan.cut)
	}
	return s
}

func (s scanner) cut(text string, f func(word string) bool) bool {
	from := 0 // end of the last match
	for at := 0; at < len(text); {
		n := s(text[at:])
		if n <= 0 {
			_, size := utf8.DecodeRuneInString(text[at:])
			at += max(size, -n)
			continue
		}
		if from < at && !f(text[from:at]) || !f(text[at:at+n]) {
			return false
		}
		at += n
		from = at
	}
	return from == len(text) || f(text[from:])
}

// Families of pre-tokenizers.
var (
	gpt2      = PreTokenizer{Split: stages(scanGPT2)}
	llama3    = PreTokenizer{Split: stages(scanLlama3)}
	llama3BOS = PreTokenizer{Split: stages(scanLlama3), WholeWord: true, AddBOS: true}
	qwen2     = PreTokenizer{Split: stages(scanQwen2)}
	gpt4o     = PreTokenizer{Split: stages(scanGPT4o)}
	starcoder = PreTokenizer{Split: stages(oneNumber, scanGPT2)}
	deepseek3 = PreTokenizer{Split: stages(threeNumbers, runIn(kanaOrHan), scanDeepSeek3)}
	bloom     = PreTokenizer{Split: stages(scanBloom)}
)

// ByName maps the values of tokenizer.ggml.pre to pre-tokenizers.
var ByName = map[string]PreTokenizer{
	"gpt-2": gpt2, "phi-2": gpt2, "mpt": gpt2, "olmo": gpt2, "trillion": gpt2, "exaone4": gpt2, "jina-v2-code": gpt2,
	"granite-docling": gpt2, "jais": gpt2,

	"llama-bpe": llama3BOS, "llama3": llama3BOS, "llama-v3": llama3BOS, "falcon3": llama3BOS, "lfm2": llama3BOS,
	"dbrx": llama3, "smaug-bpe": llama3, "glm4": llama3, "chatglm-bpe": llama3,

	"qwen2": qwen2, "deepseek-r1-qwen": qwen2, "stablelm2": qwen2, "hunyuan": qwen2, "megrez": qwen2, "grok-2": qwen2,
	"bailingmoe": qwen2,
	"seed-coder": {Split: stages(scanSeedCoder)},
	"qwen35":     {Split: stages(scanQwen35)},

	"gpt-4o": gpt4o, "llama4": gpt4o, "minimax-m2": gpt4o,
	"tekken":  {Split: stages(scanTekken), WholeWord: true, AddBOS: true},
	"kimi-k2": {Split: stages(scanKimi)},
	"youtu":   {Split: stages(scanYoutuFirst, scanYoutu), WholeWord: true},

	"starcoder": starcoder, "refact": starcoder, "smollm": starcoder, "command-r": starcoder, "codeshell": starcoder,
	"exaone": starcoder,

	"deepseek-v3": deepseek3, "hunyuan-dense": deepseek3,
	"deepseek-llm": {Split: stages(lineEnd, spaceThen(isCased), spaceThen(deepseekMark), spacesAtEnd,
		runIn(deepseekEast), runIn(isNumber))},
	"deepseek-coder": {Split: stages(lineEnd, spaceThen(isLetter), spaceThen(isPunct), runIn(deepseekEast), oneNumber)},

	"bloom": bloom, "poro-chat": bloom, "gpt3-finnish": bloom,
	"viking": {Split: stages(scanBloom, oneNumber)},

	"falcon":    {Split: stages(runIn(falconMark), scanGPT2, threeDigits)},
	"default":   {Split: stages(runIn(defaultMark), scanGPT2, runIn(isNumber), threeDigits)},
	"superbpe":  {Split: append(stages(runIn(isNumber)), groupsOfThree)},
	"chameleon": {Split: stages(sentinel, imageTokens, tabOrSpaces, oneNumber, chameleonMark, scanGPT2)},
}
