package tokenizer

import "strings"

// gonja reads "a if c else b" only as a whole tag, but templates use it inside parentheses, lists and arguments too. There it
// is rewritten before parsing to what gonja does read and what gives the same value: (((c) and [a]) or [b])[0]. A list of one
// element is true whatever the element is, and "and" and "or" yield their operands and evaluate no more than they need.

// rewriteConditionals rewrites the conditional expressions inside all tags of a template.
func rewriteConditionals(source string) string {
	var out strings.Builder
	for source != "" {
		at := strings.IndexByte(source, '{')
		if at < 0 || at+1 >= len(source) {
			break
		}
		out.WriteString(source[:at])
		source = source[at:]
		switch source[1] {
		case '#':
			end := strings.Index(source, "#}")
			if end < 0 {
				end = len(source)
			}
			out.WriteString(source[:end])
			source = source[end:]
		case '{', '%':
			end := tagEnd(source)
			raw := source[1] == '%' && strings.Trim(source[2:end], "-+ \t\r\n") == "raw"
			out.WriteString(source[:2])
			out.WriteString(rewriteTag(source[2:end], source[1] == '{'))
			source = source[end:]
			if raw {
				end := strings.Index(source, "endraw")
				if end < 0 {
					end = len(source)
				}
				out.WriteString(source[:end])
				source = source[end:]
			}
		default:
			out.WriteByte('{')
			source = source[1:]
		}
	}
	out.WriteString(source)
	return out.String()
}

// tagEnd returns where the closing bracket of the tag at the start of s is, or len(s).
func tagEnd(s string) int {
	closing := byte('}')
	if s[1] == '%' {
		closing = '%'
	}
	for i, depth := 2, 0; i < len(s); {
		switch s[i] {
		case '\'', '"':
			i = stringEnd(s, i)
			continue
		case '(', '[', '{':
			depth++
		case ')', ']':
			depth--
		case '}', '%':
			if s[i] == closing && depth <= 0 && strings.HasPrefix(s[i+1:], "}") {
				return i
			}
			if s[i] == '}' {
				depth--
			}
		}
		i++
	}
	return len(s)
}

// stringEnd returns the index after the string literal that starts at i.
func stringEnd(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == quote {
			return i + 1
		}
	}
	return len(s)
}

// rewriteTag rewrites the inside of a tag. Outside brackets a conditional of an output or an assignment is rewritten too, since
// gonja reads only one there; the words if and else of other tags are left alone.
func rewriteTag(s string, output bool) string {
	if !strings.Contains(s, " if ") {
		return s
	}
	head := s[:len(s)-len(strings.TrimLeft(s, "-+ \t\r\n"))]
	tail := s[len(strings.TrimRight(s, "-+ \t\r\n")):]
	if len(head)+len(tail) >= len(s) {
		return s
	}
	body := s[len(head) : len(s)-len(tail)]
	if !output && !strings.HasPrefix(body, "set ") {
		return head + rewriteBrackets(body) + tail
	}
	return head + rewriteParts(body) + tail
}

// rewriteBrackets rewrites what stands inside the brackets of s.
func rewriteBrackets(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		switch s[i] {
		case '\'', '"':
			end := stringEnd(s, i)
			out.WriteString(s[i:end])
			i = end
		case '(', '[', '{':
			end := closingBracket(s, i)
			out.WriteByte(s[i])
			out.WriteString(rewriteParts(s[i+1 : end]))
			i = end
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	return out.String()
}

// closingBracket returns the index of the bracket that closes the one at i, or len(s).
func closingBracket(s string, i int) int {
	for depth := 0; i < len(s); {
		switch s[i] {
		case '\'', '"':
			i = stringEnd(s, i)
			continue
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
		i++
	}
	return len(s)
}

// rewriteParts rewrites the expressions of a list: parted by commas, colons and single equals signs.
func rewriteParts(s string) string {
	var out strings.Builder
	from := 0
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '\'', '"':
			i = stringEnd(s, i)
			continue
		case '(', '[', '{':
			i = closingBracket(s, i) + 1
			continue
		case '=':
			if i > 0 && strings.IndexByte("=!<>", s[i-1]) >= 0 || strings.HasPrefix(s[i+1:], "=") {
				break
			}
			fallthrough
		case ',', ':':
			out.WriteString(rewriteConditional(s[from:i]))
			out.WriteByte(c)
			from = i + 1
		}
		i++
	}
	out.WriteString(rewriteConditional(s[min(from, len(s)):]))
	return out.String()
}

// rewriteConditional rewrites one expression, "a if c else b" or another one. In a chain the first "if" is the outermost.
func rewriteConditional(s string) string {
	at := wordOutside(s, "if")
	if at < 0 {
		return rewriteBrackets(s)
	}
	yes, rest, no := s[:at], s[at+len("if"):], "none"
	if at := wordOutside(rest, "else"); at >= 0 {
		rest, no = rest[:at], rest[at+len("else"):]
	}
	return " (((" + rewriteBrackets(rest) + ") and [" + rewriteBrackets(yes) + "]) or [" + rewriteConditional(no) + "])[0] "
}

// wordOutside returns where a word stands in s outside strings and brackets, or -1.
func wordOutside(s, word string) int {
	inName := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] == '_' || s[i] == '.' || asciiClasses[s[i]&0x7F] == letter || asciiClasses[s[i]&0x7F] == number)
	}
	for i := 0; i < len(s); {
		switch s[i] {
		case '\'', '"':
			i = stringEnd(s, i)
			continue
		case '(', '[', '{':
			i = closingBracket(s, i)
		}
		if i < len(s) && strings.HasPrefix(s[i:], word) && !inName(i-1) && !inName(i+len(word)) {
			return i
		}
		i++
	}
	return -1
}
