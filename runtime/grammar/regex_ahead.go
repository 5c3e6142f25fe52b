package grammar

import "strings"

// ahead parts an expression that begins with look-ahead behind ^ into expressions that must match
// and such that must not: ^(?=A)(?!B)C is ^(?:A) and ^C and not ^(?:B).
func ahead(text string) (want, unwanted []string) {
	rest, anchored := strings.CutPrefix(text, "^")
	for anchored && (strings.HasPrefix(rest, "(?=") || strings.HasPrefix(rest, "(?!")) {
		end, _ := closing(rest)
		if end < 0 {
			break
		}
		if inner := "^(?:" + rest[3:end] + ")"; rest[2] == '=' {
			want = append(want, inner)
		} else {
			unwanted = append(unwanted, inner)
		}
		rest = rest[end+1:]
	}
	if _, apart := closing("(" + rest + ")"); len(want)+len(unwanted) == 0 || apart {
		return []string{text}, nil // what look-ahead stands before is not all
	}
	if rest != "" {
		want = append(want, "^"+rest)
	}
	return want, unwanted
}

// closing is where the group that a text begins with ends, -1 where it does not, and whether it has
// alternatives.
func closing(text string) (end int, apart bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			for i++; i < len(text) && text[i] != ']'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(':
			depth++
		case '|':
			apart = apart || depth == 1
		case ')':
			if depth--; depth == 0 {
				return i, apart
			}
		}
	}
	return -1, apart
}
