package oci

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"
)

// Place is the location of a plan with a tag or a digest: a layout folder or a repository of a
// registry.
type Place struct {
	store   store
	name    string // without tag and digest
	tag     string
	digest  digest.Digest // "": that of the tag
	timeout time.Duration
}

// store holds artifacts.
type store interface {
	// push writes an artifact and lets the tag name it.
	push(ctx context.Context, a *artifact, tag string) error
	// pull returns the manifest that a tag, or a digest, names, and the packed plan in it, both
	// checked against their digests.
	pull(ctx context.Context, tag string, d digest.Digest) (manifest, packed []byte, err error)
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
	p := &Place{name: ref.Registry + "/" + ref.Repository, tag: ref.Reference, timeout: o.Timeout}
	if d, err := ref.Digest(); err == nil {
		p.tag, p.digest = "", d
	} else if p.tag == "" {
		p.tag = defaultTag
	}
	p.store = newRemote(ref, o)
	return p, nil
}

func parseLayout(text string, o Options) (*Place, error) {
	p := &Place{tag: defaultTag, timeout: o.Timeout}
	dir, sum, pinned := strings.Cut(text, "@")
	if pinned {
		p.tag, p.digest = "", digest.Digest(sum)
		if p.digest.Validate() != nil || p.digest.Algorithm() != digest.SHA256 {
			return nil, fmt.Errorf("%.80q is not a sha256 digest; give sha256: and 64 hexadecimal digits", sum)
		}
	}
	if i := strings.LastIndexByte(dir, ':'); i >= 0 && !strings.Contains(dir[i:], "/") {
		if !pinned {
			p.tag = dir[i+1:]
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

// Base returns the last part of the name, for use as a file name.
func (p *Place) Base() string {
	name := strings.TrimRight(strings.TrimPrefix(p.name, layoutPrefix), "/")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// Push writes a packed plan and returns the location with the digest of its manifest. The location
// must have a tag.
func (p *Place) Push(ctx context.Context, packed []byte, labels map[string]string) (pinned string, err error) {
	if p.tag == "" {
		return "", refused("a plan is pushed to a tag, not to the digest %s; give LOCATION:TAG", p.digest)
	}
	a, err := newArtifact(packed, labels)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := p.store.push(ctx, a, p.tag); err != nil {
		return "", fmt.Errorf("push to %s:%s: %w", p.name, p.tag, err)
	}
	return p.name + "@" + a.manifest.Digest.String(), nil
}

// Pull returns the packed plan at the location, and the location with the digest of its manifest.
// Only digests are checked; the plan may still be invalid.
func (p *Place) Pull(ctx context.Context) (packed []byte, pinned string, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	manifest, packed, err := p.store.pull(ctx, p.tag, p.digest)
	if err != nil {
		at := ":" + p.tag
		if p.tag == "" {
			at = "@" + p.digest.String()
		}
		return nil, "", fmt.Errorf("pull from %s%s: %w", p.name, at, err)
	}
	return packed, p.name + "@" + digest.FromBytes(manifest).String(), nil
}
