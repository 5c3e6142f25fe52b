package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
)

// layout answers requests for the files of a folder.
type layout struct{ files http.RoundTripper }

func (l layout) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.files.RoundTrip(r)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

// LayoutClient returns a client that reads the files of the layout of a reference.
func LayoutClient(r ref.Ref) fetch.Doer {
	return &http.Client{Transport: layout{http.NewFileTransport(http.Dir(r.Repo))}}
}

// FindLayout returns the model that a reference to a layout names.
func FindLayout(ctx context.Context, client fetch.Doer, r ref.Ref) (*source.Model, error) {
	base := &url.URL{Scheme: "file", Host: "layout", Path: "/"}
	var x v1.Index
	if _, _, err := source.Document(ctx, client, base.JoinPath(v1.ImageIndexFile).String(), nil, &x); err != nil {
		return nil, fmt.Errorf("%s is not an OCI image layout: %w", r.Repo, err)
	}
	i := slices.IndexFunc(x.Manifests, func(d v1.Descriptor) bool {
		return d.Digest.String() == r.Tag || d.Annotations[v1.AnnotationRefName] == r.Tag
	})
	if i < 0 || x.Manifests[i].Digest.Validate() != nil {
		return nil, source.Refuse("the layout has no %.80s", r.Tag)
	}
	address := func(d digest.Digest) string {
		return base.JoinPath(v1.ImageBlobsDir, d.Algorithm().String(), d.Encoded()).String()
	}
	var m document
	want := x.Manifests[i].Digest
	data, _, err := source.Document(ctx, client, address(want), nil, &m)
	if err != nil {
		return nil, err
	}
	if got := digest.FromBytes(data); got != want {
		return nil, fmt.Errorf("%w: the manifest has %s, expected is %s", fetch.ErrChecksum, got, want)
	}
	model, err := parse(m, r, address)
	if err != nil {
		return nil, err
	}
	model.Revision = want.String()
	return model, nil
}
