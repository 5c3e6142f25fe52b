// Package registry finds models in OCI registries: artifacts of ModelPack, of Docker's model
// runner, and of ollama.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
)

// Types of layers with a GGUF file.
const (
	ollamaModel  = "application/vnd.ollama.image.model"
	dockerModel  = "application/vnd.docker.ai.gguf.v3"
	packedWeight = "application/vnd.cncf.model.weight.v1.raw" // ModelPack, in any format
)

// filePath is the annotation of ModelPack with the path of a layer's file.
const filePath = "org.cncf.model.filepath"

// ollamaAdapter is the type of a layer that changes the weights of the model.
const ollamaAdapter = "application/vnd.ollama.image.adapter"

// accepted lists the types of manifests.
var accepted = []string{v1.MediaTypeImageManifest, "application/vnd.docker.distribution.manifest.v2+json",
	v1.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.list.v2+json"}

// Hosts of Docker's registry.
const (
	dockerName   = "docker.io" // in references and in the file of `docker login`
	dockerHost   = "registry-1.docker.io"
	dockerTokens = "auth.docker.io"
)

// Hosts returns the hosts other than the origin that may get the login of the registry of a
// reference: the token server of Docker, whose login is for all of its hosts.
func Hosts(r ref.Ref) []string {
	if r.Host == dockerName || r.Host == dockerHost {
		return []string{dockerTokens}
	}
	return nil
}

// Origin returns the address of the registry of a reference.
func Origin(r ref.Ref) *url.URL {
	if r.Host == dockerName {
		return ref.Origin(dockerHost)
	}
	return ref.Origin(r.Host)
}

// Find returns the model that a reference names.
func Find(ctx context.Context, client fetch.Doer, r ref.Ref) (*source.Model, error) {
	base := Origin(r).JoinPath("v2", r.Repo)
	m, revision, err := manifestOf(ctx, client, base, r.Tag)
	if err != nil {
		return nil, explain(r, err)
	}
	model, err := parse(m, r, func(d digest.Digest) string { return base.JoinPath("blobs", d.String()).String() })
	if err != nil {
		return nil, err
	}
	model.Revision = revision.String()
	return model, nil
}

// explain adds the remedy to an error about a reference.
func explain(r ref.Ref, err error) error {
	switch {
	case errors.Is(err, source.ErrNotFound):
		return fmt.Errorf("%w: there is no such repository or tag; check the name, or log in with `docker login %s`",
			err, r.Host)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Errorf("%s requires credentials; log in with `docker login %s`", r.Host, r.Host)
	}
	return err
}

// document is a manifest, or an index of manifests.
type document struct {
	MediaType    string          `json:"mediaType"`
	ArtifactType string          `json:"artifactType"`
	Config       v1.Descriptor   `json:"config"`
	Layers       []v1.Descriptor `json:"layers"`
	Manifests    []v1.Descriptor `json:"manifests"`
}

// manifestOf requests the manifest of a tag or digest, that of an index if it has only one.
func manifestOf(ctx context.Context, client fetch.Doer, base *url.URL, tag string) (document, digest.Digest, error) {
	var revision digest.Digest
	for range 2 {
		var m document
		data, _, err := source.Document(ctx, client, base.JoinPath("manifests", tag).String(), accepted, &m)
		if err != nil {
			return m, "", err
		}
		got := digest.FromBytes(data)
		if strings.Contains(tag, ":") && tag != got.String() {
			return m, "", fmt.Errorf("%w: the manifest has %s, expected is %.80s", fetch.ErrChecksum, got, tag)
		}
		if revision == "" {
			revision = got
		}
		if m.Manifests == nil {
			return m, revision, nil
		}
		list := slices.DeleteFunc(m.Manifests, isAttestation)
		if len(list) != 1 || list[0].Digest.Validate() != nil {
			return m, "", source.Refuse("the tag names %d manifests; name one of them by @sha256:...", len(list))
		}
		tag = list[0].Digest.String()
	}
	return document{}, "", source.Refuse("the tag names an index of an index, which is not a model")
}

// isAttestation reports whether a manifest of an index is about another one: Docker adds such
// manifests about the build.
func isAttestation(d v1.Descriptor) bool {
	return d.Annotations["vnd.docker.reference.type"] == "attestation-manifest"
}

// Parse returns the model of a manifest that is stored on this machine, in the cache of ollama.
func Parse(manifest []byte, r ref.Ref) (*source.Model, error) {
	var m document
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, source.Refuse("the manifest of %s is damaged: %v", r.Text, err)
	}
	model, err := parse(m, r, func(digest.Digest) string { return "" })
	if err != nil {
		return nil, err
	}
	model.Revision = digest.FromBytes(manifest).String()
	return model, nil
}

// parse returns the model of a manifest whose blobs have addresses.
func parse(m document, r ref.Ref, address func(digest.Digest) string) (*source.Model, error) {
	model := &source.Model{Name: nameOf(r)}
	var layers []v1.Descriptor
	for _, l := range m.Layers {
		if l.MediaType == ollamaAdapter {
			return nil, source.Refuse("%s has an adapter, which is not supported; pull the model without it, or one "+
				"into which it was merged", r.Text)
		}
		if isModel(l) {
			layers = append(layers, l)
		}
	}
	for i, l := range layers {
		if l.Digest.Validate() != nil || l.Digest.Algorithm() != digest.SHA256 || l.Size < 0 {
			return nil, source.Refuse("the manifest has a layer with the invalid digest %.80q", string(l.Digest))
		}
		name, err := fileName(l, model.Name, i, len(layers))
		if err != nil {
			return nil, err
		}
		model.Files = append(model.Files, source.File{Name: name, URL: address(l.Digest),
			Size: l.Size, SHA256: l.Digest.Encoded()})
	}
	if len(model.Files) == 0 {
		return nil, source.Refuse("%s is not a model in a GGUF file: its layers have the types %s", r.Text, types(m))
	}
	return model, nil
}

// isModel reports whether a layer is a GGUF file with a model.
func isModel(l v1.Descriptor) bool {
	switch l.MediaType {
	case ollamaModel, dockerModel:
		return true
	case packedWeight:
		return strings.HasSuffix(title(l), ".gguf")
	}
	return false
}

// title returns the path of the file of a layer, "" if the manifest has none.
func title(l v1.Descriptor) string {
	if name := l.Annotations[filePath]; name != "" {
		return name
	}
	return l.Annotations[v1.AnnotationTitle]
}

// nameOf returns the default name of a model: the last part of the repository, and the tag.
func nameOf(r ref.Ref) string {
	name := path.Base(r.Repo)
	if r.Tag != "latest" && !strings.Contains(r.Tag, ":") {
		name += "-" + r.Tag
	}
	if clean, err := ref.FileName(name); err == nil {
		return clean
	}
	return "model"
}

// fileName returns the name of the file of a layer: that of the manifest for one of several, which
// find each other by their names, else one after the model's name.
func fileName(l v1.Descriptor, model string, i, layers int) (string, error) {
	if layers == 1 {
		return model + ".gguf", nil
	}
	if title(l) == "" {
		return fmt.Sprintf("%s-%05d-of-%05d.gguf", model, i+1, layers), nil
	}
	return ref.FileName(title(l))
}

// types lists the types of the layers of a manifest for an error.
func types(m document) string {
	var names []string
	for _, l := range m.Layers[:min(len(m.Layers), 10)] {
		names = append(names, fmt.Sprintf("%.80q", l.MediaType))
	}
	if len(names) == 0 {
		return "of no layer"
	}
	return strings.Join(names, ", ")
}
