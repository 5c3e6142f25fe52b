// Package jsontext appends JSON to byte slices and reads values and fields of JSON bodies without
// decoding them as a whole.
package jsontext

import (
	"bytes"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// Answers are appended to byte slices field by field, because a stream writes a small object per
// token and reflection would dominate its cost.

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD. Unicode line separators
// are escaped because many stream readers split lines at them.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				b = append(append(b, s[done:i]...), "\ufffd"...)
				done = i + size
			case r == lineSeparator, r == paragraphSeparator, r == nextLine:
				b = append(append(b, s[done:i]...), separatorEscape(r)...)
				done = i + size
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		b = append(b, s[done:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		done = i
	}
	return append(append(b, s[done:]...), '"')
}

// Unicode line separators.
const (
	nextLine           = '\u0085'
	lineSeparator      = '\u2028'
	paragraphSeparator = '\u2029'
)

// separatorEscape returns the JSON escape of a line separator.
func separatorEscape(r rune) string {
	switch r {
	case nextLine:
		return `\u0085`
	case lineSeparator:
		return `\u2028`
	}
	return `\u2029`
}

// EscapeSeparators escapes Unicode line separators in JSON; in valid JSON they occur only inside
// strings. It returns b itself if it contains none.
func EscapeSeparators(b []byte) []byte {
	if !bytes.Contains(b, []byte("\u0085")) && !bytes.Contains(b, []byte("\u2028")) &&
		!bytes.Contains(b, []byte("\u2029")) {
		return b
	}
	for _, r := range []rune{nextLine, lineSeparator, paragraphSeparator} {
		b = bytes.ReplaceAll(b, []byte(string(r)), []byte(separatorEscape(r)))
	}
	return b
}

// AppendInt appends a decimal integer.
func AppendInt(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) }

// AppendBytes appends the bytes of s as a JSON list of numbers.
func AppendBytes(b []byte, s string) []byte {
	b = append(b, '[')
	for i := range len(s) {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendInt(b, int(s[i]))
	}
	return append(b, ']')
}

// Comma appends a comma unless elements is empty, so that another element can be appended.
func Comma(elements []byte) []byte {
	if len(elements) > 0 {
		elements = append(elements, ',')
	}
	return elements
}

// Write sends a complete JSON response.
func Write(w http.ResponseWriter, status int, body []byte) {
	body = EscapeSeparators(body)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}
