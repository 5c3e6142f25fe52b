package pull

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"sandwich/cmd/sandwich/internal/models/modelserver"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/store"
)

// ggufOf returns the content of a file that begins as a GGUF file does.
func ggufOf(n int, fill byte) []byte {
	return append([]byte(magic), bytes.Repeat([]byte{fill}, n)...)
}

// world is a server and an empty store, with an environment without caches and credentials.
type world struct {
	*modelserver.Server
	store   *store.Store
	notices []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: modelserver.Start()}
	t.Cleanup(w.Close)
	for _, v := range []string{"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HF_TOKEN"} {
		t.Setenv(v, "")
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("OLLAMA_MODELS", filepath.Join(dir, "ollama"))
	t.Setenv("HF_ENDPOINT", w.URL)
	var err error
	if w.store, err = store.Open(filepath.Join(dir, "models")); err != nil {
		t.Fatal(err)
	}
	return w
}

// pull pulls by a reference and returns the content of the first file.
func (w *world) pull(ctx context.Context, reference string, o Options) (*store.Model, []byte, error) {
	r, err := ref.Parse(reference)
	if err != nil {
		return nil, nil, err
	}
	if o.Notice == nil {
		o.Notice = func(line string) { w.notices = append(w.notices, line) }
	}
	o.Progress = func(string) (func(int64, int64), func()) { return func(int64, int64) {}, func() {} }
	m, err := Pull(ctx, w.store, r, o)
	if err != nil {
		return nil, nil, err
	}
	path, err := w.store.Path(m)
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(path)
	return m, data, err
}

// asked returns the number of requests for content since the last call.
func (w *world) asked() (n int) {
	for _, r := range w.Requests() {
		if strings.Contains(r.URL.Path, "/cdn/") || strings.Contains(r.URL.Path, "/blobs/") ||
			strings.HasSuffix(r.URL.Path, ".gguf") && !strings.Contains(r.URL.Path, "/resolve/") {
			n++
		}
	}
	return n
}

