// Package show formats the output of commands: text without control characters, tables and
// sentences as wide as the terminal, and progress bars.
package show

import (
	"io"
	"os"
	"unicode/utf8"

	"github.com/mattn/go-isatty"

	"sandwich/runtime/api"
)

// Output contains names and texts from files: of models, tensors, plans and templates. A terminal
// interprets control characters in them, and characters that change the direction of writing make a
// line look like another one. Commands therefore print through Writer or Printable, which escape
// such a character as \uXXXX. In JSON, where they occur only inside strings, that is the same
// string.

// Printable returns s with unprintable characters as \uXXXX and invalid UTF-8 as hexadecimal
// bytes.
func Printable(s string) string { return api.Printable(s, "") }

// Writer writes text with unprintable characters escaped. Callers call Flush at the end.
type Writer struct {
	to   io.Writer
	rest []byte // start of an incomplete rune
}

// NewWriter returns a Writer that writes to to.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

func (w *Writer) Write(p []byte) (int, error) {
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

// Flush writes the bytes of an incomplete rune.
func (w *Writer) Flush() {
	_, _ = io.WriteString(w.to, Printable(string(w.rest))) // the underlying writer remembers errors
	w.rest = nil
}

// Raw returns the writer for generated text and binary data: the underlying writer of w, which
// keeps every byte, unless standard output is a terminal, which would interpret control
// characters.
func Raw(w io.Writer) io.Writer {
	if clean, ok := w.(*Writer); ok && !isatty.IsTerminal(os.Stdout.Fd()) {
		return clean.to
	}
	return w
}
