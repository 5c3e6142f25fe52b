package pretok

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// Pre-tokenizers split text into words; merging never crosses the boundary of a word. They are
// written by hand, because the published regular expressions need a look-ahead that Go's regexp
// lacks and because they process every prompt. Each scanner takes the rest of a text, which must
// not be empty, and returns the length in bytes of its first word, without looking at earlier text.
// Characters are classified by Go's Unicode 15.0 tables; llama.cpp's Unicode 15.1 has 622 more
// letters, the ideographs of extension I. A byte that is not valid UTF-8 is classified as U+FFFD, a
// symbol.

// scanner returns the length in bytes of the word that text starts with. It returns 0 if text does
// not start with a word, and -n if no word starts in the first n bytes either.
type scanner func(text string) int

// class is the class of a character in the patterns of the pre-tokenizers.
type class uint8

const (
	other  class = iota // none of the following: punctuation, symbols, marks, controls
	letter              // \p{L}
	number              // \p{N}
	space               // \s: White_Space
)

// classes returns the class of every rune. The table is built when the first non-ASCII character is
// classified; pages without letters are never written and take no memory.
var classes = sync.OnceValue(func() *[unicode.MaxRune + 1]class {
	table := new([unicode.MaxRune + 1]class)
	mark := func(ranges *unicode.RangeTable, c class) {
		for _, r := range ranges.R16 {
			for i := rune(r.Lo); i <= rune(r.Hi); i += rune(r.Stride) {
				table[i] = c
			}
		}
		for _, r := range ranges.R32 {
			for i := rune(r.Lo); i <= rune(r.Hi); i += rune(r.Stride) {
				table[i] = c
			}
		}
	}
	mark(unicode.L, letter)
	mark(unicode.N, number)
	mark(unicode.White_Space, space)
	return table
})

var asciiClasses = func() (table [utf8.RuneSelf]class) {
	for i := range table {
		switch r := rune(i); {
		case unicode.IsLetter(r):
			table[i] = letter
		case unicode.IsNumber(r):
			table[i] = number
		case unicode.IsSpace(r):
			table[i] = space
		}
	}
	return table
}()

// classAt returns the class and the length in bytes of the character at i. The length is 0 at the
// end of text.
func classAt(text string, i int) (class, int) {
	if i >= len(text) {
		return other, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return asciiClasses[b], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return classes()[r], n
}

// runOf returns the end of the run of characters of class c that starts at i.
func runOf(text string, i int, c class) int {
	for {
		got, n := classAt(text, i)
		if n == 0 || got != c {
			return i
		}
		i += n
	}
}

// scanGPT2 implements the pre-tokenizer of GPT-2 (Radford et al. 2019, encoder.py):
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func scanGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	at := 0
	if text[0] == ' ' {
		at = 1
	}
	if c, n := classAt(text, at); n > 0 && c != space {
		return runOf(text, at+n, c)
	}
	return spaces(text)
}

// scanLlama3 implements the pre-tokenizer of Llama 3 (tokenizer.json, pre_tokenizer "Split"):
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func scanLlama3(text string) int { return scanSplit(text, 3, true) }

// scanQwen2 implements the pre-tokenizer of Qwen 2 and 3, which is that of Llama 3 with \p{N} in
// place of \p{N}{1,3}.
func scanQwen2(text string) int { return scanSplit(text, 1, true) }

// scanSeedCoder is scanQwen2, except that a run of symbols does not include the line ends after it.
func scanSeedCoder(text string) int { return scanSplit(text, 1, false) }

func scanSplit(text string, maxDigits int, lineEnds bool) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	first, n := classAt(text, 0)
	switch first {
	case letter:
		return runOf(text, n, letter)
	case number:
		return numbers(text, maxDigits)
	}
	if text[0] != '\r' && text[0] != '\n' {
		if c, more := classAt(text, n); more > 0 && c == letter {
			return runOf(text, n+more, letter)
		}
	}
	at := 0
	if text[0] == ' ' {
		at = 1
	}
	if c, n := classAt(text, at); n > 0 && c == other {
		at = runOf(text, at+n, other)
		for lineEnds && at < len(text) && (text[at] == '\r' || text[at] == '\n') {
			at++
		}
		return at
	}
	return linesOrSpaces(text)
}

// numbers matches \p{N}{1,limit}.
func numbers(text string, limit int) (n int) {
	for range limit {
		c, more := classAt(text, n)
		if more == 0 || c != number {
			break
		}
		n += more
	}
	return n
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of text, or 0. If
// fold is set it ignores the case of ASCII letters, as llama.cpp does (full case folding would add
// the long s, U+017F).
func contraction(text string, fold bool) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	lower := func(b byte) byte {
		if fold && b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	a := lower(text[1])
	switch a {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		if len(text) > 2 {
			if b := lower(text[2]); b == 'e' && a != 'l' || b == 'l' && a == 'l' {
				return 3
			}
		}
	}
	return 0
}

// spaces matches \s+(?!\S)|\s+: the last white-space character before a word belongs to that word.
func spaces(text string) int {
	end, last := 0, 0
	for {
		c, n := classAt(text, end)
		if n == 0 {
			return end
		}
		if c != space {
			break
		}
		end, last = end+n, n
	}
	if end > last {
		return end - last
	}
	return end
}

// linesOrSpaces matches \s*[\r\n]+|\s+(?!\S)|\s+: white space up to its last line end, if it has
// one.
func linesOrSpaces(text string) int {
	lines := 0
	for end := 0; ; {
		c, n := classAt(text, end)
		if n == 0 || c != space {
			break
		}
		if text[end] == '\r' || text[end] == '\n' {
			lines = end + 1
		}
		end += n
	}
	if lines > 0 {
		return lines
	}
	return spaces(text)
}