// TestPull pulls from each kind of server, and again, which downloads nothing that has a checksum.
func TestPull(t *testing.T) {
	w := newWorld(t)
	a, b, c := ggufOf(100_000, 'a'), ggufOf(100_001, 'b'), ggufOf(10, 'c')
	w.AddRepository("me/tales-GGUF", map[string][]byte{"tales-Q8_0.gguf": a, "tales-Q4_K_M.gguf": b, "README.md": c})
	w.AddRepository("me/split", map[string][]byte{"F16/s-00001-of-00002.gguf": ggufOf(7, 'd'),
		"F16/s-00002-of-00002.gguf": ggufOf(9, 'e')})
	w.AddArtifact("library/tales", "1b", "application/vnd.ollama.image.model", ggufOf(50, 'f'))
	w.AddArtifact("ai/tales", "latest", "application/vnd.docker.ai.gguf.v3", c)
	w.AddFile("/some/file.gguf", ggufOf(80, 'g'))
	for _, x := range []struct {
		reference, sum, name string
		want                 []byte
		verified             bool
	}{
		{"hf:me/tales-GGUF", "", "tales-Q4_K_M", b, true},
		{"hf:me/tales-GGUF:Q8_0", "", "tales-Q8_0", a, true},
		{"hf:me/split", "", "s", ggufOf(7, 'd'), true},
		{"ollama:" + w.Host + "/library/tales:1b", "", "tales-1b", ggufOf(50, 'f'), true},
		{w.Host + "/ai/tales", "", "tales", c, true},
		{w.URL + "/some/file.gguf", "", "file", ggufOf(80, 'g'), false},
	} {
		for again := range 2 {
			m, got, err := w.pull(t.Context(), x.reference, Options{SHA256: x.sum})
			if err != nil || !bytes.Equal(got, x.want) || m.Name != x.name || m.Verified != x.verified {
				t.Errorf("%s: %+v, %v", x.reference, m, err)
			}
			if n := w.asked(); again == 1 && x.verified && n != 0 {
				t.Errorf("%s again: %d requests for content", x.reference, n)
			}
		}
	}
	if list, err := w.store.Unfinished(); err != nil || len(list) != 0 {
		t.Errorf("unfinished downloads: %v, %v", list, err)
	}
	sum := modelserver.SHA256(ggufOf(80, 'g'))
	if m, _, err := w.pull(t.Context(), w.URL+"/some/file.gguf", Options{SHA256: sum}); err != nil || !m.Verified {
		t.Errorf("with --sha256: %+v, %v", m, err)
	}
	if entries, err := os.ReadDir(filepath.Join(w.store.Dir(), ".partial")); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestLayout pulls from an OCI image layout, and reports what a layout lacks.
func TestLayout(t *testing.T) {
	w := newWorld(t)
	dir, data := t.TempDir(), ggufOf(100_000, 'a')
	put := func(text []byte) digest.Digest {
		d := digest.FromBytes(text)
		path := filepath.Join(dir, "blobs", "sha256", d.Encoded())
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	marshal := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	layer := v1.Descriptor{MediaType: "application/vnd.docker.ai.gguf.v3", Digest: put(data), Size: int64(len(data))}
	good := put(marshal(v1.Manifest{Layers: []v1.Descriptor{layer}}))
	layer.Digest = digest.FromString("missing")
	lacking := put(marshal(v1.Manifest{Layers: []v1.Descriptor{layer}}))
	named := func(d digest.Digest, tag string) v1.Descriptor {
		return v1.Descriptor{Digest: d, Annotations: map[string]string{v1.AnnotationRefName: tag}}
	}
	index := marshal(v1.Index{Manifests: []v1.Descriptor{named(good, "good"), named(lacking, "lacking"),
		named("sha256:../../x", "hostile"), named(digest.FromString("none"), "none")}})
	if err := os.WriteFile(filepath.Join(dir, "index.json"), index, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"oci:" + dir + ":good", "oci:" + dir + "@" + good.String()} {
		if _, got, err := w.pull(t.Context(), reference, Options{}); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %v", reference, err)
		}
	}
	for reference, want := range map[string]string{dir + ":lacking": "404", dir + ":hostile": "has no hostile",
		dir + ":none": "404", dir: "has no latest", t.TempDir(): "not an OCI image layout"} {
		if _, _, err := w.pull(t.Context(), "oci:"+reference, Options{}); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%s: %v; want %q", reference, err, want)
		}
	}
}

