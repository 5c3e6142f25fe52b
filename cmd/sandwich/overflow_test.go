package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeOverflow checks that a request whose numbers overflow is answered with status 500 and
// the layer, and that the server continues.
func TestServeOverflow(t *testing.T) {
	data, err := smallModel("small", false, "blk.1.ffn_down.weight")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "over.gguf")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--model", path)
	for range 2 {
		status, body, _ := s.do(http.MethodPost, "/v1/completions", `{"prompt":"hello","max_tokens":4}`, "")
		if status != http.StatusInternalServerError || !strings.Contains(body, "overflow in layer 1 (ffn down)") {
			t.Errorf("%d %s", status, body)
		}
	}
	if status, body, _ := s.do(http.MethodGet, "/health", "", ""); status != http.StatusOK {
		t.Errorf("/health after overflows: %d %s", status, body)
	}
}
