package oci

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"

	"sandwich/plans/bundle"
)

// Place is the location of a plan with a tag or a digest: a layout folder or a repository of a
// registry.
type Place struct {
	store   store
	name    string // without tag and digest
	tag     string
	tagged  bool          // the location names a tag or a digest
	digest  digest.Digest // "": that of the tag
	timeout time.Duration
}

// store holds artifacts.
type store interface {
	// put writes a blob unless it exists.
	put(ctx context.Context, b blob) error
	// name writes a manifest, whose blobs exist, and lets the tag name it.
	name(ctx context.Context, manifest blob, tag string) error
	// manifest returns the manifest that a tag, or a digest, names, checked against its digest.
	manifest(ctx context.Context, tag string, d digest.Digest) ([]byte, error)
	// get returns a blob of at most limit bytes, checked against its digest.
	get(ctx context.Context, d v1.Descriptor, limit int64) ([]byte, error)
	// tags returns all tags.
	tags(ctx context.Context) ([]string, error)
}

// Options configures the access to a location.
type Options struct {
	Timeout   time.Duration // of all that one push or pull does
	PlainHTTP bool          // registries without TLS; loopback addresses are spoken to so in any case
	Hosts     []string      // other hosts that a registry may send requests to
}

const (
	layoutPrefix = "oci:"
	defaultTag   = "latest"
)

// ParsePlace parses a location. oci:FOLDER, or a path that begins with /, ./ or ../, is a layout,
// and HOST/NAME a repository. The tag :TAG defaults to latest; @sha256:... selects a digest.
func ParsePlace(text string, o Options) (*Place, error) {
	rest, isLayout := strings.CutPrefix(text, layoutPrefix)
	for _, start := range []string{"/", "./", "../"} {
		isLayout = isLayout || strings.HasPrefix(rest, start)
	}
	if isLayout {
		return parseLayout(rest, o)
	}
	ref, err := registry.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("%.80q is not a location of a plan; give oci:FOLDER:TAG or HOST/NAME:TAG", text)
	}
	p := &Place{name: ref.Registry + "/" + ref.Repository, tag: ref.Reference, tagged: ref.Reference != "",
		timeout: o.Timeout}
	if d, err := ref.Digest(); err == nil {
		p.tag, p.digest = "", d
	} else if p.tag == "" {
		p.tag = defaultTag
	}
	p.store = newRemote(ref, o)
	return p, nil
}

func parseLayout(text string, o Options) (*Place, error) {
	dir, sum, pinned := strings.Cut(text, "@")
	p := &Place{tag: defaultTag, tagged: pinned, timeout: o.Timeout}
	if pinned {
		p.tag, p.digest = "", digest.Digest(sum)
		if p.digest.Validate() != nil || p.digest.Algorithm() != digest.SHA256 {
			return nil, fmt.Errorf("%.80q is not a sha256 digest; give sha256: and 64 hexadecimal digits", sum)
		}
	}
	if i := strings.LastIndexByte(dir, ':'); i >= 0 && !strings.Contains(dir[i:], "/") {
		if !pinned {
			p.tag, p.tagged = dir[i+1:], true
		}
		dir = dir[:i]
	}
	ref := registry.Reference{Registry: "localhost", Repository: "x", Reference: p.tag}
	if dir == "" || p.tag != "" && ref.ValidateReferenceAsTag() != nil || !pinned && p.tag == "" {
		return nil, fmt.Errorf("%.80q is not a location of a plan; give oci:FOLDER:TAG", layoutPrefix+text)
	}
	p.name, p.store = layoutPrefix+dir, layout(dir)
	return p, nil
}

// WithTag returns the location of another tag of the same layout or repository.
func (p *Place) WithTag(tag string) *Place {
	q := *p
	q.tag, q.digest, q.tagged = tag, "", true
	return &q
}

// withDigest returns the location of a digest of the same layout or repository.
func (p *Place) withDigest(d digest.Digest) *Place {
	q := *p
	q.tag, q.digest, q.tagged = "", d, true
	return &q
}

// Tagged reports whether the location names a tag or a digest.
func (p *Place) Tagged() bool { return p.tagged }

// Name returns the location without tag and digest.
func (p *Place) Name() string { return p.name }

