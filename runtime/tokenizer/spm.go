package tokenizer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sandwich/runtime/tokenizer/internal/tables"
)

// loadSPM reads a SentencePiece vocabulary (Kudo and Richardson 2018) of type BPE: tokens with
// scores. Two adjacent symbols merge if together they are a token; the pair with the best score
// merges first.
func (t *Tokenizer) loadSPM(meta Metadata, texts []string) error {
	scores, ok := meta.Floats(keyScores)
	if !ok {
		return fmt.Errorf("the SPM vocabulary has no scores (%s): use a GGUF file converted with its tokenizer",
			keyScores)
	}
	if len(scores) < len(texts) {
		return fmt.Errorf("the SPM vocabulary has %d tokens but %d scores: the file is damaged",
			len(texts), len(scores))
	}
	t.isSPM, t.addSpace, t.addBOS = true, true, true
	t.unknown, t.bos, t.eos = 0, 1, 2 // SentencePiece's defaults
	if v, ok := meta.Bool(keyAddSpace); ok {
		t.addSpace = v
	}
	t.encode = (*Tokenizer).encodeSPM
	mergeable, err := t.loadSpacedPieces(texts, scores)
	if err != nil {
		return err
	}
	t.joinPieces(mergeable, rankScores(mergeable, scores))
	t.spaceSym = t.syms.Find([]byte(" "))
	return nil
}

// loadSpacedPieces fills the symbols and the byte tokens and returns the ids that merging may
// produce.
func (t *Tokenizer) loadSpacedPieces(texts []string, scores []float32) (mergeable []int32, err error) {
	t.syms = tables.NewSymbols(len(texts), totalBytes(texts))
	for b := range t.byteSyms {
		t.byteSyms[b] = -1
	}
	for i, text := range texts {
		a, id := t.attrs[i], int32(i)
		switch {
		case a&attrByte != 0:
			b, ok := byteToken(text)
			if !ok {
				return nil, fmt.Errorf("token %d of the vocabulary, %.40q, is typed as a byte but not spelled "+
					"<0xXX>: the file is damaged", i, text)
			}
			t.syms.Add([]byte{b})
			t.byteSyms[b] = id
		case a&attrSpecial != 0:
			t.syms.Add([]byte(text))
		case a&attrNormal != 0:
			if scores[i] != scores[i] {
				return nil, fmt.Errorf("the score of token %d of the vocabulary, %.40q, is not a number: the "+
					"file is damaged", i, text)
			}
			if len(text) > maxSPMPiece {
				return nil, fmt.Errorf("token %d of the vocabulary has %d bytes, more than the %d that an SPM "+
					"token may have: the file is damaged", i, len(text), maxSPMPiece)
			}
			t.syms.Add([]byte(strings.ReplaceAll(text, spaceMark, " ")))
			t.syms.Enter(id)
			mergeable = append(mergeable, id)
		default:
			t.syms.Add(nil)
		}
	}
	return mergeable, nil
}

// rankScores returns the rank of each id: 0 for the best score, and the same rank for equal scores.
func rankScores(ids []int32, scores []float32) map[int32]uint32 {
	order := slices.Clone(ids)
	slices.SortFunc(order, func(a, b int32) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return int(a) - int(b)
	})
	ranks := make(map[int32]uint32, len(order))
	rank := uint32(0)
	for i, id := range order {
		if i > 0 && scores[id] != scores[order[i-1]] {
			rank++
		}
		ranks[id] = rank
	}
	return ranks
}

// joinPieces adds a merge rule for every split of every token into two symbols. A symbol is a token
// or a single character.
func (t *Tokenizer) joinPieces(ids []int32, ranks map[int32]uint32) {
	t.merge = tables.NewMergeTable(4 * len(ids))
	t.cutSpaces = true
	part := func(b []byte) int32 {
		if _, n := utf8.DecodeRune(b); n == len(b) {
			return t.syms.Intern(b)
		}
		return t.syms.Find(b)
	}
	for _, id := range ids {
		piece := bytes.Clone(t.syms.Bytes(id))
		if t.syms.Find(piece) != id {
			continue // an earlier token has the same spelling
		}
		for i := 0; i < len(piece); {
			_, n := utf8.DecodeRune(piece[i:])
			i += n
			if i == len(piece) {
				break
			}
			if piece[i] == ' ' && piece[i-1] != ' ' {
				t.cutSpaces = false
			}
			if left := part(piece[:i]); left >= 0 {
				if right := part(piece[i:]); right >= 0 {
					t.merge.Add(left, right, ranks[id], id)
				}
			}
		}
	}
}

// encodeSPM appends the tokens of text, which must not contain special tokens. SPM has no words:
// merging runs over the whole text, which is split only where no token can cross.
func (t *Tokenizer) encodeSPM(dst []int32, sc *scratch, text string, afterSpecial bool) []int32 {
	if strings.Contains(text, spaceMark) {
		text = strings.ReplaceAll(text, spaceMark, " ")
	}
	sc.word = sc.word[:0]
	if t.addSpace && afterSpecial {
		dst = t.pushSPM(dst, sc, " ")
	}
	for i := 0; i < len(text) && !sc.Ended; {
		n := 1
		if text[i] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(text[i:])
		} else if text[i] == ' ' && t.cutSpaces && i > 0 && text[i-1] != ' ' {
			dst = t.flushSPM(dst, sc)
		}
		dst = t.pushSPM(dst, sc, text[i:i+n])
		i += n
	}
	return t.flushSPM(dst, sc)
}

// pushSPM adds one character to the word. A character that is in no token ends the word and is
// encoded byte by byte.
func (t *Tokenizer) pushSPM(dst []int32, sc *scratch, char string) []int32 {
	id := t.spaceSym
	if char != " " {
		id = t.syms.FindString(char)
	}
	if id >= 0 {
		sc.word = append(sc.word, id)
		return dst
	}
	dst = t.flushSPM(dst, sc)
	if char == " " {
		char = spaceMark
	}
	for i := range len(char) {
		dst = t.appendByte(dst, char[i])
	}
	return dst
}

func (t *Tokenizer) flushSPM(dst []int32, sc *scratch) []int32 {
	dst = t.appendMerged(dst, sc, sc.word)
	sc.word = sc.word[:0]
	return dst
}
