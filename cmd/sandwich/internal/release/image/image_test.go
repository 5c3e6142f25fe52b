package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

func program(arch string) Program {
	return Program{Arch: arch, Binary: []byte("ELF " + arch), License: []byte("license"), Version: "1.2.3+4.gabc",
		Commit: "abc", When: time.Unix(1700000000, 0)}
}

// contents reads a tar into a map, with the mode, the owner and the type of each entry.
func contents(t *testing.T, r io.Reader) (data map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	data, headers = map[string][]byte{}, map[string]*tar.Header{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return data, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		if data[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
	}
}

func decode(t *testing.T, data []byte, out any) {
	t.Helper()
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatalf("%v: %.200s", err, data)
	}
}

// TestArchive reads an archive as engines do, through index.json and through manifest.json.
func TestArchive(t *testing.T) {
	var out, again bytes.Buffer
	for _, w := range []io.Writer{&out, &again} {
		if err := WriteArchive(context.Background(), w, program("arm64")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("two archives of a program differ")
	}
	files, _ := contents(t, &out)
	var top, list v1.Index
	decode(t, files["index.json"], &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations[v1.AnnotationRefName] != "1.2.3-4.gabc" ||
		top.Manifests[0].Annotations["io.containerd.image.name"] != "docker.io/library/sandwich:1.2.3-4.gabc" {
		t.Fatalf("index.json has %+v", top.Manifests)
	}
	blob := func(d v1.Descriptor) []byte { return files["blobs/sha256/"+d.Digest.Encoded()] }
	decode(t, blob(top.Manifests[0]), &list)
	if p := list.Manifests[0].Platform; p == nil || p.Architecture != "arm64" || p.OS != "linux" {
		t.Errorf("platform %+v", p)
	}
	var m v1.Manifest
	decode(t, blob(list.Manifests[0]), &m)
	var c configuration
	decode(t, blob(m.Config), &c)
	if c.Config.User != "65532:65532" || c.Architecture != "arm64" || c.Config.Healthcheck.Test[2] != "health" ||
		c.Config.Cmd[0] != "serve" || c.RootFS.DiffIDs[0].Validate() != nil {
		t.Errorf("configuration %+v", c)
	}
	var old []struct {
		Config string
		Layers []string
	}
	decode(t, files["manifest.json"], &old)
	if files[old[0].Config] == nil || !bytes.Equal(files[old[0].Layers[0]], blob(m.Layers[0])) {
		t.Errorf("manifest.json names %+v", old)
	}
	checkLayer(t, blob(m.Layers[0]), c.RootFS.DiffIDs[0].Encoded())
}

// checkLayer checks owners, modes and certificates.
func checkLayer(t *testing.T, packed []byte, diffID string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if blobName(plain) != "blobs/sha256/"+diffID {
		t.Error("the configuration has another digest of the layer")
	}
	data, headers := contents(t, bytes.NewReader(plain))
	if string(data["usr/bin/sandwich"]) != "ELF arm64" || headers["usr/bin/sandwich"].Mode != 0o755 {
		t.Errorf("program %+v", headers["usr/bin/sandwich"])
	}
	for name, h := range headers {
		writable := strings.HasPrefix(name, "var/lib/sandwich") || strings.HasPrefix(name, "var/cache/sandwich")
		if (h.Uid != 0) != writable || h.Uid != h.Gid {
			t.Errorf("%s belongs to %d:%d", name, h.Uid, h.Gid)
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("no certificates of authorities")
	}
}

func TestLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	if err := WriteLayout(context.Background(), dir, []Program{program("amd64"), program("arm64")}); err != nil {
		t.Fatal(err)
	}
	var top, list v1.Index
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, data, &top)
	if data, err = os.ReadFile(filepath.Join(dir, "blobs/sha256", top.Manifests[0].Digest.Encoded())); err != nil {
		t.Fatal(err)
	}
	decode(t, data, &list)
	var archs []string
	for _, m := range list.Manifests {
		archs = append(archs, m.Platform.Architecture)
	}
	if got := strings.Join(archs, " "); got != "amd64 arm64" {
		t.Errorf("the index has images for %s, want amd64 and arm64", got)
	}
}
