package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Kind is a kind of artifact: the types by which registries and people tell it from an image.
type Kind struct {
	name     string // in messages
	artifact string
	config   string // type of the configuration
	layer    string // type of all layers
}

// planKind is a packed plan (plans/FORMAT.md) in one layer, without a configuration.
var planKind = Kind{name: "plan", artifact: "application/vnd.sandwich.plan.v2", config: v1.MediaTypeEmptyJSON,
	layer: "application/vnd.sandwich.plan.v2.tar"}

// PrefixKind is a stored prefix: its manifest as the configuration, and a layer for each block.
var PrefixKind = Kind{name: "prefix", artifact: "application/vnd.sandwich.prefix.v1",
	config: "application/vnd.sandwich.prefix.v1+json", layer: "application/vnd.sandwich.prefix.v1.block"}

// maxManifest limits manifests and the index of a layout to the size that the distribution
// specification requires registries to accept.
const maxManifest = 4 << 20

// ErrRefused is wrapped by errors about the content of a location: it has no plan, is not a
// layout, or does not match its digest.
var ErrRefused = errors.New("refused")

func refused(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, a...))
}

// ErrMissing is wrapped by errors about a location without the tag or digest.
var ErrMissing = errors.New("not found")

// missingError is an ErrMissing, and also the error is, if that is not nil.
type missingError struct {
	text string
	is   error
}

func (e *missingError) Error() string { return e.text }

func (e *missingError) Is(target error) bool {
	return target == ErrMissing || e.is != nil && target == e.is
}

// otherKindError reports an artifact of another kind. It is an ErrRefused.
type otherKindError struct{ is, want string }

func (e *otherKindError) Error() string {
	return fmt.Sprintf("%s: it is of the type %.80q, not %s", ErrRefused, e.is, e.want)
}

func (e *otherKindError) Unwrap() error { return ErrRefused }

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

// newManifest creates the manifest of an artifact. Registries show the labels.
func newManifest(kind Kind, config v1.Descriptor, layers []v1.Descriptor, labels map[string]string) (blob, error) {
	data, err := json.Marshal(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest, ArtifactType: kind.artifact, Config: config, Layers: layers,
		Annotations: labels})
	if err != nil {
		return blob{}, err
	}
	if len(data) > maxManifest {
		return blob{}, refused("a %s of %d layers is too large for a registry", kind.name, len(layers))
	}
	m := newBlob(v1.MediaTypeImageManifest, data)
	m.ArtifactType = kind.artifact
	return m, nil
}

// Manifest is the manifest of an artifact that is pulled.
type Manifest struct {
	Labels map[string]string
	digest digest.Digest
	size   int64
	config v1.Descriptor
	layers []v1.Descriptor
	get    func(d v1.Descriptor, limit int64) ([]byte, error)
}

// Layers returns the number of layers.
func (m *Manifest) Layers() int { return len(m.layers) }

// Config fetches the configuration, of at most limit bytes.
func (m *Manifest) Config(limit int64) ([]byte, error) { return m.fetch(m.config, limit) }

// Layer fetches a layer of at most limit bytes.
func (m *Manifest) Layer(i int, limit int64) ([]byte, error) { return m.fetch(m.layers[i], limit) }

func (m *Manifest) fetch(d v1.Descriptor, limit int64) ([]byte, error) {
	if err := checkDescriptor(d, limit); err != nil {
		return nil, err
	}
	return m.get(d, limit)
}

// parseManifest parses the manifest of an artifact of a kind.
func parseManifest(data []byte, kind Kind) (*Manifest, error) {
	var m v1.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, refused("its manifest is not valid JSON")
	}
	if m.MediaType != v1.MediaTypeImageManifest || m.ArtifactType != kind.artifact {
		return nil, &otherKindError{kindOf(&m), kind.artifact}
	}
	for _, l := range m.Layers {
		if l.MediaType != kind.layer {
			return nil, refused("it has a layer of the type %.80q, not %s", l.MediaType, kind.layer)
		}
	}
	return &Manifest{Labels: m.Annotations, config: m.Config, layers: m.Layers}, nil
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
