package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"sandwich/plans/bundle"
)

// The types by which registries and people tell a plan from an image.
const (
	artifactType = "application/vnd.sandwich.plan.v2"
	layerType    = "application/vnd.sandwich.plan.v2.tar" // a packed plan (plans/FORMAT.md)
)

// maxManifest limits manifests and the index of a layout to the size that the distribution
// specification requires registries to accept.
const maxManifest = 4 << 20

// ErrRefused is wrapped by errors about the content of a location: it has no plan, is not a
// layout, or does not match its digest.
var ErrRefused = errors.New("refused")

func refused(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, a...))
}

// emptyConfig is the configuration of an artifact without one.
var emptyConfig = []byte("{}")

// blob holds bytes and their descriptor.
type blob struct {
	v1.Descriptor
	data []byte
}

func newBlob(mediaType string, data []byte) blob {
	return blob{v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}, data}
}

// artifact holds the three blobs of a plan.
type artifact struct{ manifest, config, layer blob }

// newArtifact creates the manifest of a packed plan. Registries show the labels; this program
// ignores them.
func newArtifact(packed []byte, labels map[string]string) (*artifact, error) {
	a := &artifact{config: newBlob(v1.MediaTypeEmptyJSON, emptyConfig), layer: newBlob(layerType, packed)}
	data, err := json.Marshal(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest, ArtifactType: artifactType, Config: a.config.Descriptor,
		Layers: []v1.Descriptor{a.layer.Descriptor}, Annotations: labels})
	if err != nil {
		return nil, err
	}
	a.manifest = newBlob(v1.MediaTypeImageManifest, data)
	a.manifest.ArtifactType = artifactType
	return a, nil
}

// layerOf returns the descriptor of the packed plan in a manifest.
func layerOf(manifest []byte) (v1.Descriptor, error) {
	var m v1.Manifest
	if err := json.Unmarshal(manifest, &m); err != nil {
		return v1.Descriptor{}, refused("its manifest is not valid JSON")
	}
	switch {
	case m.MediaType != v1.MediaTypeImageManifest || m.ArtifactType != artifactType:
		return v1.Descriptor{}, refused("it is of the type %.80q, not %s", kindOf(&m), artifactType)
	case len(m.Layers) != 1 || m.Layers[0].MediaType != layerType:
		return v1.Descriptor{}, refused("it has %d layers; a plan has one, of the type %s", len(m.Layers), layerType)
	}
	layer := m.Layers[0]
	return layer, checkDescriptor(layer, bundle.MaxArchive)
}

// kindOf returns the artifact type of a manifest.
func kindOf(m *v1.Manifest) string {
	for _, kind := range []string{m.ArtifactType, m.Config.MediaType, m.MediaType} {
		if kind != "" {
			return kind
		}
	}
	return "none"
}

// checkDescriptor rejects a blob that is too large before it is read.
func checkDescriptor(d v1.Descriptor, limit int64) error {
	if d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 {
		return refused("%.80q is not a sha256 digest", string(d.Digest))
	}
	if d.Size < 0 || d.Size > limit {
		return refused("%s has %d bytes; the limit is %d", d.Digest, d.Size, limit)
	}
	return nil
}

// readBlob reads a blob and checks its size and digest.
func readBlob(r io.Reader, d v1.Descriptor) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, d.Size+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != d.Size || digest.FromBytes(data) != d.Digest {
		return nil, refused("the received data is not %s of %d bytes", d.Digest, d.Size)
	}
	return data, nil
}
