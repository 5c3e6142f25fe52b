package pretok

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Building blocks of the other pre-tokenizers.

// runeAt returns the character at i and its length in bytes, which is 0 at the end of text.
func runeAt(text string, i int) (rune, int) {
	if i >= len(text) {
		return 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRuneInString(text[i:])
}

// while returns the end of the run of characters in a set that starts at i.
func while(text string, i int, in func(rune) bool) int {
	for {
		r, n := runeAt(text, i)
		if n == 0 || !in(r) {
			return i
		}
		i += n
	}
}

func classOf(r rune) class {
	if r < utf8.RuneSelf {
		return asciiClasses[r]
	}
	return classes()[r]
}

func isLetter(r rune) bool { return classOf(r) == letter }
func isNumber(r rune) bool { return classOf(r) == number }
func isSpace(r rune) bool  { return classOf(r) == space }
func isMark(r rune) bool   { return r >= 0x300 && unicode.Is(unicode.M, r) }
func isPunct(r rune) bool  { return unicode.Is(unicode.P, r) }
func isHan(r rune) bool    { return r >= 0x2E80 && unicode.Is(unicode.Han, r) }
func isCased(r rune) bool  { return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt) }

func between(r, lo, hi rune) bool { return r >= lo && r <= hi }

// falconMark matches [\p{P}\$\+<=>\^~\|`]; defaultMark matches the same without the grave accent.
func falconMark(r rune) bool  { return r == '`' || defaultMark(r) }
func defaultMark(r rune) bool { return isPunct(r) || strings.ContainsRune("$+<=>^~|", r) }

func kanaOrHan(r rune) bool { return between(r, 0x4E00, 0x9FA5) || between(r, 0x3040, 0x30FF) }

func deepseekMark(r rune) bool {
	return between(r, '!', '/') || between(r, ':', '~') || between(r, 0xFF01, 0xFF0F) || between(r, 0xFF1A, 0xFF5E) ||
		between(r, 0x2018, 0x201F) || between(r, 0x3000, 0x3002)
}

func deepseekEast(r rune) bool { return between(r, 0x0800, 0x9FA5) || between(r, 0xAC00, 0xD7FF) }

// scanYoutuFirst matches a run of Hangul, East Asian punctuation, Bopomofo, or kana and Han.
func scanYoutuFirst(text string) int {
	for _, in := range []func(rune) bool{
		func(r rune) bool { return between(r, 0xAC00, 0xD7A3) || between(r, 0x3131, 0x318E) },
		func(r rune) bool {
			return between(r, 0x3001, 0x303F) || between(r, 0xFE30, 0xFE4F) || strings.ContainsRune("！…“”‘’—：；，", r)
		},
		func(r rune) bool { return between(r, 0x3105, 0x312F) },
		kanaOrHan,
	} {
		if n := while(text, 0, in); n > 0 {
			return n
		}
	}
	return 0
}

// runIn returns a scanner for a run of characters in a set.
func runIn(in func(rune) bool) scanner {
	return func(text string) int { return while(text, 0, in) }
}

// spaceThen returns a scanner for \s? and a run of characters in a set.
func spaceThen(in func(rune) bool) scanner {
	return func(text string) int {
		if r, n := runeAt(text, 0); isSpace(r) {
			if end := while(text, n, in); end > n {
				return end
			}
		}
		return while(text, 0, in)
	}
}

func lineEnd(text string) int {
	if text[0] == '\r' || text[0] == '\n' {
		return 1
	}
	return 0
}

// spacesAtEnd matches \s+$.
func spacesAtEnd(text string) int {
	if n := while(text, 0, isSpace); n < len(text) {
		return -n
	}
	return len(text)
}

func oneNumber(text string) int    { return numbers(text, 1) }
func threeNumbers(text string) int { return numbers(text, 3) }

// threeDigits matches [0-9]{3}.
func threeDigits(text string) int {
	for i := range 3 {
		if i >= len(text) || text[i] < '0' || text[i] > '9' {
			return 0
		}
	}
	return 3
}

