package main

import (
	"io"
	"os"
	"unicode/utf8"

	"github.com/mattn/go-isatty"

	"sandwich/runtime/api"
)

// Names and texts of files reach the terminal: of a model, its tensors, a plan, a template's
// complaint. A terminal obeys control characters, and those that turn the direction of writing make
// a line look like another one. All that a verb prints passes a cleanWriter or printable, which
// write such a character as \uXXXX: in JSON, where they only occur inside strings, that is the same
// string.

// printable is s with unprintable characters, and bytes that are no UTF-8, in hexadecimal.
func printable(s string) string { return api.Printable(s, "") }

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
	text := api.Printable(string(all[:end]), "\n\t")
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
