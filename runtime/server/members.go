package server

import (
	"encoding/json"
	"iter"
	"strings"
)

// members goes over the names and values of the object that body is, which has to
// be valid JSON; of anything else there are none. It copies no value.
func members(body []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := skipSpace(body, 0)
		if i == len(body) || body[i] != '{' {
			return
		}
		for i = skipSpace(body, i+1); body[i] == '"'; i = skipSpace(body, i+1) {
			end := skipValue(body, i)
			var name string
			if json.Unmarshal(body[i:end], &name) != nil {
				return
			}
			at := skipSpace(body, skipSpace(body, end)+1) // behind the colon
			end = skipValue(body, at)
			if i = skipSpace(body, end); !yield(name, body[at:end]) || body[i] != ',' {
				return
			}
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns where the value at i ends.
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
