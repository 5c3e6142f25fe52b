// Package tokenizer turns text into token ids and back, and conversations into prompts, from the
// metadata of a GGUF file.
//
// Both kinds of vocabulary are one procedure, merging (merge.go): neighbouring symbols join in the
// order of a rank, the left-most first. For byte-level BPE (bpe.go) the symbols are bytes, the rank
// is the number of the merge rule, and a pre-tokenizer (scan.go) has cut the text into words. For
// SPM (spm.go) the symbols are characters and the rank is that of the joined token's score. Special
// tokens are cut out first (special.go). Ids, pieces and the tokens that end a reply are those of
// llama.cpp.
//
// Chat templates are programs from strangers: template.go runs them through package jinja and says
// what they may spend.
package tokenizer
