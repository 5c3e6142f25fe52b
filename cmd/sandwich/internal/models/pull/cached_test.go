package pull

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"sandwich/cmd/sandwich/internal/models/cachetest"
	"sandwich/cmd/sandwich/internal/models/modelserver"
	"sandwich/cmd/sandwich/internal/models/ref"
)

// check fails the test at an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCached checks that models in the caches of other programs are found by their references
// without a request, and used where they are.
func TestCached(t *testing.T) {
	w := newWorld(t)
	w.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		t.Errorf("a request for %s", r.URL)
		return false
	})
	q4, q8 := ggufOf(100, 'a'), ggufOf(200, 'b')
	hub, ollama := filepath.Join(os.Getenv("HOME"), ".cache", "huggingface", "hub"), os.Getenv("OLLAMA_MODELS")
	folder, err := cachetest.Hub(hub, "me/tales", map[string][]byte{"tales-Q4_K_M.gguf": q4, "tales-Q8_0.gguf": q8,
		"README.md": []byte("x")})
	check(t, err)
	_, err = cachetest.Hub(hub, "me/split", map[string][]byte{"F16/s-00001-of-00002.gguf": ggufOf(7, 'd'),
		"F16/s-00002-of-00002.gguf": ggufOf(9, 'e')})
	check(t, err)
	_, err = cachetest.Hub(hub, "me/part", map[string][]byte{"p-00001-of-00002.gguf": ggufOf(8, 'd')})
	check(t, err)
	check(t, cachetest.Ollama(ollama, "registry.ollama.ai/library/tales/latest", ggufOf(50, 'f')))
	check(t, cachetest.Ollama(ollama, w.Host+"/me/tales/1b", ggufOf(60, 'g')))
	find := func(reference string) (string, string, error) {
		r, err := ref.Parse(reference)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Cached(t.Context(), w.store, r, Options{Notice: func(string) {},
			Progress: func(string) (func(int64, int64), func()) { return func(int64, int64) {}, func() {} }})
		if err != nil {
			return "", "", err
		}
		path, err := w.store.Path(m)
		if err != nil {
			return "", "", err
		}
		data, err := os.ReadFile(path)
		return m.Name, string(data), err
	}
	for _, c := range []struct {
		reference, name string
		want            []byte
	}{
		{"hf:me/tales", "tales-Q4_K_M", q4},
		{"hf:me/tales:Q8_0", "tales-Q8_0", q8},
		{"hf:me/split", "s", ggufOf(7, 'd')},
		{"ollama:tales", "tales", ggufOf(50, 'f')},
		{w.Host + "/me/tales:1b", "tales-1b", ggufOf(60, 'g')},
		{"ollama:" + w.Host + "/me/tales:1b", "tales-1b-", ggufOf(60, 'g')}, // the name is taken
		{"hf:me/tales", "tales-Q4_K_M", q4},
	} {
		name, got, err := find(c.reference)
		if err != nil || got != string(c.want) || name != c.name && !strings.HasPrefix(name, c.name) {
			t.Errorf("%s: %s, %v", c.reference, name, err)
		}
	}
	check(t, cachetest.Write(filepath.Join(folder, "blobs", modelserver.SHA256(q8)), ggufOf(200, 'c'))) // damaged
	if err := w.store.Remove(t.Context(), "tales-Q8_0"); err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"hf:me/tales:Q8_0", "hf:me/tales:F16", "hf:me/none", "hf:me/part",
		"ollama:tales:2b", "ollama:none", w.Host + "/me/tales@" + digest.FromString("x").String(),
		w.URL + "/tales.gguf"} {
		if name, _, err := find(reference); !errors.Is(err, ErrNotCached) {
			t.Errorf("%s: %s, %v", reference, name, err)
		}
	}
	check(t, cachetest.Write(filepath.Join(folder, "refs", "main"), []byte("../../../x")))
	if _, _, err := find("hf:me/tales:BF16"); !errors.Is(err, ErrNotCached) {
		t.Errorf("a hostile revision: %v", err)
	}
}

// TestLimited checks that a pull waits for a hub that limits the number of requests, and says so.
func TestLimited(t *testing.T) {
	w := newWorld(t)
	data := ggufOf(5000, 'a')
	w.AddRepository("me/tales", map[string][]byte{"tales.gguf": data})
	left := map[string]int{"/api/": 2, "/cdn/": 2}
	var mu sync.Mutex
	w.Intercept(func(out http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		for prefix := range left {
			if strings.HasPrefix(r.URL.Path, prefix) && left[prefix] > 0 {
				left[prefix]--
				out.Header().Set("Retry-After", "30")
				out.WriteHeader(http.StatusTooManyRequests)
				return true
			}
		}
		return false
	})
	var waits []time.Duration
	_, got, err := w.pull(t.Context(), "hf:me/tales", Options{Connections: 1,
		Wait: func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		}})
	if err != nil || string(got) != string(data) || len(waits) != 4 {
		t.Errorf("%v, waits %v", err, waits)
	}
	for _, d := range waits {
		if d != 30*time.Second {
			t.Errorf("waits %v", waits)
		}
	}
	const notice = "limits the number of requests; waiting for 30s"
	if text := strings.Join(w.notices, "\n"); !strings.Contains(text, notice) {
		t.Errorf("notices: %s", text)
	}
}

// TestGatedFile checks that the text of the hub about a file that needs a login is passed on, with
// the remedy.
func TestGatedFile(t *testing.T) {
	w := newWorld(t)
	w.AddRepository("me/gated", map[string][]byte{"g.gguf": ggufOf(50, 'a')})
	for _, code := range []int{401, 403} {
		w.Intercept(func(out http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/resolve/") {
				return false
			}
			out.Header().Set("X-Error-Message", "Access to model me/gated is restricted.")
			out.WriteHeader(code)
			return true
		})
		_, _, err := w.pull(t.Context(), "hf:me/gated", Options{})
		if err == nil || !strings.Contains(err.Error(), "is restricted.") || !strings.Contains(err.Error(),
			"accept the terms of the repository at "+w.URL+"/me/gated, and set HF_TOKEN") {
			t.Errorf("%d: %v", code, err)
		}
	}
}
