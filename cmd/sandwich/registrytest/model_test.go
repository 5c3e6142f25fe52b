package registrytest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// descriptor is a descriptor of the OCI specification.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// upload pushes a blob as the user "user" and returns its descriptor.
func upload(t *testing.T, host, repository, password, mediaType string, data []byte) descriptor {
	t.Helper()
	d := descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), Size: len(data)}
	resp := send(t, http.MethodPost, "http://"+host+"/v2/"+repository+"/blobs/uploads/", password, "", nil)
	location := resp.Header.Get("Location")
	separator := "?"
	if strings.Contains(location, "?") {
		separator = "&"
	}
	send(t, http.MethodPut, location+separator+"digest="+d.Digest, password, "application/octet-stream", data)
	return d
}

// send sends a request that must succeed.
func send(t *testing.T, method, address, password, kind string, data []byte) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	if password != "" {
		r.SetBasicAuth("user", password)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, address, resp.Status)
	}
	return resp
}

// TestPullModel pulls artifacts of Docker's and of ModelPack's format from a registry that requires a
// login, by tag and digest.
func TestPullModel(t *testing.T) {
	const password = "secret"
	p, host := newProgram(t), startRegistry(t, password)
	p.env = append(p.env, "SANDWICH_MODELS="+filepath.Join(p.dir, "models"))
	if out, code := p.run(t, "model", "synth", "--preset", "llama-tiny", "-o", "tiny.gguf"); code != 0 {
		t.Fatal(out)
	}
	data, err := os.ReadFile(filepath.Join(p.dir, "tiny.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	var pinned string
	for tag, kind := range map[string]string{"docker": "application/vnd.docker.ai.gguf.v3",
		"pack": "application/vnd.cncf.model.weight.v1.raw"} {
		layer := upload(t, host, "ai/tiny", password, kind, data)
		layer.Annotations = map[string]string{"org.cncf.model.filepath": "sub/tiny.gguf"}
		manifest, err := json.Marshal(map[string]any{"schemaVersion": 2,
			"mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []descriptor{layer},
			"config": upload(t, host, "ai/tiny", password, "application/vnd.test.config.v1+json", []byte("{}"))})
		if err != nil {
			t.Fatal(err)
		}
		send(t, http.MethodPut, "http://"+host+"/v2/ai/tiny/manifests/"+tag, password,
			"application/vnd.oci.image.manifest.v1+json", manifest)
		pinned = fmt.Sprintf("%s/ai/tiny@sha256:%x", host, sha256.Sum256(manifest))
	}
	if out, code := p.run(t, "pull", host+"/ai/tiny:docker"); code == 0 || !strings.Contains(out, "docker login") {
		t.Errorf("without a login: %d: %s", code, out)
	}
	config := fmt.Sprintf(`{"auths":{%q:{"auth":"dXNlcjpzZWNyZXQ="}}}`, host) // user:secret
	if err := os.WriteFile(filepath.Join(p.dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for reference, name := range map[string]string{host + "/ai/tiny:docker": "tiny-docker",
		host + "/ai/tiny:pack": "tiny-pack", pinned: "tiny"} {
		out, code := p.run(t, "pull", reference)
		if code != 0 || !strings.HasSuffix(out, "\n"+name) {
			t.Errorf("%s: %d: %s", reference, code, out)
		}
		got, err := filepath.Glob(filepath.Join(p.dir, "models", name, "*", name+".gguf"))
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %v", reference, got, err)
		}
		if text, err := os.ReadFile(got[0]); err != nil || !bytes.Equal(text, data) {
			t.Errorf("%s: another content, %v", reference, err)
		}
	}
	if out, code := p.run(t, "pull", host+"/ai/none"); code != 2 || !strings.Contains(out, "no such repository or tag") {
		t.Errorf("a missing repository: %d: %s", code, out)
	}
}
