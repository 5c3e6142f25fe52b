package ref

import (
	"path/filepath"
	"testing"
)

// FuzzParse checks that the canonical form of each reference is a reference to the same model.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"hf:a/b:Q8_0", "ollama:x/y:z", "localhost:1/a/b@sha256:" + string(make([]byte, 64)),
		"https://h/p?q#f", "http://[::1]:9/%2e%2e/m.gguf", "a.b/c:d", "hf.co/a/b:c.gguf"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		if !Is(text) {
			t.Errorf("%q is parsed, but does not look like a reference", text)
		}
		again, err := Parse(r.Text)
		if err != nil || again.Text != r.Text || again.Kind != r.Kind || again.Repo != r.Repo || again.Tag != r.Tag {
			t.Errorf("%q has the canonical form %q, which is %+v, %v", text, r.Text, again, err)
		}
	})
}

// FuzzFileName checks that each name is one component of a path.
func FuzzFileName(f *testing.F) {
	for _, text := range []string{"a.gguf", "../a", `..\a`, "/", "a/..", "\x00", "\u202e.gguf"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := FileName(text)
		if err == nil && (filepath.Base(name) != name || name[0] == '.' || name[0] == '-' || CheckName(name) != nil) {
			t.Errorf("%q becomes %q", text, name)
		}
	})
}
