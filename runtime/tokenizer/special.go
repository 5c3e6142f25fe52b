package tokenizer

import "slices"

// endTexts lists the spellings of tokens that end a reply. GGUF names only one or two of them by
// id, and models also stop with others. The list is llama.cpp's for the supported vocabularies, so
// that generation ends at the same token.
var endTexts = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>",
	"<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<｜end▁of▁sentence｜>",
	"<|return|>", "<|call|>", // harmony
	"<|flush|>", "<|calls|>", // Solar Open
	"<turn|>", gemma4Result,
}

// gemma4Result opens the result of a tool call, which the caller of Gemma 4 writes.
const gemma4Result = "<|tool_response>"

// infillEndTexts also end a reply, because they start the next file of a fill-in-the-middle prompt.
// They keep their attributes.
var infillEndTexts = []string{
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]",
	"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>",
	"<|file_sep|>",
}

// notEnds returns the texts of endTexts that do not end a reply in the given vocabulary. If single
// messages of a reply, such as its reasoning, end in <|end|>, then <|end|> does not end the reply.
// In Gemma 4 </s> is ordinary text.
func notEnds(texts []string) map[string]bool {
	has := func(text string) bool { return slices.Contains(texts, text) }
	call := has("<|call|>") || has("<|calls|>")
	return map[string]bool{
		"<|end|>": call && (has("<|return|>") || has("<|flush|>")),
		"</s>":    has(gemma4Result),
	}
}
