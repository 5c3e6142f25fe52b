package hub

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
)

// mirror serves a description without checksums, and a list of files by pages. Links lead from page
// to page as link says, given the number of the next page.
func mirror(t *testing.T, pages []string, link func(base string, next int) string) *url.URL {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/api/models/a/b/"); path {
		case "revision/main":
			fmt.Fprintf(w, `{"sha":%q,"siblings":[{"rfilename":"m.gguf"}]}`, sha)
		case "tree/" + sha:
			n := 0
			fmt.Sscan(r.URL.Query().Get("cursor"), &n)
			if n >= len(pages) {
				http.NotFound(w, r)
				return
			}
			if n+1 < len(pages) || n < 0 {
				w.Header().Set("Link", link("http://"+r.Host+r.URL.Path, n+1))
			}
			fmt.Fprint(w, pages[n])
		default:
			http.NotFound(w, r)
		}
	})
}

// TestTree checks that checksums and files that a description lacks are taken from the pages of the
// list of files.
func TestTree(t *testing.T) {
	sum := strings.Repeat("7", 64)
	pages := []string{
		`[{"type":"directory","path":"Q8_0"},{"type":"file","path":"README.md","size":3}]`,
		`[{"type":"file","path":"Q8_0/m-00001-of-00002.gguf","size":130,"lfs":{"oid":"` + sum + `","size":1000}},` +
			`{"type":"file","path":"small.gguf","size":9}]`,
		`[{"type":"file","path":"Q8_0/m-00002-of-00002.gguf","size":130,"lfs":{"oid":"` + sum[1:] + `8","size":2000}}]`,
	}
	next := func(base string, n int) string {
		return fmt.Sprintf(`<%s?recursive=true&cursor=0>; rel="first", <%s?recursive=true&cursor=%d>; rel="next"`, base,
			base, n)
	}
	r, err := ref.Parse("hf:a/b:Q8_0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Find(t.Context(), http.DefaultClient, mirror(t, pages, next), r)
	if err != nil || len(m.Files) != 2 || m.Files[0].SHA256 != sum || m.Files[0].Size != 1000 ||
		m.Files[1].Size != 2000 || m.Name != "m" || m.Check() != nil {
		t.Errorf("%+v, %v", m, err)
	}
	r.Variant = "small.gguf"
	if m, err = Find(t.Context(), http.DefaultClient, mirror(t, pages, next), r); err != nil || m.Files[0].Size != 9 ||
		m.Files[0].SHA256 != "" {
		t.Errorf("%+v, %v", m, err)
	}
	r.Variant = ""
	for _, none := range [][]string{nil, {"<html>"}} { // the description has the only file
		m, err = Find(t.Context(), http.DefaultClient, mirror(t, none, next), r)
		if err != nil || m.Name != "m" || m.Files[0].Size != -1 {
			t.Errorf("without a list: %+v, %v", m, err)
		}
	}
}

// TestHostileTree checks pages that lead to another host, or never end.
func TestHostileTree(t *testing.T) {
	r, err := ref.Parse("hf:a/b")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"<http://127.0.0.1:1/x>; rel=next": "another host",
		"<https://files.example/x>; rel=next": "another host", "<://>; rel=next": "another host"} {
		hub := mirror(t, []string{"[]", "[]"}, func(string, int) string { return text })
		if _, err := Find(t.Context(), http.DefaultClient, hub, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	endless := mirror(t, []string{"[]", "[]"}, func(base string, _ int) string {
		return "<" + base + "?cursor=0>; rel=next"
	})
	if _, err := Find(t.Context(), http.DefaultClient, endless, r); err == nil || !strings.Contains(err.Error(),
		"1000 pages") {
		t.Error(err)
	}
}

// TestGated checks that the text of the hub about a repository that needs a login is passed on.
func TestGated(t *testing.T) {
	for code, want := range map[int]string{401: "needs a login", 403: "accept the terms"} {
		hub := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Error-Code", "GatedRepo")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, `{"error":"Access to model a/b is restricted.\u001b[2J"}`)
		})
		r, err := ref.Parse("hf:a/b")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Find(t.Context(), http.DefaultClient, hub, r)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "is restricted.") ||
			strings.Contains(err.Error(), "\x1b") || source.NeedsLogin(err) != (code == 403) {
			t.Errorf("%d: %v", code, err)
		}
	}
}
