package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"sandwich/runtime/tokenizer/internal/tables"
)

// Default ids of BERT's special tokens.
const (
	bertUnknown = 100
	bertFirst   = 101 // [CLS]
	bertEnd     = 102 // [SEP]
)

// loadWordPiece reads the vocabulary of BERT (Devlin et al. 2018; Schuster and Nakajima 2012).
// Words are split into the longest tokens from the left; the first token of a word starts with the
// word mark. A text is enclosed in [CLS] and [SEP].
func (t *Tokenizer) loadWordPiece(texts []string) error {
	t.isSPM, t.addSpace = true, true // pieces that start a word start with a space
	t.loose = true
	t.unknown, t.bos, t.eos = bertUnknown, bertFirst, bertEnd
	t.addBOS, t.addEOS = true, true
	t.starting, t.ending = keyFirst, keySeparator
	t.encode = (*Tokenizer).encodeWordPiece
	t.syms = tables.NewSymbols(len(texts), totalBytes(texts))
	t.pieces = tables.NewTrie(totalBytes(texts))
	for i, text := range texts {
		id := t.syms.Add([]byte(strings.ReplaceAll(text, spaceMark, " ")))
		if len(text) > maxSPMPiece {
			return fmt.Errorf("token %d of the vocabulary has %d bytes, more than the %d that a word piece may "+
				"have: the file is damaged", i, len(text), maxSPMPiece)
		}
		t.pieces.Add(t.syms.Bytes(id), id)
	}
	for b := range t.byteSyms {
		t.byteSyms[b] = -1
	}
	return nil
}

// encodeWordPiece appends the tokens of text, which must not contain special tokens. Words are
// separated by white space; each punctuation mark and each Chinese character is a word. Letters are
// lowered and lose their accents. Control characters are dropped.
func (t *Tokenizer) encodeWordPiece(dst []int32, sc *scratch, text string, _ bool) []int32 {
	sc.text = sc.text[:0]
	for _, r := range text {
		if sc.Poll(1) {
			return dst
		}
		switch base := unaccented(r); {
		case unicode.IsSpace(base):
			dst = t.flushWord(dst, sc)
		case base == 0 || base == utf8.RuneError || unicode.Is(unicode.C, base):
		case standsAlone(base):
			dst = t.flushWord(dst, sc)
			sc.text = utf8.AppendRune(sc.text, unicode.ToLower(base))
			dst = t.flushWord(dst, sc)
		default:
			sc.text = utf8.AppendRune(sc.text, unicode.ToLower(base))
		}
		if sc.Ended {
			return dst
		}
	}
	return t.flushWord(dst, sc)
}

// unaccented returns the first character of the canonical decomposition of r, as llama.cpp does:
// the letter without its accents, or the first consonant of a Hangul syllable.
func unaccented(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	if d := norm.NFD.Properties(buf[:n]).Decomposition(); d != nil {
		r, _ = utf8.DecodeRune(d)
		return r
	}
	const first, last, perConsonant, consonants = 0xAC00, 0xD7A3, 588, 0x1100
	if r >= first && r <= last {
		return consonants + (r-first)/perConsonant
	}
	return r
}

// standsAlone reports whether a character is a word by itself.
func standsAlone(r rune) bool {
	switch {
	case unicode.Is(unicode.P, r), r < 0x7F && unicode.Is(unicode.S, r):
		return true
	case r < 0x3400:
		return false
	}
	return r >= 0x4E00 && r <= 0x9FFF || r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2B73F ||
		r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0x2F800 && r <= 0x2FA1F
}

// flushWord appends the tokens of the word in sc.text and empties it. A word that cannot be split
// completely becomes one unknown token, or is dropped if the vocabulary has no unknown token.
func (t *Tokenizer) flushWord(dst []int32, sc *scratch) []int32 {
	if len(sc.text) == 0 {
		return dst
	}
	before, word := len(dst), append(sc.text, 0) // reserve a byte for the leading space
	copy(word[1:], sc.text)
	word[0] = ' '
	for len(word) > 0 {
		n, id := t.pieces.Longest(word)
		if n == 0 || sc.Poll(n) {
			if dst = dst[:before]; t.unknown >= 0 {
				dst = append(dst, t.unknown)
			}
			break
		}
		dst, word = append(dst, id), word[n:]
	}
	sc.Made(1, len(dst))
	sc.text = sc.text[:0]
	return dst
}
