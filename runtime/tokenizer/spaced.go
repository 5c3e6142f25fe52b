package tokenizer

import "strings"

// loadSpacedBPE reads the vocabulary of Gemma 4: SPM pieces with marks for spaces and byte
// fallback, which merge by rules. Text is split at runs of line ends only.
func (t *Tokenizer) loadSpacedBPE(meta Metadata, texts []string) error {
	t.isSPM, t.addBOS, t.cutSpaces = true, true, true
	t.bos, t.eos, t.unknown = -1, -1, -1
	t.encode = (*Tokenizer).encodeSpacedBPE
	if _, err := t.loadSpacedPieces(texts, make([]float32, len(texts))); err != nil {
		return err
	}
	if err := t.loadMerges(meta, appendSpaced); err != nil {
		return err
	}
	t.spaceSym = t.syms.Find([]byte(" "))
	return nil
}

// appendSpaced appends the bytes of a piece in which spaceMark spells a space.
func appendSpaced(dst []byte, piece string) ([]byte, bool) {
	return append(dst, strings.ReplaceAll(piece, spaceMark, " ")...), true
}

// encodeSpacedBPE appends the tokens of text, which must not contain special tokens. A run of line
// ends that is a token is not merged.
func (t *Tokenizer) encodeSpacedBPE(dst []int32, sc *scratch, text string, _ bool) []int32 {
	for len(text) > 0 && !sc.Ended {
		n := len(text) - len(strings.TrimLeft(text, "\n"))
		if n == 0 {
			if n = strings.IndexByte(text, '\n'); n < 0 {
				n = len(text)
			}
		} else if id := t.syms.FindString(text[:n]); id >= 0 && int(id) < len(t.attrs) {
			sc.Made(n, len(dst)+1)
			dst, text = append(dst, id), text[n:]
			continue
		}
		dst = t.encodeSPM(dst, sc, text[:n], false)
		text = text[n:]
	}
	return dst
}
