package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPagesAreCurrent checks that the pages of docs/results are what `make results` writes.
func TestPagesAreCurrent(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "docs", "results")
	pages, err := render(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) == 0 {
		t.Fatal("no machine has results")
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is not what its CSV files give; run make results (%v)", name, err)
		}
	}
}

func TestRenderTable(t *testing.T) {
	got, err := renderTable("# title: T\n# command: bench x\n# note: n\na,b\n1,\"2, 3\"\n")
	want := "## T\n\nNote: n.\n\n```\nbench x\n```\n\n| a | b |\n|---|---|\n| 1 | 2, 3 |\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for text, want := range map[string]string{
		"a,b\n1,2\n":              "needs a title",
		"# title: T\na,b\n":       "needs a title, a header and a row",
		"# title: T\na,b\n1\n":    "wrong number of fields",
		"# who: x\na,b\n1,2\n":    "unknown key",
		"# title: T\na,b\n1,\"\n": "extraneous or missing",
	} {
		if _, err := renderTable(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error that contains %q, got %v", text, want, err)
		}
	}
}
