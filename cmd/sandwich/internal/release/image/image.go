// Package image builds the container images of a release: a static program, certificates of public
// authorities, an unprivileged account, and nothing else.
package image

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/cmd/sandwich/internal/release/archive"
)

// Program is the program in an image.
type Program struct {
	Arch            string // as in GOARCH
	Binary          []byte
	License         []byte
	Version, Commit string
	When            time.Time
}

// user is the numeric id of the account and its group. Images without names of accounts commonly
// use it for "nonroot".
const user = 65532

const (
	programPath = "/usr/bin/sandwich"
	dataFolder  = "var/lib/sandwich"
	cacheFolder = "var/cache/sandwich"
)

// WriteLayout writes the images of the programs into an OCI image layout under the tag of their
// version.
func WriteLayout(ctx context.Context, dir string, programs []Program) error {
	var images []oci.Image
	for _, p := range programs {
		i, err := assemble(p)
		if err != nil {
			return err
		}
		images = append(images, *i)
	}
	return oci.WriteImages(ctx, dir, build.Image(programs[0].Version), images)
}

// WriteArchive writes the image of a program as a tar file that `docker load` and `podman load`
// read: an image layout with the manifest.json of older engines.
func WriteArchive(ctx context.Context, w io.Writer, p Program) error {
	dir, err := os.MkdirTemp("", "sandwich-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	i, err := assemble(p)
	if err != nil {
		return err
	}
	if err := oci.WriteImages(ctx, dir, build.Image(p.Version), []oci.Image{*i}); err != nil {
		return err
	}
	var files []archive.File
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, rerr := filepath.Rel(dir, path)
		files = append(files, archive.File{Name: filepath.ToSlash(name), Mode: 0o644, Data: data})
		if err == nil {
			err = rerr
		}
		return err
	})
	if err != nil {
		return err
	}
	old, err := json.Marshal([]map[string]any{{"Config": blobName(i.Config), "Layers": []string{blobName(i.Layer)},
		"RepoTags": []string{build.Image(p.Version)}}})
	if err != nil {
		return err
	}
	return archive.Tar(w, p.When, append(files, archive.File{Name: "manifest.json", Mode: 0o644, Data: old}))
}

func blobName(data []byte) string { return "blobs/sha256/" + digest.FromBytes(data).Encoded() }

// assemble returns the image of a program.
func assemble(p Program) (*oci.Image, error) {
	var layer, packed bytes.Buffer
	files := []archive.File{
		{Name: programPath[1:], Mode: 0o755, Data: p.Binary},
		{Name: "etc/passwd", Mode: 0o644, Data: fmt.Appendf(nil, "sandwich:x:%d:%d::/%s:/sbin/nologin\n", user, user,
			dataFolder)},
		{Name: "etc/group", Mode: 0o644, Data: fmt.Appendf(nil, "sandwich:x:%d:\n", user)},
		{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: certificates()},
		{Name: "usr/share/doc/sandwich/LICENSE", Mode: 0o644, Data: p.License},
	}
	folders := []archive.Folder{{Name: dataFolder, Mode: 0o750, UID: user}, {Name: cacheFolder, Mode: 0o750, UID: user},
		{Name: "tmp", Mode: 0o1777}}
	if err := archive.Tar(&layer, p.When, files, folders...); err != nil {
		return nil, err
	}
	if err := archive.Gzip(&packed, p.When, files, folders...); err != nil {
		return nil, err
	}
	platform := v1.Platform{OS: "linux", Architecture: p.Arch}
	if p.Arch == "arm64" {
		platform.Variant = "v8"
	}
	created := p.When.UTC().Truncate(time.Second)
	config, err := json.Marshal(configuration{
		Image: v1.Image{Created: &created, Platform: platform,
			RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer.Bytes())}},
			History: []v1.History{{Created: &created, CreatedBy: "make release"}}},
		Config: runtime{ImageConfig: v1.ImageConfig{
			User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/" + dataFolder, StopSignal: "SIGTERM",
			Entrypoint: []string{programPath}, Cmd: []string{"serve"},
			Env: []string{"PATH=/usr/bin", "HOME=/" + dataFolder, "XDG_DATA_HOME=/var/lib", "XDG_CACHE_HOME=/var/cache",
				"SANDWICH_LISTEN=0.0.0.0:8080"},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}},
			Volumes:      map[string]struct{}{"/" + dataFolder: {}, "/" + cacheFolder: {}},
			Labels: map[string]string{v1.AnnotationTitle: "sandwich", v1.AnnotationVersion: p.Version,
				v1.AnnotationRevision: p.Commit, v1.AnnotationLicenses: "Apache-2.0"}},
			Healthcheck: healthcheck{Test: []string{"CMD", programPath, "health"}, Interval: 30 * time.Second,
				Timeout: 5 * time.Second, StartPeriod: 10 * time.Minute, Retries: 3}}})
	if err != nil {
		return nil, err
	}
	return &oci.Image{Platform: platform, Config: config, Layer: packed.Bytes()}, nil
}

// configuration is an image configuration with the health check that engines read in addition to
// the fields of the specification.
type configuration struct {
	v1.Image
	Config runtime `json:"config"`
}

type runtime struct {
	v1.ImageConfig
	Healthcheck healthcheck `json:"Healthcheck"`
}

// healthcheck has durations in nanoseconds.
type healthcheck struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
	Retries                        int
}

// certificates returns the roots that browsers trust without constraints, in PEM, so that models
// can be pulled from public hosts.
func certificates() []byte {
	var b bytes.Buffer
	for r := range bundle.Roots() {
		if r.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate}))
		}
	}
	return b.Bytes()
}
