// Package tokenizer converts text to token ids and back, and conversations to prompts, from the
// metadata of a GGUF file.
//
// BPE and SPM vocabularies share one algorithm, merging (package tables): it joins the pair of
// adjacent symbols with the lowest rank, the left-most first, until no pair is left. For byte-level
// BPE (bpe.go) symbols are bytes, the rank is the index of the merge rule, and package pretok
// splits the text into words first. For SPM (spm.go) symbols are characters and the rank is the
// position of the joined token's score. WordPiece takes the longest token first; Unigram takes the
// most probable sequence of tokens. Special tokens are split off before (special.go). Ids, pieces
// and the tokens that end a reply equal those of llama.cpp.
//
// tokenizer.go has the state of a vocabulary, which open.go reads; pieces.go has what the
// algorithms share.
//
// Chat templates are untrusted programs: template.go runs them with package jinja and sets their
// limits.
package tokenizer
