package jsontext

import (
	"encoding/json"
	"iter"
	"strings"
)

// Members iterates over the fields of a JSON object without copying values. body must be valid
// JSON; anything but an object yields nothing.
func Members(body []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := SkipSpace(body, 0)
		if i == len(body) || body[i] != '{' {
			return
		}
		for i = SkipSpace(body, i+1); body[i] == '"'; i = SkipSpace(body, i+1) {
			end := skipValue(body, i)
			var name string
			if json.Unmarshal(body[i:end], &name) != nil {
				return
			}
			at := SkipSpace(body, SkipSpace(body, end)+1) // after the colon
			end = skipValue(body, at)
			if i = SkipSpace(body, end); !yield(name, body[at:end]) || body[i] != ',' {
				return
			}
		}
	}
}

// Member returns the string that a field of a JSON object has, "" if it is absent or no string. Of
// several fields of the name, the last one counts, as in encoding/json.
func Member(body []byte, name string) (text string) {
	for field, value := range Members(body) {
		if field == name {
			text, _ = String(value)
		}
	}
	return text
}

// SkipSpace returns the index of the first byte at or after i that is not white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the end of the JSON value at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		default:
			for i+1 < len(b) && !strings.ContainsRune("{}[],:\" \t\r\n", rune(b[i+1])) {
				i++
			}
		}
		i++
		if depth == 0 {
			return i
		}
	}
}
