package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"sandwich/runtime/tokenizer/internal/tables"
)

// unknownPenalty is the difference between the lowest score of a token and the score of an unknown
// character.
const unknownPenalty = 10

// loadUnigram reads a Unigram vocabulary (Kudo: Subword Regularization, 2018): tokens with log
// probabilities. A text is split into its most probable sequence of tokens (Viterbi).
func (t *Tokenizer) loadUnigram(meta Metadata, texts []string) error {
	scores, ok := meta.Floats(keyScores)
	if !ok || len(scores) < len(texts) {
		return fmt.Errorf("the Unigram vocabulary of %d tokens has %d scores (%s): use a GGUF file converted with its "+
			"tokenizer", len(texts), len(scores), keyScores)
	}
	t.isSPM, t.loose = true, true
	t.unknown, t.bos, t.eos = 2, -1, 1 // defaults of T5
	t.addEOS = true
	t.addSpace, _ = meta.Bool(keyAddSpace)
	t.encode = (*Tokenizer).encodeUnigram
	u := &unigram{user: tables.NewTrie(0)}
	u.merge, _ = meta.Bool(keyMergeSpaces)
	var err error
	if u.chars, err = readCharsMap(meta); err != nil {
		return err
	}
	t.syms, t.pieces, t.uni = tables.NewSymbols(len(texts), totalBytes(texts)), tables.NewTrie(totalBytes(texts)), u
	for b := range t.byteSyms {
		t.byteSyms[b] = -1
	}
	lowest := math.Inf(1)
	for i, text := range texts {
		a, score := t.attrs[i], float64(scores[i])
		if len(text) > maxSPMPiece || math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("token %d of the vocabulary has %d bytes and a score of %v: the file is damaged", i,
				len(text), score)
		}
		id := t.syms.Add([]byte(strings.ReplaceAll(text, spaceMark, " ")))
		if a&attrNormal != 0 {
			lowest = min(lowest, score)
		}
		if a&attrUser != 0 {
			score = 0
			u.user.Add([]byte(text), id)
		}
		if a&(attrNormal|attrUser|attrUnused) != 0 {
			t.pieces.Add(t.syms.Bytes(id), id)
		}
		u.scores = append(u.scores, score)
	}
	if u.unknown = lowest - unknownPenalty; math.IsInf(lowest, 1) {
		u.unknown = -unknownPenalty
	}
	return nil
}

// readCharsMap reads the character map of a vocabulary. It returns nil if there is none.
func readCharsMap(meta Metadata) (*tables.CharsMap, error) {
	raw, ok := meta.Ints(keyCharsMap)
	if !ok || len(raw) == 0 {
		return nil, nil
	}
	blob := make([]byte, len(raw))
	for i, v := range raw {
		blob[i] = byte(v)
	}
	m, ok := tables.NewCharsMap(blob)
	if !ok {
		return nil, fmt.Errorf("the character map of the vocabulary (%s) is damaged: copy or download the file again",
			keyCharsMap)
	}
	return m, nil
}

// encodeUnigram appends the tokens of text, which must not contain special tokens. A run of unknown
// characters becomes one unknown token.
func (t *Tokenizer) encodeUnigram(dst []int32, sc *scratch, text string, _ bool) []int32 {
	for len(text) > 0 && !sc.Ended {
		// To bound memory, a text is processed in parts of limited size. A part ends before a
		// space, or at any character if it has no space.
		n := cutBefore(text, maxUnigramText)
		dst = t.viterbi(dst, sc, t.normalize(sc, text[:n]))
		text = text[n:]
	}
	return dst
}

// maxUnigramText is the largest part of a text, in bytes, that viterbi processes at once.
const maxUnigramText = 1 << 20

// cutBefore returns a length of at most n bytes at which text may be split.
func cutBefore(text string, n int) int {
	if len(text) <= n {
		return len(text)
	}
	if at := strings.LastIndexByte(text[:n], ' '); at > 0 {
		return at
	}
	for !utf8.RuneStart(text[n]) && n > 1 {
		n--
	}
	return n
}

// viterbi appends the most probable sequence of tokens of a normalized text.
func (t *Tokenizer) viterbi(dst []int32, sc *scratch, text []byte) []int32 {
	if len(text) == 0 {
		return dst
	}
	sc.best = slices.Grow(sc.best[:0], len(text)+1)[:len(text)+1]
	for i := range sc.best {
		sc.best[i] = best{score: -math.MaxFloat64, token: t.unknown}
	}
	sc.best[0].score = 0
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRune(text[at:])
		if sc.Poll(size) {
			return dst
		}
		if !t.relax(sc.best, text, at, size) {
			sc.best[at+size].better(sc.best[at].score+t.uni.unknown, at, t.unknown)
		}
		at += size
	}
	first := len(dst)
	unknown := false // whether the previous token was unknown
	for at := int32(len(text)); at > 0; at = sc.best[at].from {
		b := &sc.best[at]
		if is := b.token == t.unknown; !is || !unknown {
			if b.token >= 0 {
				dst = append(dst, b.token)
			}
			unknown = is
		}
	}
	slices.Reverse(dst[first:])
	sc.Made(1, len(dst))
	return dst
}

// relax extends the best split at a position by every token that starts there. It reports whether
// one of these tokens is the single character of the given size.
func (t *Tokenizer) relax(all []best, text []byte, at, size int) (single bool) {
	node := int32(0)
	for i := at; i < len(text); i++ {
		var ok bool
		if node, ok = t.pieces.Step(node, text[i]); !ok {
			break
		}
		if id := t.pieces.Tokens[node]; id >= 0 {
			single = single || i+1 == at+size
			all[i+1].better(all[at].score+t.uni.scores[id], at, id)
		}
	}
	return single
}

func (b *best) better(score float64, from int, token int32) {
	if score > b.score {
		*b = best{score, int32(from), token}
	}
}

// normalize converts text to the form that the model was trained on: it maps characters and inserts
// or collapses spaces. The result is valid until the next call.
func (t *Tokenizer) normalize(sc *scratch, text string) []byte {
	out := sc.text[:0]
	inWord, begun := false, false
	put := func(b byte) {
		if b == ' ' {
			inWord = false
			if !t.uni.merge {
				out = append(out, ' ')
			}
			return
		}
		if !inWord {
			inWord = true
			if t.addSpace && !begun || t.uni.merge {
				out = append(out, ' ')
				begun = true
			}
		}
		out = append(out, b)
	}
	for len(text) > 0 {
		if sc.Poll(1) {
			break
		}
		part, n := t.uni.prefix(text)
		for i := range len(part) {
			put(part[i])
		}
		text = text[n:]
	}
	sc.text = out
	return out
}

// prefix returns the normal form of the first part of text and the length of that part in bytes.
func (u *unigram) prefix(text string) (normal string, n int) {
	if n, token := u.user.Longest([]byte(text[:min(len(text), maxSPMPiece)])); token >= 0 {
		return text[:n], n
	}
	if u.chars != nil {
		if normal, n, ok := u.chars.Prefix(text); ok {
			return normal, n
		}
	}
	r, n := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && n == 1 {
		return string(utf8.RuneError), 1
	}
	return text[:n], n
}
