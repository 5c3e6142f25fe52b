package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"sandwich/cmd/sandwich/internal/dockerlogin"
	"sandwich/cmd/sandwich/internal/models/netguard"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
)

// registryOf serves documents by tag or digest, for a user if password is given.
func registryOf(t *testing.T, documents map[string]any, password string) (host string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, got, _ := r.BasicAuth(); got != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="models"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		name, ok := strings.CutPrefix(r.URL.Path, "/v2/library/tales/manifests/")
		d := documents[name]
		if text, isText := d.(string); isText {
			fmt.Fprint(w, text)
		} else if ok && d != nil {
			_ = json.NewEncoder(w).Encode(d)
		} else {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// layer returns the descriptor of a layer.
func layer(kind, title string, data string) v1.Descriptor {
	d := v1.Descriptor{MediaType: kind, Digest: digest.FromString(data), Size: int64(len(data))}
	if title != "" {
		d.Annotations = map[string]string{filePath: title}
	}
	return d
}

func find(t *testing.T, text string) (*source.Model, error) {
	t.Helper()
	r, err := ref.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return Find(t.Context(), dockerlogin.Client(netguard.New(netguard.Policy{Origin: Origin(r)})), r)
}

// TestKinds reads manifests of each supported kind, and rejects others.
func TestKinds(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	manifest := func(layers ...v1.Descriptor) v1.Manifest { return v1.Manifest{Layers: layers} }
	part := func(n int) v1.Descriptor {
		return layer(packedWeight, fmt.Sprintf("sub/t-%05d-of-00002.gguf", n), fmt.Sprint("part", n))
	}
	index := func(m ...v1.Descriptor) v1.Index { return v1.Index{Manifests: m} }
	broken := layer(dockerModel, "", "abc")
	broken.Digest = "sha256:../../x"
	inner, err := json.Marshal(manifest(layer(dockerModel, "", "abc")))
	if err != nil {
		t.Fatal(err)
	}
	pinned := digest.FromBytes(inner)
	documents := map[string]any{
		"ollama": manifest(layer("application/vnd.ollama.image.license", "", "x"), layer(ollamaModel, "", "abc"),
			layer("application/vnd.ollama.image.projector", "", "y")),
		"docker": manifest(layer(dockerModel, "", "abc"),
			layer("application/vnd.docker.ai.license", "", "x")),
		"pack": manifest(layer(packedWeight, "../x.gguf", "abc"), layer(packedWeight,
			"config.json", "x")),
		"split":         manifest(part(1), part(2)),
		"same":          manifest(part(1), part(1)),
		"untitled":      manifest(layer(ollamaModel, "", "a"), layer(ollamaModel, "", "b")),
		"image":         manifest(layer("application/vnd.oci.image.layer.v1.tar+gzip", "", "abc")),
		"safetensors":   manifest(layer(packedWeight, "model.safetensors", "abc")),
		"empty":         manifest(),
		"broken":        manifest(broken),
		"page":          "<!DOCTYPE html><html>",
		pinned.String(): string(inner),
		"index":         index(v1.Descriptor{Digest: pinned}),
		"indexes":       index(v1.Descriptor{Digest: pinned}, v1.Descriptor{Digest: pinned}),
		"hostile":       index(v1.Descriptor{Digest: "sha256:../../x"}),
		"attested": index(v1.Descriptor{Digest: pinned}, v1.Descriptor{Digest: digest.FromString("about"),
			Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest"}}),
		"adapted":                           manifest(layer(ollamaModel, "", "abc"), layer(ollamaAdapter, "", "x")),
		digest.FromString("other").String(): string(inner),
	}
	host := registryOf(t, documents, "")
	for tag, want := range map[string]string{":ollama": "tales-ollama: tales-ollama.gguf", ":docker": "tales-docker: " +
		"tales-docker.gguf", ":pack": "tales-pack: tales-pack.gguf",
		":split":    "tales-split: t-00001-of-00002.gguf t-00002-of-00002.gguf",
		":untitled": "tales-untitled: tales-untitled-00001-of-00002.gguf tales-untitled-00002-of-00002.gguf",
		":index":    "tales-index: tales-index.gguf", "@" + pinned.String(): "tales: tales.gguf",
		"": "! no such repository or tag", ":image": "! image.layer", ":safetensors": "! not a model in a GGUF file",
		":empty": "! of no layer", ":broken": "! invalid digest", ":page": "! instead of JSON", ":same": "! two files",
		":attested": "tales-attested: tales-attested.gguf", ":adapted": "! has an adapter",
		":indexes": "! 2 manifests", ":hostile": "! 1 manifests",
		"@" + digest.FromString("other").String(): "! wrong checksum"} {
		m, err := find(t, host+"/library/tales"+tag)
		got := ""
		if err == nil {
			err = m.Check()
			got = m.Name + ":"
			for _, f := range m.Files {
				got += " " + f.Name
			}
		}
		if text, fails := strings.CutPrefix(want, "! "); fails && (err == nil || !strings.Contains(err.Error(),
			text)) ||
			!fails && (err != nil || got != want) {
			t.Errorf("%q: %s, %v; want %s", tag, got, err, want)
		}
	}
	m, err := find(t, "ollama:"+host+"/library/tales:ollama")
	if want := "http://" + host + "/v2/library/tales/blobs/" + digest.FromString("abc").String(); err != nil ||
		m.Files[0].URL != want || m.Files[0].Size != 3 || m.Files[0].SHA256 != digest.FromString("abc").Encoded() {
		t.Errorf("%+v, %v; want %s", m, err, want)
	}
}

// TestLogin checks that the credentials of `docker login` are used for their host only.
func TestLogin(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	host := registryOf(t, map[string]any{"1": v1.Manifest{Layers: []v1.Descriptor{layer(dockerModel, "", "abc")}}},
		"secret")
	for login, works := range map[string]bool{"": false, "other.example": false, host: true} {
		config := fmt.Sprintf(`{"auths":{%q:{"auth":"dXNlcjpzZWNyZXQ="}}}`, login) // user:secret
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := find(t, host+"/library/tales:1")
		if (err == nil) != works || err != nil && !strings.Contains(err.Error(), "docker login "+host) {
			t.Errorf("login at %q: %v", login, err)
		}
	}
}

// TestTokenServer checks that a token server on another host is used if the user allows it, and
// that it receives the login of the registry only then.
func TestTokenServer(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	var logins []string
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		logins = append(logins, password)
		fmt.Fprint(w, `{"token":"abc"}`)
	}))
	t.Cleanup(tokens.Close)
	manifest, err := json.Marshal(v1.Manifest{Layers: []v1.Descriptor{layer(dockerModel, "", "abc")}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer abc" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(manifest)
	}))
	t.Cleanup(s.Close)
	host, tokenHost := strings.TrimPrefix(s.URL, "http://"), strings.TrimPrefix(tokens.URL, "http://")
	r, err := ref.Parse(host + "/library/tales")
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []string{`{}`, fmt.Sprintf(`{"auths":{%q:{"auth":"dXNlcjpzZWNyZXQ="}}}`, host)} {
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, hosts := range [][]string{nil, {tokenHost}} {
			logins = nil
			client := netguard.New(netguard.Policy{Origin: Origin(r), Hosts: hosts})
			_, err := Find(t.Context(), dockerlogin.Client(client), r)
			if (err == nil) != (hosts != nil) || hosts == nil && len(logins) != 0 {
				t.Errorf("allowed %v: %v, logins %q", hosts, err, logins)
			}
			if want := map[bool]string{true: "", false: "secret"}[config == "{}"]; hosts != nil &&
				(len(logins) == 0 || logins[0] != want) {
				t.Errorf("allowed %v: logins %q, want %q", hosts, logins, want)
			}
		}
	}
}

// TestDockerHost checks that references to docker.io lead to the host of its registry, and that its
// token server may get the login, which no other registry's may.
func TestDockerHost(t *testing.T) {
	r, err := ref.Parse("docker.io/ai/smollm2")
	if got := Origin(r).String(); err != nil || got != "https://registry-1.docker.io" {
		t.Errorf("%s, %v", got, err)
	}
	for text, want := range map[string]string{"docker.io/ai/smollm2": "[auth.docker.io]",
		"registry-1.docker.io/ai/smollm2": "[auth.docker.io]", "docker.io.example/ai/smollm2": "[]",
		"ollama:smollm2": "[]"} {
		r, err := ref.Parse(text)
		if got := fmt.Sprint(Hosts(r)); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}
