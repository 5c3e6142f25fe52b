package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/models/ref"
)

const sha = "0123456789012345678901234567890123456789"

// hubOf returns the address of a hub whose repository a/b has files.
func hubOf(t *testing.T, files ...string) *url.URL {
	t.Helper()
	type lfs struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	}
	type sibling struct {
		Path string `json:"rfilename"`
		LFS  *lfs   `json:"lfs"`
	}
	about := struct {
		SHA      string    `json:"sha"`
		Siblings []sibling `json:"siblings"`
	}{SHA: sha}
	for i, f := range files {
		about.Siblings = append(about.Siblings, sibling{f, &lfs{fmt.Sprintf("%064d", i), int64(100 + i)}})
	}
	text, err := json.Marshal(about)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/models/a/b/revision/main" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(text)
	})
}

func serve(t *testing.T, h http.HandlerFunc) *url.URL {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestChoice checks which files references select.
func TestChoice(t *testing.T) {
	many := []string{"README.md", "m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-UD-Q4_K_M.gguf", "m-UD-Q2_K.gguf",
		"mmproj-F16.gguf",
		"m.imatrix.gguf", "BF16/m-BF16-00002-of-00002.gguf", "BF16/m-BF16-00001-of-00002.gguf", "F16/model.gguf",
		"m.IQ2_XS.gguf", "m_q5_1.gguf"}
	for variant, want := range map[string]string{
		"":                   "m-Q4_K_M: m-Q4_K_M.gguf",
		":Q8_0":              "m-Q8_0: m-Q8_0.gguf",
		":q8_0":              "m-Q8_0: m-Q8_0.gguf",
		":Q2_K":              "m-UD-Q2_K: m-UD-Q2_K.gguf",
		":UD-Q4_K_M":         "m-UD-Q4_K_M: m-UD-Q4_K_M.gguf",
		":BF16":              "m-BF16: m-BF16-00001-of-00002.gguf m-BF16-00002-of-00002.gguf",
		":F16":               "model: model.gguf",
		":Q5_1":              "m_q5_1: m_q5_1.gguf",
		":IQ2_XS":            "m.IQ2_XS: m.IQ2_XS.gguf",
		":m-Q8_0.gguf":       "m-Q8_0: m-Q8_0.gguf",
		":Q3_K":              "! no model of the type Q3_K",
		":M":                 "! 2 models of the type M",
		":mmproj-F16.gguf":   "! no model",
		":m-BF16-00001.gguf": "! no model",
	} {
		r, err := ref.Parse("hf:a/b" + variant)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Find(t.Context(), http.DefaultClient, hubOf(t, many...), r)
		got := ""
		if err == nil {
			got = m.Name + ":"
			for _, f := range m.Files {
				got += " " + f.Name
			}
		}
		if text, fails := strings.CutPrefix(want, "! "); fails && (err == nil || !strings.Contains(err.Error(),
			text)) ||
			!fails && (got != want || m.Revision != sha || m.Check() != nil) {
			t.Errorf("%q: %s, %v; want %s", variant, got, err, want)
		}
	}
}

// TestNames checks that paths with special characters are escaped in addresses and become names of
// files.
func TestNames(t *testing.T) {
	r, err := ref.Parse("hf:a/b")
	if err != nil {
		t.Fatal(err)
	}
	base := hubOf(t, "../../x y?#.gguf")
	m, err := Find(t.Context(), http.DefaultClient, base, r)
	if want := base.String() + "/a/b/resolve/" + sha + "/../../x%20y%3F%23.gguf"; err != nil ||
		m.Files[0].URL != want ||
		m.Files[0].Name != "x_y__.gguf" || m.Files[0].Size != 100 {
		t.Errorf("%+v, %v; want %s", m, err, want)
	}
}

// TestRefusals checks the errors about repositories and servers that cannot be used.
func TestRefusals(t *testing.T) {
	answer := func(text string) *url.URL {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	status := func(code int) *url.URL {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	for _, c := range []struct {
		hub  *url.URL
		want string
	}{
		{hubOf(t, "model.safetensors"), "no GGUF file"},
		{hubOf(t, "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"), "parts are missing"},
		{hubOf(t, "m-00002-of-00002.gguf"), "parts are missing"},
		{hubOf(t, "a/m.gguf", "b/n.gguf"), "one of m.gguf, n.gguf"},
		{hubOf(t, "..gguf"), "not usable as a file name"},
		{answer("<!DOCTYPE html><html>"), `sends "text/html" instead of JSON`},
		{answer(`{"sha":"../../etc"}`), "it is not a hub"},
		{answer("[]"), "instead of JSON"},
		{status(404), "set HF_TOKEN"},
		{status(401), "set HF_TOKEN"},
		{status(429), "try again later"},
		{status(502), "502 Bad Gateway"},
	} {
		r, err := ref.Parse("hf:a/b")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Find(t.Context(), http.DefaultClient, c.hub, r); err == nil || !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("%+v, %v; want %q", m, err, c.want)
		}
	}
}
