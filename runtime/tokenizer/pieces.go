package tokenizer

// spaceMark spells a space in SPM vocabularies. Symbols and text are stored with plain spaces.
const spaceMark = "▁"

// maxSPMPiece is the largest length in bytes of a mergeable token. It bounds the number of ways to
// split a token in two. The longest tokens in use are runs of sixteen spaces.
const maxSPMPiece = 1024

// appendMerged merges the symbols of one word and appends the resulting tokens. Inner symbols,
// which are not tokens, are encoded byte by byte.
func (t *Tokenizer) appendMerged(dst []int32, sc *scratch, word []int32) []int32 {
	if len(word) > 1 {
		word = t.merge.Merge(&sc.Work, word)
	}
	for _, id := range word {
		if sc.Made(1, len(dst)); sc.Ended {
			break
		}
		if int(id) < len(t.attrs) {
			dst = append(dst, id)
			continue
		}
		for _, b := range t.syms.Bytes(id) {
			dst = t.appendByte(dst, b)
		}
	}
	sc.Made(1, len(dst))
	return dst
}

// appendByte appends the token of a byte that no other token spells, or the unknown token if there
// is none. If the vocabulary has neither, it drops the byte.
func (t *Tokenizer) appendByte(dst []int32, b byte) []int32 {
	if id := t.byteSyms[b]; id >= 0 && int(id) < len(t.attrs) {
		return append(dst, id)
	}
	if t.unknown >= 0 {
		return append(dst, t.unknown)
	}
	return dst
}

// byteToken returns the byte of a byte token, which is spelled <0xXX>.
func byteToken(text string) (byte, bool) {
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return 0, false
	}
	hi, lo := hexDigit(text[3]), hexDigit(text[4])
	if hi < 0 || lo < 0 {
		return 0, false
	}
	return byte(hi<<4 | lo), true
}

func hexDigit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	}
	return -1
}

func totalBytes(texts []string) (n int) {
	for _, text := range texts {
		n += len(text)
	}
	return n
}
