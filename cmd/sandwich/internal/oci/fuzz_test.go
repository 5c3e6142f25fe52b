package oci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// planManifest is the manifest of a packed plan.
func planManifest(t testing.TB) blob {
	t.Helper()
	m, err := newManifest(planKind, newBlob(planKind.config, emptyConfig).Descriptor,
		[]v1.Descriptor{newBlob(planKind.layer, []byte("a packed plan")).Descriptor}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// FuzzLayout checks that pulled content has the digests of the index and the manifest, and that a
// tag can be added to every index that was accepted.
func FuzzLayout(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "plans")
	push(f, "oci:"+dir, "a packed plan")
	entry, err := os.ReadFile(filepath.Join(dir, v1.ImageIndexFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(entry, planManifest(f).data)
	f.Add([]byte(`{"manifests":[{"digest":"sha256:0","size":1e99}]}`), []byte(`{"layers":[{"size":-1}]}`))
	f.Add([]byte(`{"manifests":null}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, list, manifest []byte) {
		if m, err := parseManifest(manifest, planKind); err == nil && len(m.layers) > 0 {
			m.get = func(d v1.Descriptor, limit int64) ([]byte, error) {
				if d.Size < 0 || d.Size > limit || d.Digest.Validate() != nil {
					t.Errorf("a layer of %d bytes, %q, is fetched", d.Size, d.Digest)
				}
				return nil, nil
			}
			_, _ = m.Layer(0, 1000)
			_, _ = m.Config(1000)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, v1.ImageIndexFile), list, 0o644); err != nil {
			t.Fatal(err)
		}
		x, err := layout(dir).index()
		if err != nil {
			return
		}
		if d, err := x.find(defaultTag, ""); err == nil && (d.Size < 0 || d.Digest.Validate() != nil) {
			t.Errorf("a manifest of %d bytes, %q", d.Size, d.Digest)
		}
		before := len(x.manifests)
		data, err := x.with("another tag", planManifest(t).Descriptor)
		if err != nil || !json.Valid(data) || len(x.manifests) < before {
			t.Errorf("%s, %v", data, err)
		}
	})
}

// FuzzParsePlace checks that every accepted place has a name, and a tag or a digest.
func FuzzParsePlace(f *testing.F) {
	for _, text := range []string{"oci:a:b", "./a@sha256:0", "host:1/a/b:c", "/a:b/c", "@", "oci:@", ":"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePlace(text, Options{Timeout: time.Second})
		if err != nil {
			if len(err.Error()) > 600 {
				t.Errorf("a refusal of %d bytes", len(err.Error()))
			}
			return
		}
		if p.name == "" || (p.tag == "") == (p.digest == "") ||
			p.digest != "" && p.digest.Algorithm() != digest.SHA256 {
			t.Errorf("%q is %+v", text, p)
		}
	})
}
