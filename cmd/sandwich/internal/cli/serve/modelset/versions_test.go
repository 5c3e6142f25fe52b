package modelset

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/models/cachetest"
	"sandwich/runtime/demo"
	"sandwich/runtime/server/status"
	"sandwich/runtime/session"
)

// TestReplaced checks that a file that is replaced while its model is loaded is read at the next
// load: after the model was displaced by another one, and after a reload of the catalog.
func TestReplaced(t *testing.T) {
	if raceEnabled {
		t.Skip("kernels are slow in race builds")
	}
	dir := models(t)
	file := filepath.Join(dir, "llama-tiny.gguf")
	o := options(t, catalogOf(t, dir, `memory: 40MiB
models:
  - {name: llama, model: llama-tiny.gguf, context: 64}
  - {name: tales, model: tales.gguf, context: 64}
`))
	noted := make(chan string, 100)
	o.Notice = func(text string) { noted <- text }
	s := open(t, o)
	h := handler(s)
	say := func(model string) string {
		return ask(t, h, "/v1/completions", `{"model":"`+model+`","prompt":"x","max_tokens":8,"temperature":0}`)
	}
	write(t, file, synthetic(t, "llama-tiny", 0))
	first := say("llama")
	write(t, file, synthetic(t, "llama-tiny", 1))
	if again := say("llama"); again != first {
		t.Errorf("the loaded model answers %s, and before %s", again, first)
	}
	say("tales")
	second := say("llama")
	write(t, file, synthetic(t, "llama-tiny", 2))
	if _, err := s.reload(); err != nil {
		t.Fatal(err)
	}
	third := say("llama")
	if first == second || second == third || !strings.HasPrefix(third, "200 ") {
		t.Errorf("answers %s, %s and %s", first, second, third)
	}
	if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reload(); err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`^llama: the file was replaced, its hash is now ([0-9a-f]{12}) and was ([0-9a-f]{12});`)
	var hashes [][]string
	same := 0
	for range len(noted) {
		text := <-noted
		if m := pattern.FindStringSubmatch(text); m != nil {
			hashes = append(hashes, m[1:])
		} else if strings.HasPrefix(text, "llama: the file was written again; its hash is the same, ") {
			same++
		}
	}
	// The file is written before the first load and touched before the last reload; it is replaced
	// after the unloading and before the first reload.
	if len(hashes) != 2 || same != 2 {
		t.Fatalf("notices of replaced files have the hashes %v; %d say that the hash is the same", hashes, same)
	}
	for i, h := range hashes {
		if h[0] == h[1] || i > 0 && h[1] != hashes[i-1][0] {
			t.Errorf("the hashes are %v", hashes)
		}
	}
}

// TestPlans checks that the plan of each model is described before its first load, for the keys
// that may use the model.
func TestPlans(t *testing.T) {
	dir := models(t)
	write(t, filepath.Join(dir, "keys"), []byte("secret"))
	o := options(t, catalogOf(t, dir, `models:
  - {name: tales, model: tales.gguf, context: 128, parallel: 3, keys: keys}
  - {name: embed, model: bert-tiny.gguf, context: 64}
`))
	o.Describe = func(s *session.Session, parallel int) *status.Plan {
		return &status.Plan{Model: s.Name, Version: fmt.Sprint(parallel)}
	}
	h := handler(open(t, o))
	for _, c := range []struct{ key, query, want string }{
		{"secret", "?model=tales", `200 {"model":"tales","version":"3"`},
		{"secret", "?model=embed", `200 {"model":"embed"`},
		{"secret", "", `200 {"model":"tales"`},
		{"", "?model=tales", "401 "},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sandwich/plan"+c.query, nil)
		if c.key != "" {
			r.Header.Set("Authorization", "Bearer "+c.key)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := fmt.Sprint(w.Code, " ", w.Body); !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestReferences checks that a reference in a catalog resolves from the cache of another program,
// and that one that is in none is refused, without a request.
func TestReferences(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"SANDWICH_MODELS", "OLLAMA_MODELS", "HF_HUB_CACHE"} {
		t.Setenv(v, filepath.Join(dir, v))
	}
	t.Setenv("HF_ENDPOINT", "http://127.0.0.1:1") // refuses everything
	if err := cachetest.Ollama(filepath.Join(dir, "OLLAMA_MODELS"), "registry.ollama.ai/library/tales/latest",
		demo.Model()); err != nil {
		t.Fatal(err)
	}
	h := handler(open(t, options(t, catalogOf(t, dir, "models: [{name: a, model: 'ollama:tales', context: 64}]"))))
	if got := ask(t, h, "/tokenize", `{"model":"a","content":"x"}`); !strings.HasPrefix(got, "200 ") {
		t.Error(got)
	}
	for _, reference := range []string{"hf:me/tales", "ollama:tales:1b"} {
		_, err := Open(options(t, catalogOf(t, dir, "models: [{name: a, model: '"+reference+"'}]")))
		if err == nil || !strings.Contains(err.Error(), "sandwich pull "+reference) {
			t.Errorf("%s: %v", reference, err)
		}
	}
}
