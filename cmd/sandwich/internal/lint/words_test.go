package lint

import (
	"bytes"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRetiredWords checks that identifiers, comments, strings and documents use the terms of
// docs/glossary.md: no word of testdata/retired.txt occurs in a Go or Markdown file.
//
// testdata/retired_allowed.txt names files that must spell a retired word, such as readers of old
// plan files. testdata/retired_pending.txt names folders and files that have not been converted
// yet. An entry of either list that exempts nothing fails the test.
func TestRetiredWords(t *testing.T) {
	retired, advice := readRetired(t)
	allowed := readList(t, "testdata/retired_allowed.txt")
	pending := readList(t, "testdata/retired_pending.txt")
	unused := maps.Clone(pending)
	for _, name := range append(moduleFiles(t), filesOf(t, ".md")...) {
		found := retiredIn(t, name, retired)
		for word := range found {
			if allowed[name][word] {
				delete(allowed[name], word)
				delete(found, word)
			}
		}
		if len(found) == 0 || strings.HasPrefix(name, "cmd/sandwich/internal/lint/") {
			continue
		}
		if isPending(pending, name) {
			delete(unused, name)
			delete(unused, path.Dir(name))
			continue
		}
		for _, word := range slices.Sorted(maps.Keys(found)) {
			t.Errorf("%s:%d uses the retired word %q; write: %s", name, found[word], word, advice(word))
		}
	}
	for name := range unused {
		t.Errorf("testdata/retired_pending.txt lists %s, which uses no retired word; remove the entry", name)
	}
	for name, words := range allowed {
		for word := range words {
			t.Errorf("testdata/retired_allowed.txt lets %s use %q, which it does not; remove the entry", name, word)
		}
	}
}

// isPending reports whether a file or its folder is in the list.
func isPending(list map[string]map[string]bool, name string) bool {
	return list[name] != nil || list[path.Dir(name)] != nil
}

// camel matches the boundary between two words of a camelCase identifier.
var camel = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// separators matches the characters that may separate the words of a phrase, comment marks at the
// start of a line included.
var separators = regexp.MustCompile(`[\t -]+|[\t ]*\n[\t ]*(?://|>)?[\t ]*`)

// retiredIn returns the retired words of a file and the line of the first occurrence of each.
func retiredIn(t *testing.T, name string, retired *regexp.Regexp) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module, name))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	words := bytes.ToLower(camel.ReplaceAll(text, []byte("$1$3 $2$4")))
	words = bytes.ReplaceAll(words, []byte("_"), []byte(" "))
	for _, at := range retired.FindAllIndex(words, -1) {
		word := separators.ReplaceAllString(string(words[at[0]:at[1]]), " ")
		if _, ok := found[word]; !ok {
			found[word] = 1 + bytes.Count(words[:at[0]], []byte("\n"))
		}
	}
	return found
}

// readRetired returns a pattern that matches every retired word in lower-case text, and a function
// that returns what to write in place of a match.
func readRetired(t *testing.T) (*regexp.Regexp, func(word string) string) {
	t.Helper()
	text, err := os.ReadFile("testdata/retired.txt")
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		pattern *regexp.Regexp
		advice  string
	}
	var entries []entry
	var all []string
	for line := range strings.Lines(string(text)) {
		word, advice, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(word, "#") {
			continue
		}
		p := strings.ReplaceAll(regexp.QuoteMeta(word), `\*`, `[a-z]*`)
		p = strings.ReplaceAll(p, " ", `(?:[\t -]+|[\t ]*\n[\t ]*(?://|>)?[\t ]*)`)
		all = append(all, p)
		entries = append(entries, entry{regexp.MustCompile(`^(?:` + p + `)$`), strings.TrimSpace(advice)})
	}
	advice := func(word string) string {
		for _, e := range entries {
			if e.pattern.MatchString(word) {
				return e.advice
			}
		}
		return "another word"
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(all, "|") + `)\b`), advice
}