// String returns the location with its tag or digest.
func (p *Place) String() string {
	if p.tag == "" {
		return p.name + "@" + p.digest.String()
	}
	return p.name + ":" + p.tag
}

// Base returns the last part of the name, for use as a file name.
func (p *Place) Base() string {
	name := strings.TrimRight(strings.TrimPrefix(p.name, layoutPrefix), "/")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// Push writes a packed plan and returns the location with the digest of its manifest. The location
// must have a tag.
func (p *Place) Push(ctx context.Context, packed []byte, labels map[string]string) (pinned string, err error) {
	layer := newBlob(planKind.layer, packed)
	return p.PushLayers(ctx, planKind, emptyConfig, []Layer{{Digest: layer.Digest, Size: layer.Size,
		Data: func() ([]byte, error) { return packed, nil }}}, labels)
}

// Layer is a blob of an artifact. Data returns its content, which has the digest.
type Layer struct {
	Digest digest.Digest
	Size   int64
	Data   func() ([]byte, error)
}

// PushLayers writes an artifact of a kind with a configuration and layers, of which it holds one in
// memory at a time, and returns the location with the digest of its manifest. The location must
// have a tag.
func (p *Place) PushLayers(ctx context.Context, kind Kind, config []byte, layers []Layer,
	labels map[string]string) (pinned string, err error) {
	if p.tag == "" {
		return "", refused("a %s is pushed to a tag, not to the digest %s; give LOCATION:TAG", kind.name, p.digest)
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	manifest, err := p.push(ctx, kind, newBlob(kind.config, config), layers, labels)
	if err != nil {
		return "", fmt.Errorf("push to %s:%s: %w", p.name, p.tag, err)
	}
	return p.name + "@" + manifest.String(), nil
}

func (p *Place) push(ctx context.Context, kind Kind, config blob, layers []Layer,
	labels map[string]string) (digest.Digest, error) {
	if err := p.store.put(ctx, config); err != nil {
		return "", err
	}
	var list []v1.Descriptor
	for _, l := range layers {
		data, err := l.Data()
		if err != nil {
			return "", err
		}
		b := newBlob(kind.layer, data)
		if b.Digest != l.Digest {
			return "", refused("a layer changed while it was pushed; push it again")
		}
		if err := p.store.put(ctx, b); err != nil {
			return "", err
		}
		list = append(list, b.Descriptor)
	}
	m, err := newManifest(kind, config.Descriptor, list, labels)
	if err != nil {
		return "", err
	}
	return m.Digest, p.store.name(ctx, m, p.tag)
}

// Pull returns the packed plan at the location, and the location with the digest of its manifest.
// Only digests are checked; the plan may still be invalid.
func (p *Place) Pull(ctx context.Context) (packed []byte, pinned string, err error) {
	var entry Listed
	err = p.pullPlan(ctx, &packed, &entry)
	if err != nil {
		return nil, "", err
	}
	return packed, p.name + "@" + entry.Digest, nil
}

func (p *Place) pullPlan(ctx context.Context, packed *[]byte, entry *Listed) error {
	_, err := p.PullLayers(ctx, planKind, func(m *Manifest) (err error) {
		if len(m.layers) != 1 {
			return refused("it has %d layers; a plan has one, of the type %s", len(m.layers), planKind.layer)
		}
		*entry = Listed{Digest: m.digest.String(), Size: m.size, Labels: m.Labels}
		*packed, err = m.Layer(0, bundle.MaxArchive)
		return err
	})
	return err
}

// PullLayers calls fn with the manifest of a kind at the location, and returns the location with
// the digest of the manifest. fn fetches the blobs that it needs.
func (p *Place) PullLayers(ctx context.Context, kind Kind, fn func(m *Manifest) error) (pinned string, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	data, err := p.store.manifest(ctx, p.tag, p.digest)
	var m *Manifest
	if err == nil {
		m, err = parseManifest(data, kind)
	}
	if err == nil {
		m.digest, m.size = digest.FromBytes(data), int64(len(data))
		m.get = func(d v1.Descriptor, limit int64) ([]byte, error) { return p.store.get(ctx, d, limit) }
		err = fn(m)
	}
	if err != nil {
		return "", fmt.Errorf("pull from %s: %w", p, err)
	}
	return p.name + "@" + digest.FromBytes(data).String(), nil
}
