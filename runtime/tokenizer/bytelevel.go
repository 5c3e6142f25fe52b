package tokenizer

import "unicode/utf8"

// Byte-level BPE (GPT-2) spells every byte as one printable character, so that a vocabulary is
// plain text. The printable bytes of Latin-1 spell themselves; the other 68 are numbered upwards
// from U+0100.

// byteOfRune maps a character of the spelling to the byte that it spells, or to -1.
var byteOfRune = func() (table [0x144]int16) {
	for i := range table {
		table[i] = -1
	}
	next := 0x100
	for b := range 256 {
		if printableLatin1(b) {
			table[b] = int16(b)
		} else {
			table[next] = int16(b)
			next++
		}
	}
	return table
}()

func printableLatin1(b int) bool {
	return b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE
}

// appendByteLevel appends the bytes that text spells. If text contains a character outside the
// spelling, it returns dst unchanged and false.
func appendByteLevel(dst []byte, text string) (_ []byte, ok bool) {
	mark := len(dst)
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		if int(r) >= len(byteOfRune) || byteOfRune[r] < 0 {
			return dst[:mark], false
		}
		dst = append(dst, byte(byteOfRune[r]))
		i += n
	}
	return dst, true
}
