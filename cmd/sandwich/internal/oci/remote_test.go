package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// fakeRegistry is as much of the distribution specification as pushing and pulling need, in memory;
// answer, where it is set, comes first and may do as it likes.
type fakeRegistry struct {
	mu        sync.Mutex
	blobs     map[string][]byte // by digest
	manifests map[string][]byte // by digest and by tag
	answer    func(w http.ResponseWriter, r *http.Request) bool
}

func newRegistry(t testing.TB) (*fakeRegistry, string) {
	f := &fakeRegistry{blobs: map[string][]byte{}, manifests: map[string][]byte{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return f, strings.TrimPrefix(s.URL, "http://")
}

func (f *fakeRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.answer != nil && f.answer(w, r) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, name, _ := strings.Cut(r.URL.Path, "/v2/plans/")
	kind, name, _ := strings.Cut(name, "/")
	switch {
	case kind == "blobs" && r.Method == http.MethodPost:
		w.Header().Set("Location", "/v2/plans/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case kind == "blobs" && r.Method == http.MethodPut:
		f.blobs[r.URL.Query().Get("digest")], _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
	case kind == "blobs":
		f.send(w, r, f.blobs[name], "application/octet-stream")
	case kind == "manifests" && r.Method == http.MethodPut:
		data, _ := io.ReadAll(r.Body)
		f.manifests[name], f.manifests[digest.FromBytes(data).String()] = data, data
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
		w.WriteHeader(http.StatusCreated)
	case kind == "manifests":
		var m struct {
			MediaType string `json:"mediaType"`
		}
		_ = json.Unmarshal(f.manifests[name], &m)
		f.send(w, r, f.manifests[name], cmp.Or(m.MediaType, v1.MediaTypeImageManifest))
	case kind == "tags" && len(f.manifests) > 0:
		tags := slices.DeleteFunc(slices.Sorted(maps.Keys(f.manifests)), func(name string) bool {
			return strings.Contains(name, ":")
		})
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "plans", "tags": tags})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *fakeRegistry) send(w http.ResponseWriter, r *http.Request, data []byte, kind string) {
	if data == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}

// TestRegistry checks that a pushed plan can be pulled by tag and by digest, and that its digest
// equals that in a layout.
func TestRegistry(t *testing.T) {
	_, host := newRegistry(t)
	at := host + "/plans:1"
	pinned := push(t, at, "a packed plan")
	if again := push(t, at, "a packed plan"); again != pinned {
		t.Errorf("%s and %s", pinned, again)
	}
	_, here, _ := strings.Cut(push(t, "oci:"+t.TempDir(), "a packed plan"), "@")
	if !strings.HasSuffix(pinned, here) {
		t.Errorf("%s in a layout, %s in a registry", here, pinned)
	}
	for _, place := range []string{at, pinned} {
		got, by, err := placeOf(t, place, Options{}).Pull(t.Context())
		if err != nil || string(got) != "a packed plan" || by != pinned {
			t.Errorf("%s: %q, %s, %v", place, got, by, err)
		}
	}
	if _, _, err := placeOf(t, host+"/plans:2", Options{}).Pull(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "has no such repository or tag") {
		t.Errorf("%v", err)
	}
}

// manifestOf is a manifest in which something was changed.
func manifestOf(t *testing.T, change func(m *v1.Manifest)) []byte {
	var m v1.Manifest
	if err := json.Unmarshal(planManifest(t).data, &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRegistryAnswersWrongly checks that each invalid answer of a registry gives an error of one
// sentence that names the registry or the answer, in bounded time and memory.
func TestRegistryAnswersWrongly(t *testing.T) {
	status := func(code int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return true
		}
	}
	manifest := func(change func(m *v1.Manifest)) func(http.ResponseWriter, *http.Request) bool {
		data := manifestOf(t, change)
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/manifests/") {
				(&fakeRegistry{}).send(w, r, data, v1.MediaTypeImageManifest)
				return true
			}
			return false
		}
	}
	endless := func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", v1.MediaTypeImageManifest)
		w.Header().Set("Content-Length", "10000000000")
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				break
			}
		}
		return true
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"an error": {status(500, `{"errors":[{"code":"UNKNOWN","message":"`+strings.Repeat("x", 9999)+`"}]}`),
			"answered 500"},
		"no login":        {status(403, ""), "docker login"},
		"no JSON":         {status(404, "<html>"), "has no such repository or tag"},
		"an empty answer": {status(200, ""), "cannot be used"},
		"an image": {manifest(func(m *v1.Manifest) { m.ArtifactType, m.Config.MediaType = "", "image/x" }),
			`it is of the type "image/x"`},
		"two layers": {manifest(func(m *v1.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }),
			"it has 2 layers"},
		"10 GB":        {manifest(func(m *v1.Manifest) { m.Layers[0].Size = 10 << 30 }), "the limit is"},
		"below zero":   {manifest(func(m *v1.Manifest) { m.Layers[0].Size = -1 }), "the limit is"},
		"another size": {manifest(func(m *v1.Manifest) { m.Layers[0].Size++ }), "cannot be used"},
		"another sum":  {manifest(func(m *v1.Manifest) { m.Layers[0].Digest = "sha512:x" }), "is not a sha256 digest"},
		"endless":      {endless, "the limit is"},
		"other bytes": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				w.Header().Set("Content-Length", "13")
				fmt.Fprint(w, "another plan!")
			}
			return strings.Contains(r.URL.Path, "/blobs/")
		}, "the received data is not sha256:"},
	} {
		f, host := newRegistry(t)
		push(t, host+"/plans:1", "a packed plan")
		f.answer = c.answer
		_, _, err := placeOf(t, host+"/plans:1", Options{}).Pull(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 600 {
			t.Errorf("%s: want %q in %v", name, c.want, err)
		}
	}
}

