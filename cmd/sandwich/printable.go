package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// Names and texts of files reach the terminal: of a model, its tensors, a plan, a template's
// complaint. A terminal obeys control characters, and those that turn the direction of writing make
// a line look like another one. All that a verb prints passes a cleanWriter or printable, which
// write such a character as \uXXXX: in JSON, where they only occur inside strings, that is the same
// string.

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

// printable is s with unprintable characters, and bytes that are no UTF-8, in hexadecimal.
func printable(s string) string { return escape(s, "") }

// escape is printable but for the characters in keep.
func escape(s, keep string) string {
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

// cleanWriter is standard output as verbs see it: lines of printable text.
type cleanWriter struct {
	to   io.Writer
	rest []byte // a rune whose end was not written yet
}

func (w *cleanWriter) Write(p []byte) (int, error) {
	all := append(w.rest, p...)
	end := len(all)
	for n := 1; n < utf8.UTFMax && n <= len(all); n++ {
		if tail := all[len(all)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				end -= n
			}
			break
		}
	}
	text := escape(string(all[:end]), "\n\t")
	w.rest = append(w.rest[:0:0], all[end:]...)
	_, err := io.WriteString(w.to, text)
	return len(p), err
}

// flush writes what is left of a rune that never ended.
func (w *cleanWriter) flush() {
	_, _ = io.WriteString(w.to, printable(string(w.rest))) // checkedWriter tells
	w.rest = nil
}

// rawText is where the text that a model makes goes: to the byte, since it is the data that was
// asked for, unless a terminal would obey it.
func rawText(w io.Writer) io.Writer {
	if clean, ok := w.(*cleanWriter); ok && !isatty.IsTerminal(os.Stdout.Fd()) {
		return clean.to
	}
	return w
}
