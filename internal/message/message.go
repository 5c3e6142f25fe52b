// Package message formats values for messages.
package message

import (
	"fmt"
	"strings"
)

// Clip returns s, or its first limit bytes and an ellipsis if it is longer. It drops a character
// that the cut would split.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// Plural returns a number with a noun, such as "1 core" and "2 cores".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OrNone returns s, or "none" if it is empty.
func OrNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
