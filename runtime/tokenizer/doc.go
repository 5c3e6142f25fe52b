// Package tokenizer turns text into token ids and back, from GGUF metadata.
package tokenizer
