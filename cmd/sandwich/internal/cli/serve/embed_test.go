package serve

import (
	"slices"
	"strings"
	"testing"
)

// TestReadLines checks that a file gives one text per line, and that an empty file and one above
// the limit are refused.
func TestReadLines(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string // nil: refused
	}{
		{"a\nb\r\n\nc", []string{"a", "b", "", "c"}}, {"12345678", []string{"12345678"}},
		{"1234567\n", []string{"1234567"}}, {"123\n56789", nil}, {"", nil},
	} {
		got, err := readLines(strings.NewReader(c.file), "texts", 8)
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) {
			t.Errorf("%q: %q, %v", c.file, got, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "texts ") {
			t.Errorf("%q: the error %q does not name the file", c.file, err)
		}
	}
}
