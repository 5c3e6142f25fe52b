package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// indexArtifact is the type of an index of plans.
const indexArtifact = "application/vnd.sandwich.plan.index.v1"

// MaxPlans limits the tags of a repository and the plans of an index.
const MaxPlans = 4096

// MaxIndex limits the bytes of an index.
const MaxIndex = maxManifest

// Listed is a plan of a repository or of an index.
type Listed struct {
	Digest    string
	Size      int64
	MediaType string // "": the manifest of an artifact
	Labels    map[string]string
}

// Tags returns all tags of the layout or repository, sorted.
func (p *Place) Tags(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	tags, err := p.store.tags(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tags of %s: %w", p.name, err)
	}
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

// PullPlan returns the packed plan of a location and its entry, or nil data if the location holds
// another kind of artifact. Only digests are checked; the plan may still be invalid.
func (p *Place) PullPlan(ctx context.Context) (packed []byte, entry Listed, err error) {
	err = p.pullPlan(ctx, &packed, &entry)
	if other := (*otherKindError)(nil); errors.As(err, &other) {
		return nil, Listed{}, nil
	}
	return packed, entry, err
}

// PullDigest returns the packed plan of a digest.
func (p *Place) PullDigest(ctx context.Context, d string) (packed []byte, err error) {
	packed, _, err = p.withDigest(digest.Digest(d)).Pull(ctx)
	return packed, err
}

// PushIndex writes an index of plans, whose manifests are in the same layout or repository, and
// returns the location with its digest. Equal lists give equal indexes.
func (p *Place) PushIndex(ctx context.Context, list []Listed) (pinned string, err error) {
	if p.tag == "" {
		return "", refused("an index is pushed to a tag, not to the digest %s; give LOCATION:TAG", p.digest)
	}
	data, err := EncodeIndex(list)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	b := newBlob(v1.MediaTypeImageIndex, data)
	if err := p.store.name(ctx, b, p.tag); err != nil {
		return "", fmt.Errorf("push to %s: %w", p, err)
	}
	return p.name + "@" + b.Digest.String(), nil
}

// PullIndex returns the plans of an index. Their labels are not trusted.
func (p *Place) PullIndex(ctx context.Context) ([]Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	data, err := p.store.manifest(ctx, p.tag, p.digest)
	var list []Listed
	if err == nil {
		list, err = ParseIndex(data)
	}
	if err != nil {
		return nil, fmt.Errorf("pull from %s: %w", p, err)
	}
	return list, nil
}

// EncodeIndex returns the bytes of an index of plans.
func EncodeIndex(list []Listed) ([]byte, error) {
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
		ArtifactType: indexArtifact, Manifests: []v1.Descriptor{}}
	for _, e := range list {
		kind := cmp.Or(e.MediaType, v1.MediaTypeImageManifest)
		index.Manifests = append(index.Manifests, v1.Descriptor{MediaType: kind, ArtifactType: planKind.artifact,
			Digest: digest.Digest(e.Digest), Size: e.Size, Annotations: e.Labels})
	}
	data, err := json.Marshal(index)
	if err == nil && (len(list) > MaxPlans || len(data) > MaxIndex) {
		err = refused("an index of %d plans is too large; use a location for each model", len(list))
	}
	return data, err
}

// ParseIndex reads the bytes of an index of plans.
func ParseIndex(data []byte) (list []Listed, err error) {
	var index v1.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, refused("its index is not valid JSON")
	}
	if index.MediaType != v1.MediaTypeImageIndex || index.ArtifactType != indexArtifact {
		return nil, refused("it is of the type %.80q, not an index of plans; build one with `sandwich plan index`",
			kindOf(&v1.Manifest{MediaType: index.MediaType, ArtifactType: index.ArtifactType}))
	}
	if len(index.Manifests) > MaxPlans {
		return nil, refused("its index lists %d plans, more than %d", len(index.Manifests), MaxPlans)
	}
	for _, d := range index.Manifests {
		if err := checkDescriptor(d, MaxIndex); err != nil {
			return nil, err
		}
		list = append(list, Listed{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType,
			Labels: d.Annotations})
	}
	return list, nil
}
