package api

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// unprintable reports whether a terminal interprets a character instead of displaying it: C0 and C1
// controls, DEL, and the bidirectional controls of Unicode (UAX 9).
func unprintable(r rune) bool {
	switch {
	case r < 0x20, 0x7F <= r && r < 0xA0, r == 0x061C, r == 0x200E, r == 0x200F,
		0x202A <= r && r <= 0x202E, 0x2066 <= r && r <= 0x2069:
		return true
	}
	return false
}

// Printable returns s with control characters and invalid UTF-8 bytes escaped as \uXXXX and \xXX.
// Characters in keep stay as they are. Use it for text from models, plans or templates before it
// reaches a terminal or a log.
func Printable(s, keep string) string {
	bad := func(r rune) bool { return r == utf8.RuneError || unprintable(r) && !strings.ContainsRune(keep, r) }
	if strings.IndexFunc(s, bad) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r != utf8.RuneError && bad(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
