package server

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"sandwich/runtime/api"
)

// Answers are appended to byte slices field by field, because a stream writes a small object per
// token and reflection would dominate its cost.

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD. Unicode line separators
// are escaped because many stream readers split lines at them.
func appendString(b []byte, s string) []byte {
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

// escapeSeparators escapes Unicode line separators in JSON; in valid JSON they occur only inside
// strings. It returns b itself if it contains none.
func escapeSeparators(b []byte) []byte {
	if !bytes.Contains(b, []byte("\u0085")) && !bytes.Contains(b, []byte("\u2028")) &&
		!bytes.Contains(b, []byte("\u2029")) {
		return b
	}
	for _, r := range []rune{nextLine, lineSeparator, paragraphSeparator} {
		b = bytes.ReplaceAll(b, []byte(string(r)), []byte(separatorEscape(r)))
	}
	return b
}

// appendInt appends a decimal integer.
func appendInt(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) }

// appendLogprob appends a log probability. JSON has no infinity; OpenAI sends -9999 instead.
func appendLogprob(b []byte, v float32) []byte {
	if math.IsNaN(float64(v)) || v < -9999 {
		v = -9999
	}
	return strconv.AppendFloat(b, float64(min(v, 0)), 'g', -1, 32)
}

// appendBytes appends the bytes of s as a JSON list of numbers.
func appendBytes(b []byte, s string) []byte {
	b = append(b, '[')
	for i := range len(s) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, int(s[i]))
	}
	return append(b, ']')
}

// appendChatToken appends one element of a chat's logprobs.content.
func appendChatToken(b []byte, t *api.Token) []byte {
	b = appendTokenFields(append(b, '{'), &t.TokenLogprob)
	b = append(b, `,"top_logprobs":[`...)
	for i := range t.Top {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendTokenFields(append(b, '{'), &t.Top[i]), '}')
	}
	return append(b, "]}"...)
}

// appendTokenFields appends the fields of a token without braces.
func appendTokenFields(b []byte, t *api.TokenLogprob) []byte {
	b = appendString(append(b, `"token":`...), t.Piece)
	b = appendLogprob(append(b, `,"logprob":`...), t.Logprob)
	return appendBytes(append(b, `,"bytes":`...), t.Piece)
}

// appendChatLogprobs appends the logprobs of a chat choice.
func appendChatLogprobs(b []byte, tokens []api.Token) []byte {
	b = append(b, `{"content":[`...)
	for i := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendChatToken(b, &tokens[i])
	}
	return append(b, `],"refusal":null}`...)
}

// appendTextLogprobs appends the logprobs of a completion. offset is the position in bytes of the
// first token in the answer.
func appendTextLogprobs(b []byte, tokens []api.Token, offset int) []byte {
	list := func(name string, f func(t *api.Token)) {
		b = append(append(b, name...), `:[`...)
		for i := range tokens {
			if i > 0 {
				b = append(b, ',')
			}
			f(&tokens[i])
		}
		b = append(b, ']')
	}
	list(`{"tokens"`, func(t *api.Token) { b = appendString(b, t.Piece) })
	unknown := func(t *api.Token) bool { return math.IsNaN(float64(t.Logprob)) && t.Prompt }
	list(`,"token_logprobs"`, func(t *api.Token) {
		if unknown(t) {
			b = append(b, "null"...)
		} else {
			b = appendLogprob(b, t.Logprob)
		}
	})
	list(`,"top_logprobs"`, func(t *api.Token) {
		if unknown(t) {
			b = append(b, "null"...)
		} else {
			b = appendTop(b, t.Top)
		}
	})
	list(`,"text_offset"`, func(t *api.Token) {
		b = appendInt(b, max(0, offset))
		offset += len(t.Piece)
	})
	return append(b, '}')
}

// appendTop appends alternatives as one object. Of tokens with equal text it keeps the most likely
// one, because keys must differ.
func appendTop(b []byte, top []api.TokenLogprob) []byte {
	b = append(b, '{')
	for i := range top {
		seen := false
		for j := range i {
			seen = seen || top[j].Piece == top[i].Piece
		}
		if seen {
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, top[i].Piece)
		b = appendLogprob(append(b, ':'), top[i].Logprob)
	}
	return append(b, '}')
}

// appendUsage appends the token counts of a generation as an object.
func appendUsage(b []byte, r *api.Result) []byte {
	b = appendInt(append(b, `{"prompt_tokens":`...), r.PromptTokens)
	b = appendInt(append(b, `,"completion_tokens":`...), r.Tokens)
	b = appendInt(append(b, `,"total_tokens":`...), r.PromptTokens+r.Tokens)
	b = appendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), r.CachedTokens)
	return append(b, "}}"...)
}