// TestNewVersion checks that a reference whose files changed replaces its model, and that a name
// belongs to one reference.
func TestNewVersion(t *testing.T) {
	w := newWorld(t)
	for _, fill := range []byte{'a', 'b'} {
		w.AddRepository("me/tales", map[string][]byte{"tales.gguf": ggufOf(100, fill)})
		if m, got, err := w.pull(t.Context(), "hf:me/tales", Options{Name: ""}); err != nil || m.Name != "tales" ||
			!bytes.Equal(got, ggufOf(100, fill)) {
			t.Errorf("%+v, %v", m, err)
		}
	}
	w.AddRepository("you/tales", map[string][]byte{"tales.gguf": ggufOf(100, 'c')})
	w.asked()
	if _, _, err := w.pull(t.Context(), "hf:you/tales", Options{}); err == nil || !strings.Contains(err.Error(),
		"taken by hf:me/tales") || w.asked() != 0 {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"yours", ""} { // a reference keeps the name that it was given
		if m, _, err := w.pull(t.Context(), "hf:you/tales", Options{Name: name}); err != nil || m.Name != "yours" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if _, _, err := w.pull(t.Context(), "hf:you/tales", Options{Name: "../x"}); err == nil {
		t.Error("the name ../x is accepted")
	}
}

// TestSharedFiles checks that files of other models and of caches of other programs are used where
// they are, and that the caches are not changed.
func TestSharedFiles(t *testing.T) {
	w := newWorld(t)
	data := ggufOf(5000, 'a')
	sum := modelserver.SHA256(data)
	w.AddRepository("me/tales", map[string][]byte{"tales.gguf": data})
	w.AddArtifact("library/tales", "latest", "application/vnd.ollama.image.model", data)
	hf := filepath.Join(os.Getenv("HOME"), ".cache", "huggingface", "hub", "models--me--tales", "blobs", sum)
	if err := os.MkdirAll(filepath.Dir(hf), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hf, data, 0o400); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(hf)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := w.pull(t.Context(), "hf:me/tales", Options{})
	if err != nil || m.Files[0].Cache != hf || w.asked() != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if err := w.store.Remove(t.Context(), m.Name); err != nil {
		t.Error(err)
	}
	after, err := os.Stat(hf)
	if err != nil || !after.ModTime().Equal(before.ModTime()) || after.Mode() != before.Mode() {
		t.Errorf("the cache changed: %v, %v", after, err)
	}
	if err := os.Remove(hf); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.pull(t.Context(), "hf:me/tales", Options{}); err != nil || w.asked() == 0 {
		t.Errorf("without the cache: %v", err)
	}
	if _, got, err := w.pull(t.Context(), w.Host+"/library/tales", Options{Name: "other"}); err != nil ||
		w.asked() != 0 ||
		!bytes.Equal(got, data) {
		t.Errorf("the file of another model: %v", err)
	}
}

// TestCredentials checks that HF_TOKEN goes to the hub and not to the host that it redirects to.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	cdn := modelserver.Start()
	t.Cleanup(cdn.Close)
	t.Setenv("HF_TOKEN", "secret")
	data := ggufOf(5000, 'a')
	w.AddRepository("me/tales", map[string][]byte{"tales.gguf": data})
	w.Redirect("/me/tales/resolve/"+modelserver.Revision+"/tales.gguf", cdn.URL+"/x?signature=1")
	cdn.AddFile("/x", data)
	if _, _, err := w.pull(t.Context(), "hf:me/tales", Options{}); err == nil || !strings.Contains(err.Error(),
		"not be encrypted") || len(cdn.Requests()) != 0 {
		t.Errorf("an unnamed loopback host: %v", err)
	}
	if _, got, err := w.pull(t.Context(), "hf:me/tales", Options{Hosts: []string{cdn.Host}}); err != nil ||
		!bytes.Equal(got, data) {
		t.Errorf("%v", err)
	}
	for _, r := range w.Requests() {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s without the token", r.URL)
		}
	}
	for _, r := range cdn.Requests() {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the other host receives %v", r.Header)
		}
	}
}

// TestTwoPulls starts a second pull while the first one downloads: it waits, and the file is sent
// once.
func TestTwoPulls(t *testing.T) {
	w := newWorld(t)
	data := ggufOf(5000, 'a')
	w.AddRepository("me/tales", map[string][]byte{"tales.gguf": data})
	downloads, waits := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	first.Store(true)
	w.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/cdn/") && first.Swap(false) {
			close(downloads)
			<-waits
		}
		return false
	})
	results := make(chan error)
	go func() {
		_, _, err := w.pull(t.Context(), "hf:me/tales", Options{Notice: func(string) {}})
		results <- err
	}()
	<-downloads
	go func() {
		_, got, err := w.pull(t.Context(), "hf:me/tales", Options{Notice: func(line string) {
			if strings.Contains(line, "another process downloads tales.gguf") {
				close(waits)
			}
		}})
		if err == nil && !bytes.Equal(got, data) {
			err = errors.New("wrong content")
		}
		results <- err
	}()
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := w.asked(); n != 2 {
		t.Errorf("%d requests for content; want one for its first bytes and one for all", n)
	}
}

