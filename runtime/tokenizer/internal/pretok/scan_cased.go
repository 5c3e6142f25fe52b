package pretok

// Pre-tokenizers that split words where the case changes. As in llama.cpp, a letter outside ASCII
// counts as both upper and lower case.

// cased is a pre-tokenizer that splits words where the case changes.
type cased struct {
	upper, lower func(r rune) bool // a word is a run of upper and then a run of lower
	contractions bool              // a contraction belongs to the word before it
	digits       int               // the most digits of a word
	slashes      bool              // a run of symbols includes slashes after it, in addition to line ends
	first        func(r rune) bool // runs of these characters are words and take precedence; may be nil
}

// o200k is the pre-tokenizer of GPT-4o (tiktoken, o200k_base), Llama 4 and gpt-oss.
var o200k = cased{upper: notLowerASCII, lower: notUpperASCII, contractions: true, digits: 3, slashes: true}

// tekken is the pre-tokenizer of Mistral's models since Nemo.
var tekken = cased{upper: notLowerASCII, lower: notUpperASCII, digits: 1, slashes: true}

var youtu = cased{upper: letterOrMark, lower: letterOrMark, contractions: true, digits: 1, slashes: true}

var kimi = cased{upper: letterNotHan, lower: letterNotHan, contractions: true, digits: 3, first: isHan}

func scanGPT4o(text string) int  { return o200k.scan(text) }
func scanTekken(text string) int { return tekken.scan(text) }
func scanYoutu(text string) int  { return youtu.scan(text) }
func scanKimi(text string) int   { return kimi.scan(text) }

func notLowerASCII(r rune) bool { return (r < 'a' || r > 'z') && isLetter(r) }
func notUpperASCII(r rune) bool { return (r < 'A' || r > 'Z') && isLetter(r) }
func letterOrMark(r rune) bool  { return isLetter(r) || isMark(r) }
func letterNotHan(r rune) bool  { return isLetter(r) && !isHan(r) }

func (p *cased) scan(text string) int {
	if p.first != nil {
		if n := while(text, 0, p.first); n > 0 {
			return n
		}
	}
	first, size := runeAt(text, 0)
	if n := p.words(text, first, size); n > 0 {
		if p.contractions {
			n += contraction(text[n:], true)
		}
		return n
	}
	if n := numbers(text, p.digits); n > 0 {
		return n
	}
	at := 0
	if text[0] == ' ' {
		at = 1
	}
	if c, n := classAt(text, at); n > 0 && c == other {
		at = runOf(text, at+n, other)
		for at < len(text) && (text[at] == '\r' || text[at] == '\n' || p.slashes && text[at] == '/') {
			at++
		}
		return at
	}
	return linesOrSpaces(text)
}

// words returns the length of the word at the start of text, optionally with one other character
// before its letters. first is the first character of text, size its length.
func (p *cased) words(text string, first rune, size int) int {
	if first != '\r' && first != '\n' && !isLetter(first) && !isNumber(first) {
		if n, ends := p.word(text, size); n > size && (ends || !p.upper(first) && !p.lower(first)) {
			return n
		}
	}
	if n, _ := p.word(text, 0); n > 0 {
		return n
	}
	return 0
}

// word matches upper*lower+|upper+lower* at i. ends reports whether the first alternative matched.
// If neither matches it returns i.
func (p *cased) word(text string, i int) (end int, ends bool) {
	last := i // end of the last upper character that is also a lower one
	at := i
	for {
		r, n := runeAt(text, at)
		if n == 0 || !p.upper(r) {
			break
		}
		if at += n; p.lower(r) {
			last = at
		}
	}
	if end = while(text, at, p.lower); end > at {
		return end, true
	}
	if last > i {
		return last, true
	}
	return at, false
}
