package api

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// unprintable tells whether a terminal would obey a character in place of showing it: the controls
// C0 and C1, DEL, and the bidirectional controls of Unicode (UAX 9).
func unprintable(r rune) bool {
	switch {
	case r < 0x20, 0x7F <= r && r < 0xA0, r == 0x061C, r == 0x200E, r == 0x200F,
		0x202A <= r && r <= 0x202E, 0x2066 <= r && r <= 0x2069:
		return true
	}
	return false
}

// Printable is a text that a file may have written, for people to read: characters that a terminal
// would obey, and bytes that are no UTF-8, stand in it in hexadecimal, as \uXXXX and \xXX. Those of
// keep stay as they are. What quotes a model, a plan or a template passes through here.
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