// TestSlowRegistry checks the timeout with a registry that sends nothing, and with one that sends a
// byte at a time, until the client gives up.
func TestSlowRegistry(t *testing.T) {
	for name, drip := range map[string]bool{"silent": false, "dripping": true} {
		f, host := newRegistry(t)
		// The context of a request does not end with its client if its body is not read.
		over, end := context.WithCancel(t.Context())
		f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			if drip {
				w.Header().Set("Content-Type", v1.MediaTypeImageManifest)
				w.Header().Set("Content-Length", "1000000")
			}
			for drip && over.Err() == nil {
				fmt.Fprint(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
			<-over.Done()
			return true
		}
		place := placeOf(t, host+"/plans:1", Options{Timeout: 200 * time.Millisecond})
		_, _, err := place.Pull(t.Context())
		if err == nil || !strings.Contains(err.Error(), "did not answer in full within 200ms") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := place.Push(t.Context(), []byte("x"), nil); err == nil ||
			!strings.Contains(err.Error(), "within 200ms") {
			t.Errorf("%s: pushing: %v", name, err)
		}
		end()
	}
}

// TestNoOtherHost checks that redirects, upload addresses and token endpoints at another host are
// followed only if the user named that host.
func TestNoOtherHost(t *testing.T) {
	var asked []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		fmt.Fprint(w, "a packed plan")
	}))
	defer other.Close()
	named := "add --allow-host 127.0.0.1:"
	for name, c := range map[string]struct {
		want   string
		answer func(http.ResponseWriter, *http.Request) bool
	}{
		"a redirect": {named, func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, other.URL+"/blob", http.StatusTemporaryRedirect)
			return true
		}},
		"a token endpoint": {named, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+other.URL+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}},
		"an upload": {"is on a different host than the registry", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.Header().Set("Location", other.URL+"/upload")
				w.WriteHeader(http.StatusAccepted)
			}
			return r.Method == http.MethodPost
		}},
	} {
		f, host := newRegistry(t)
		f.answer = c.answer
		_, err := placeOf(t, host+"/plans:1", Options{}).Push(t.Context(), []byte("x"), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(asked) != 0 {
		t.Errorf("the other host was asked for %v", asked)
	}
}

// TestNamedHost checks that a blob at another host that the user named is fetched from there,
// without the password of the registry.
func TestNamedHost(t *testing.T) {
	password := ""
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		password += r.Header.Get("Authorization")
		w.Header().Set("Content-Length", "13")
		fmt.Fprint(w, "a packed plan")
	}))
	defer other.Close()
	f, host := newRegistry(t)
	push(t, host+"/plans:1", "a packed plan")
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		_, _, known := r.BasicAuth()
		switch {
		case !known:
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, other.URL+"/blob", http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	login := fmt.Sprintf(`{"auths":{%q:{"auth":"dXNlcjpzZWNyZXQ="}}}`, host)
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	named := Options{Hosts: []string{strings.TrimPrefix(other.URL, "http://")}}
	got, _, err := placeOf(t, host+"/plans:1", named).Pull(t.Context())
	if err != nil || string(got) != "a packed plan" || password != "" {
		t.Errorf("%q, %v, password %q", got, err, password)
	}
}

// TestOnlyTLS checks that a named host is never contacted without TLS.
func TestOnlyTLS(t *testing.T) {
	g := &guard{host: "registry.example", others: []string{"blobs.example"}}
	for url, want := range map[string]string{"http://registry.example/v2/": "only TLS is allowed there",
		"http://blobs.example/": "only TLS is allowed there", "https://other.example/": "add --allow-host " +
			"other.example"} {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.RoundTrip(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
