package toolcall

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plainJSON returns valid JSON on one line, with characters instead of \u escapes where JSON allows
// them. Line separators and unpaired surrogates stay escaped. Spaces of JSON that is already on one
// line stay.
func plainJSON(text string) string {
	if !strings.ContainsAny(text, "\\\n\r\t\u0085\u2028\u2029") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = plainString(&b, text, i)
		case isBlank(c):
			end := i
			for end < len(text) && isBlank(text[end]) {
				end++
			}
			b.WriteString(plainBlank(text[i:end], text[:i], text[end:]))
			i = end
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// plainBlank returns the replacement for white space between JSON tokens: unchanged if it is on one
// line, else a space after a comma or a colon, and nothing elsewhere.
func plainBlank(blank, before, after string) string {
	switch {
	case !strings.ContainsAny(blank, "\n\r\t"):
		return blank
	case after != "" && (strings.HasSuffix(before, ",") || strings.HasSuffix(before, ":")):
		return " "
	}
	return ""
}

// plainString writes the string that starts at text[at] and returns where it ends.
func plainString(b *strings.Builder, text string, at int) int {
	b.WriteByte('"')
	for i := at + 1; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == '"':
			b.WriteByte('"')
			return i + 1
		case c == '\\' && i+1 < len(text):
			size = plainEscape(b, text[i:])
		default:
			writePlain(b, c, text[i:i+size])
		}
		i += size
	}
	return len(text)
}

// plainEscape writes the escape that s starts with and returns its length.
func plainEscape(b *strings.Builder, s string) int {
	if s[1] != 'u' {
		b.WriteString(s[:2])
		return 2
	}
	c, ok := unit(s)
	if !ok {
		b.WriteString(s[:2])
		return 2
	}
	size := 6
	if utf16.IsSurrogate(c) {
		low, _ := unit(s[size:])
		if c = utf16.DecodeRune(c, low); c != utf8.RuneError {
			size = 12
		}
	}
	if size == 6 && c == utf8.RuneError && !strings.EqualFold(s[2:6], "fffd") { // unpaired surrogate
		b.WriteString(s[:6])
		return 6
	}
	writePlain(b, c, s[:size])
	return size
}

// unit returns the UTF-16 code unit of the escape that s starts with.
func unit(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// short maps characters to their two-character escapes.
var short = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

// writePlain writes a character of a string; was is its original spelling.
func writePlain(b *strings.Builder, c rune, was string) {
	escape, isShort := short[c]
	switch {
	case isShort:
		b.WriteString(escape)
	case c < ' ':
		b.WriteString(was)
	case c == 0x85 || c == 0x2028 || c == 0x2029:
		fmt.Fprintf(b, `\u%04x`, c)
	case c == utf8.RuneError && !strings.HasPrefix(was, `\`):
		b.WriteString(was) // may be invalid UTF-8
	default:
		b.WriteRune(c)
	}
}
