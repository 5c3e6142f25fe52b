// Package sheet builds the text of exported files.
package sheet

import (
	"fmt"
	"strings"
)

// Sheet is the text of a file whose comments start with #. The zero value is empty.
type Sheet struct {
	text strings.Builder
}

// Note adds a comment line. It replaces control characters, so that text from a plan cannot end the
// comment.
func (s *Sheet) Note(format string, a ...any) {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, a...))
	fmt.Fprintf(&s.text, "# %s\n", clean)
}

// Line adds a line.
func (s *Sheet) Line(format string, a ...any) { fmt.Fprintf(&s.text, format+"\n", a...) }

// Add adds text as it is.
func (s *Sheet) Add(text string) { s.text.WriteString(text) }

// String returns the text.
func (s *Sheet) String() string { return s.text.String() }
