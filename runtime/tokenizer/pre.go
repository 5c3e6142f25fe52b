package tokenizer

import "unicode/utf8"

// preTokenizer is what tokenizer.ggml.pre stands for.
type preTokenizer struct {
	split     splitter
	wholeWord bool // words that are tokens are not merged: some cannot be reached by merging
	addBOS    bool // unless the file says otherwise
}

// cutter calls f for the words of text in order, which are all of it, until f returns false, which
// it returns too.
type cutter func(text string, f func(word string) bool) bool

// splitter cuts text into words in stages: every word of a stage is cut on by those behind it.
type splitter []cutter

func (s splitter) each(text string, f func(word string) bool) bool {
	switch len(s) {
	case 0:
		return f(text)
	case 1:
		return s[0](text, f)
	}
	return s[0](text, func(word string) bool { return s[1:].each(word, f) })
}

// stages are those of scanners: what one finds is a word, and so is what it leaves between.
func stages(scanners ...scanner) (s splitter) {
	for _, scan := range scanners {
		s = append(s, scan.cut)
	}
	return s
}

func (s scanner) cut(text string, f func(word string) bool) bool {
	from := 0 // of what no match has had
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

// The families of pre-tokenizers.
var (
	gpt2      = preTokenizer{split: stages(scanGPT2)}
	llama3    = preTokenizer{split: stages(scanLlama3)}
	llama3BOS = preTokenizer{split: stages(scanLlama3), wholeWord: true, addBOS: true}
	qwen2     = preTokenizer{split: stages(scanQwen2)}
	gpt4o     = preTokenizer{split: stages(scanGPT4o)}
	starcoder = preTokenizer{split: stages(oneNumber, scanGPT2)}
	deepseek3 = preTokenizer{split: stages(threeNumbers, runIn(kanaOrHan), scanDeepSeek3)}
	bloom     = preTokenizer{split: stages(scanBloom)}
)

// preTokenizers by the names that GGUF files use for them.
var preTokenizers = map[string]preTokenizer{
	"gpt-2": gpt2, "phi-2": gpt2, "mpt": gpt2, "olmo": gpt2, "trillion": gpt2, "exaone4": gpt2, "jina-v2-code": gpt2,
	"granite-docling": gpt2, "jais": gpt2,

	"llama-bpe": llama3BOS, "llama3": llama3BOS, "llama-v3": llama3BOS, "falcon3": llama3BOS, "lfm2": llama3BOS,
	"dbrx": llama3, "smaug-bpe": llama3, "glm4": llama3, "chatglm-bpe": llama3,

	"qwen2": qwen2, "deepseek-r1-qwen": qwen2, "stablelm2": qwen2, "hunyuan": qwen2, "megrez": qwen2, "grok-2": qwen2,
	"bailingmoe": qwen2,
	"seed-coder": {split: stages(scanSeedCoder)},
	"qwen35":     {split: stages(scanQwen35)},

	"gpt-4o": gpt4o, "llama4": gpt4o, "minimax-m2": gpt4o,
	"tekken":  {split: stages(scanTekken), wholeWord: true, addBOS: true},
	"kimi-k2": {split: stages(scanKimi)},
	"youtu":   {split: stages(scanYoutuFirst, scanYoutu), wholeWord: true},

	"starcoder": starcoder, "refact": starcoder, "smollm": starcoder, "command-r": starcoder, "codeshell": starcoder,
	"exaone": starcoder,

	"deepseek-v3": deepseek3, "hunyuan-dense": deepseek3,
	"deepseek-llm": {split: stages(lineEnd, spaceThen(isCased), spaceThen(deepseekMark), spacesAtEnd,
		runIn(deepseekEast), runIn(isNumber))},
	"deepseek-coder": {split: stages(lineEnd, spaceThen(isLetter), spaceThen(isPunct), runIn(deepseekEast), oneNumber)},

	"bloom": bloom, "poro-chat": bloom, "gpt3-finnish": bloom,
	"viking": {split: stages(scanBloom, oneNumber)},

	"falcon":    {split: stages(runIn(falconMark), scanGPT2, threeDigits)},
	"default":   {split: stages(runIn(defaultMark), scanGPT2, runIn(isNumber), threeDigits)},
	"superbpe":  {split: append(stages(runIn(isNumber)), groupsOfThree)},
	"chameleon": {split: stages(sentinel, imageTokens, tabOrSpaces, oneNumber, chameleonMark, scanGPT2)},
}
