package caches

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"sandwich/cmd/sandwich/internal/models/ref"
)

// TestFind looks for files in the folders that each variable of the environment names. A file with
// another content is not taken.
func TestFind(t *testing.T) {
	sum := sha256.Sum256([]byte("abc"))
	name := hex.EncodeToString(sum[:])
	hf, err := ref.Parse("hf:a/b")
	if err != nil {
		t.Fatal(err)
	}
	other, err := ref.Parse("hf:a/c")
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join("models--a--b", "blobs", name)
	for _, c := range []struct {
		variable, path string
		r              ref.Ref
		content        string
		found          bool
	}{
		{"HF_HUB_CACHE", repo, hf, "abc", true},
		{"HF_HOME", "hub/" + repo, hf, "abc", true},
		{"XDG_CACHE_HOME", "huggingface/hub/" + repo, hf, "abc", true},
		{"HOME", ".cache/huggingface/hub/" + repo, hf, "abc", true},
		{"HOME", ".ollama/models/blobs/sha256-" + name, hf, "abc", true},
		{"OLLAMA_MODELS", "blobs/sha256-" + name, ref.Ref{Kind: ref.Registry}, "abc", true},
		{"HF_HUB_CACHE", repo, other, "abc", false},
		{"HF_HUB_CACHE", repo, hf, "abd", false},
		{"HF_HUB_CACHE", repo, hf, "abcd", false},
		{"HF_HUB_CACHE", repo + "/x", hf, "abc", false},
	} {
		dir := t.TempDir()
		for _, v := range []string{"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME", "OLLAMA_MODELS"} {
			t.Setenv(v, "")
		}
		t.Setenv(c.variable, dir)
		path := filepath.Join(dir, c.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, found := Find(t.Context(), c.r, name, 3)
		if found != c.found || found && got.Path != path {
			t.Errorf("%s %s with %q: %v, %v", c.variable, c.path, c.content, got, found)
		}
	}
}
