package yamldoc

import (
	"strings"
	"testing"
)

// TestParse checks texts with no, one and several documents, and damaged ones.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"# nothing\n":           "",
		"---\n":                 "",
		"null\n":                "",
		"--- ~\n":               "",
		"a: 1\n":                "a",
		"\ufeffa: 1\r\n":        "a",
		"---\na: 1\n...\n":      "a",
		"%YAML 1.1\n---\na: 1":  "a",
		"a: 1\n---\nb: 1\n":     "! several documents",
		"a: 1\n---\nb: [\n":     "! line ",
		"a: [\n":                "! line ",
		"a: *x\n":               "! unknown anchor",
		"\ta: 1\n":              "! ",
		"a: \"\x00\"\n":         "! ",
		strings.Repeat("[", 99): "! ",
	} {
		n, err := Parse([]byte(text))
		got := ""
		if n != nil && len(n.Content) > 0 {
			got = n.Content[0].Value
		}
		if part, fails := strings.CutPrefix(want, "! "); fails {
			if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "yaml:") {
				t.Errorf("%.20q: %v, want %q", text, err, part)
			}
		} else if err != nil || got != want {
			t.Errorf("%.20q: %q, %v; want %q", text, got, err, want)
		}
	}
}