// groupsOfThree splits numbers into groups of three digits, counted from the end:
// (?=(\d{3})+(?!\d)).
func groupsOfThree(text string, f func(word string) bool) bool {
	from := 0
	for at := 0; at < len(text); {
		end := while(text, at, func(r rune) bool { return between(r, '0', '9') })
		for i := at + (end-at)%3; i < end; i += 3 {
			if from < i && !f(text[from:i]) {
				return false
			}
			from = i
		}
		_, n := runeAt(text, end)
		at = end + n
	}
	return from == len(text) || f(text[from:])
}

// scanBloom matches " ?[^(\s|.,!?…。，、।۔،)]+".
func scanBloom(text string) int {
	in := func(r rune) bool { return !isSpace(r) && !strings.ContainsRune("(|.,!?…。，、।۔،)", r) }
	if text[0] == ' ' {
		if n := while(text, 1, in); n > 1 {
			return n
		}
	}
	return while(text, 0, in)
}

// scanQwen35 is scanQwen2, except that words include combining marks.
func scanQwen35(text string) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	first, size := runeAt(text, 0)
	if first != '\r' && first != '\n' && !isLetter(first) && !isNumber(first) {
		if n := while(text, size, letterOrMark); n > size {
			return n
		}
	}
	if n := while(text, 0, letterOrMark); n > 0 {
		return n
	}
	if isNumber(first) {
		return size
	}
	at := 0
	if text[0] == ' ' {
		at = 1
	}
	symbol := func(r rune) bool { return classOf(r) == other && !isMark(r) }
	if n := while(text, at, symbol); n > at {
		return while(text, n, isLineEnd)
	}
	return linesOrSpaces(text)
}

func isLineEnd(r rune) bool { return r == '\r' || r == '\n' }

// scanDeepSeek3 is the last stage of DeepSeek V3's pre-tokenizer (see its tokenizer.json).
func scanDeepSeek3(text string) int {
	first, size := runeAt(text, 0)
	symbol := func(r rune) bool { return r != '~' && unicode.In(r, unicode.P, unicode.S) } // llama.cpp excludes ~
	if first == '~' || first < utf8.RuneSelf && symbol(first) {
		ascii := func(r rune) bool { return between(r, 'A', 'Z') || between(r, 'a', 'z') }
		if n := while(text, 1, ascii); n > 1 {
			return n
		}
	}
	if !isLineEnd(first) && !isLetter(first) && !symbol(first) {
		if n := while(text, size, letterOrMark); n > size {
			return n
		}
	}
	if n := while(text, 0, letterOrMark); n > 0 {
		return n
	}
	at := 0
	if text[0] == ' ' {
		at = 1
	}
	if n := while(text, at, symbol); n > at {
		return while(text, n, isLineEnd)
	}
	if isSpace(first) {
		return linesOrSpaces(text)
	}
	return 0
}

// sentinel matches <sentinel:[0-9]+>.
func sentinel(text string) int {
	const begin = "<sentinel:"
	if !strings.HasPrefix(text, begin) {
		return 0
	}
	n := while(text, len(begin), func(r rune) bool { return between(r, '0', '9') })
	if n == len(begin) || n == len(text) || text[n] != '>' {
		return 0
	}
	return n + 1
}

// imageTokens matches IMGIMG[A-I]{1,4}Z.
func imageTokens(text string) int {
	const begin = "IMGIMG"
	if !strings.HasPrefix(text, begin) {
		return 0
	}
	n := while(text, len(begin), func(r rune) bool { return between(r, 'A', 'I') })
	if k := n - len(begin); k < 1 || k > 4 || n == len(text) || text[n] != 'Z' {
		return 0
	}
	return n + 1
}

// tabOrSpaces matches [\t\n]|    |  .
func tabOrSpaces(text string) int {
	switch {
	case text[0] == '\t' || text[0] == '\n':
		return 1
	case strings.HasPrefix(text, "    "):
		return 4
	case strings.HasPrefix(text, "  "):
		return 2
	}
	return 0
}

// chameleonMark matches [\p{P}!-/:-@\[-`{-~].
func chameleonMark(text string) int {
	r, n := runeAt(text, 0)
	if isPunct(r) || between(r, '!', '/') || between(r, ':', '@') || between(r, '[', '`') || between(r, '{', '~') {
		return n
	}
	return 0
}