// TestFailures checks that a pull that fails installs nothing, and what its error says.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	data := ggufOf(5000, 'a')
	w.AddRepository("me/tales", map[string][]byte{"tales.gguf": data})
	w.AddFile("/page.gguf", []byte("<html>"))
	w.AddFile("/m.gguf", data)
	w.AddRepository("me/damaged", map[string][]byte{"m.gguf": data})
	w.Redirect("/me/damaged/resolve/"+modelserver.Revision+"/m.gguf", w.URL+"/other.gguf")
	w.AddFile("/other.gguf", ggufOf(5000, 'b'))
	refused := errors.New("no")
	for _, c := range []struct {
		reference string
		o         Options
		want      string
	}{
		{"hf:me/nothing", Options{}, "404 Not Found"},
		{w.Host + "/ai/nothing", Options{}, "docker login"},
		{w.URL + "/nothing.gguf", Options{}, "404 Not Found; check the name"},
		{w.URL + "/page.gguf", Options{}, "begins with"},
		{"hf:me/damaged", Options{}, "wrong checksum"},
		{w.URL + "/m.gguf", Options{SHA256: strings.Repeat("0", 64)}, "wrong checksum"},
		{w.URL + "/m.gguf", Options{SHA256: "0"}, "64 hexadecimal digits"},
		{"hf:me/tales", Options{SHA256: strings.Repeat("0", 64)}, "--sha256 is for addresses"},
		{"hf:me/tales", Options{Confirm: func(string, int64) error { return refused }}, "no"},
		{"hf:me/tales", Options{Inspect: func(string) error { return refused }}, "no"},
	} {
		_, _, err := w.pull(t.Context(), c.reference, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.reference, err, c.want)
		}
	}
	if models, damaged, err := w.store.List(); len(models)+len(damaged) != 0 || err != nil {
		t.Errorf("%v, %v, %v", models, damaged, err)
	}
	if list, err := w.store.Unfinished(); err != nil || len(list) != 0 {
		t.Errorf("unfinished downloads: %v, %v", list, err)
	}
	for _, endpoint := range []string{"http://hub.example", "hub.example", "https://user:pw@hub.example", "ftp://x"} {
		t.Setenv("HF_ENDPOINT", endpoint)
		if _, _, err := w.pull(t.Context(), "hf:me/tales", Options{}); err == nil || !strings.Contains(err.Error(),
			"HF_ENDPOINT") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// TestHostileNames checks that no name of a server leads out of the folder of models.
func TestHostileNames(t *testing.T) {
	w := newWorld(t)
	data := ggufOf(100, 'a')
	home := os.Getenv("HOME")
	for _, name := range []string{"../../x.gguf", "/x.gguf", "a/../../../../x.gguf", `..\..\x.gguf`, "..gguf",
		"-rf.gguf",
		".x.gguf", "x\x00.gguf", "\u202ex.gguf", "x y.gguf", "model.json.gguf", strings.Repeat("x", 300) + ".gguf"} {
		w.AddRepository("me/tales", map[string][]byte{name: data})
		m, _, err := w.pull(t.Context(), "hf:me/tales", Options{})
		if err == nil {
			err = w.store.Remove(t.Context(), m.Name)
		} else if strings.Contains(err.Error(), "404") { // the test server does not serve this path
			err = nil
		}
		if err != nil && !strings.Contains(err.Error(), "not usable as a file name") {
			t.Errorf("%q: %v", name, err)
		}
		entries, err := os.ReadDir(home)
		if err != nil || len(entries) > 1 {
			t.Fatalf("%q: the home folder has %v, %v", name, entries, err)
		}
		if entries, err = os.ReadDir(w.store.Dir()); err == nil && len(entries) > 1 {
			t.Fatalf("%q: the folder of models has %v", name, entries)
		}
	}
}

// TestSlowServer checks that a pull survives connections on which nothing arrives.
func TestSlowServer(t *testing.T) {
	w := newWorld(t)
	data := ggufOf(5000, 'a')
	w.AddRepository("me/tales", map[string][]byte{"tales.gguf": data})
	var first atomic.Bool
	first.Store(true)
	w.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/cdn/") && first.Swap(false) {
			<-r.Context().Done()
			return true
		}
		return false
	})
	_, got, err := w.pull(t.Context(), "hf:me/tales", Options{Stall: time.Second,
		Wait: func(context.Context, time.Duration) error { return nil }})
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%v", err)
	}
}
