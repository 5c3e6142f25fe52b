package page

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		method string
		accept []string
		want   bool
	}{
		{"GET", nil, false},
		{"GET", []string{""}, false},
		{"GET", []string{"*/*"}, false},
		{"GET", []string{"text/*"}, false},
		{"GET", []string{"text/plain"}, false},
		{"GET", []string{"application/json, text/plain, */*"}, false},
		{"GET", []string{"text/html"}, true},
		{"GET", []string{"TEXT/HTML;q=0.1"}, true},
		{"GET", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, true},
		{"GET", []string{"application/json", "text/html"}, true},
		{"GET", []string{"text/html;q=0"}, false},
		{"GET", []string{"text/html;q=0.000"}, false},
		{"GET", []string{"text/html;q=NaN, text/html;q=-1, text/html;q=2, text/html;q=x"}, false},
		{"GET", []string{"text/html;q=0.4, text/plain"}, false},
		{"GET", []string{"text/html, text/plain"}, true},
		{"GET", []string{"text/html;;;=, ,;"}, false},
		{"GET", []string{"text/htmlx"}, false},
		{"HEAD", []string{"text/html"}, false},
		{"POST", []string{"text/html"}, false},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		for _, a := range c.accept {
			r.Header.Add("Accept", a)
		}
		if got := Wanted(r); got != c.want {
			t.Errorf("%s with Accept %q: %v, want %v", c.method, c.accept, got, c.want)
		}
	}
}

// get returns the response of a handler to a GET of a path.
func get(h http.HandlerFunc, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h(w, r)
	return w
}

// TestFilesServed checks the headers of every file, and that a browser which has a file gets status
// 304.
func TestFilesServed(t *testing.T) {
	types := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml"}
	for _, name := range names(t) {
		h, target := File, Prefix+name
		want := types[path.Ext(name)]
		if name == indexFile {
			h, target, want = Index, "/", "text/html; charset=utf-8"
		}
		w := get(h, target)
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != want || want == "" {
			t.Errorf("%s: status %d, type %q, want %q", name, w.Code, got, want)
		}
		for key, value := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-cache"} {
			if got := w.Header().Get(key); got != value {
				t.Errorf("%s: %s is %q, want %q", name, key, got, value)
			}
		}
		if again := get(h, target, "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified ||
			again.Body.Len() > 0 {
			t.Errorf("%s: status %d for its own tag", name, again.Code)
		}
	}
}

func TestPolicy(t *testing.T) {
	const want = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := get(Index, "/").Header().Get("Content-Security-Policy"); got != want {
		t.Errorf("the policy is %q", got)
	}
}

func TestUnknownFiles(t *testing.T) {
	for _, target := range []string{"", "x.js", "index.html", "../page.go", "%2e%2e/page.go", "sub/app.js", "App.js",
		"app.js/", "app.js%00"} {
		w := get(File, Prefix+target)
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"not_found"`) {
			t.Errorf("%q: status %d, %s", target, w.Code, w.Body)
		}
	}
}

// names lists the embedded files.
func names(t *testing.T) []string {
	t.Helper()
	files, err := fs.ReadDir(assets, "assets")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, f.Name())
	}
	return out
}

// TestEveryFileIsUsed follows the references of the document and of the scripts. Each must name a
// file, and each file must be referenced.
func TestEveryFileIsUsed(t *testing.T) {
	reference := regexp.MustCompile(`(?:from "\./|(?:href|src)="page/)([^"]+)"`)
	used := map[string]bool{indexFile: true}
	for next := []string{indexFile}; len(next) > 0; next = next[1:] {
		text, err := assets.ReadFile("assets/" + next[0])
		if err != nil {
			t.Errorf("%s does not exist", next[0])
			continue
		}
		for _, m := range reference.FindAllSubmatch(text, -1) {
			if name := string(m[1]); !used[name] {
				used[name] = true
				next = append(next, name)
			}
		}
	}
	for _, name := range names(t) {
		if !used[name] {
			t.Errorf("no file refers to %s", name)
		}
	}
}

// TestScriptsAreSafe checks that no script interprets text as markup or code, that nothing is
// loaded from elsewhere, and that the policy admits the document: no inline scripts, styles or
// handlers.
func TestScriptsAreSafe(t *testing.T) {
	for _, name := range names(t) {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		banned := []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
			"DOMParser", "srcdoc", "http:", "localStorage", "@import", "url("}
		if name == indexFile {
			banned = append(banned, " style=", "<style", "<script>", "<form", "javascript:", "https:")
			if on := regexp.MustCompile(` on[a-z]+="`).Find(text); on != nil {
				t.Errorf("%s has the handler %s", name, on)
			}
		}
		for _, word := range banned {
			if path.Ext(name) != ".svg" && bytes.Contains(text, []byte(word)) {
				t.Errorf("%s contains %s", name, word)
			}
		}
		if lines := bytes.Count(text, []byte("\n")); lines > 400 {
			t.Errorf("%s has %d lines, above 400", name, lines)
		}
	}
}

// TestIDs checks that scripts ask only for ids that the document has.
func TestIDs(t *testing.T) {
	text, err := assets.ReadFile("assets/" + indexFile)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllSubmatch(text, -1) {
		if slices.Contains(ids, string(m[1])) {
			t.Errorf("the id %s occurs twice", m[1])
		}
		ids = append(ids, string(m[1]))
	}
	for _, name := range names(t) {
		script, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bid\("([^"]+)"\)`).FindAllSubmatch(script, -1) {
			if !slices.Contains(ids, string(m[1])) {
				t.Errorf("%s asks for the id %s, which the document lacks", name, m[1])
			}
		}
	}
}
