package demo

import (
	"bytes"
	"os"
	"testing"
)

func TestModelIsGGUF(t *testing.T) {
	if !bytes.HasPrefix(Model(), []byte("GGUF\x03\x00\x00\x00")) {
		t.Fatalf("starts with %q", Model()[:min(8, len(Model()))])
	}
	for _, want := range []string{"tokenizer.chat_template", "cc0-1.0", "Tales 6M"} {
		if !bytes.Contains(Model()[:1<<20], []byte(want)) {
			t.Errorf("the metadata lack %q", want)
		}
	}
	if len(Name()) == 0 {
		t.Error("no name")
	}
}

// TestValidationText guards the perplexity figures of the README: they hold for these bytes alone.
func TestValidationText(t *testing.T) {
	text, err := os.ReadFile("testdata/val.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 104_128 || text[len(text)-1] != '\n' || bytes.IndexByte(text, '\r') >= 0 {
		t.Errorf("%d bytes", len(text))
	}
}
