package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"sandwich/cmd/sandwich/internal/dockerlogin"
	"sandwich/cmd/sandwich/internal/models/ref"
)

// remoteStore is a repository of a registry.
type remoteStore struct {
	repo    *remote.Repository
	timeout time.Duration // that the context has
}

// newRemote returns a repository with the credentials of `docker login`. It sends no request.
func newRemote(r registry.Reference, o Options) store {
	g := &guard{host: r.Host(), plain: o.PlainHTTP || ref.Loopback(r.Host()), others: o.Hosts}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // a small compressed answer could expand to any size
	transport.MaxResponseHeaderBytes = 64 << 10
	g.next = transport
	client := dockerlogin.Client(&http.Client{Transport: g})
	client.SetUserAgent("sandwich")
	repo := &remote.Repository{Client: client, Reference: r, PlainHTTP: g.plain}
	return &remoteStore{repo, o.Timeout}
}

// guard allows requests to the named hosts only. Redirects, upload addresses and token endpoints
// come from the registry and could leak credentials or plans to other hosts.
type guard struct {
	next   http.RoundTripper
	host   string
	plain  bool
	others []string
}

func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	to := r.URL.Host
	if to != g.host && !slices.Contains(g.others, to) {
		return nil, &elsewhereError{g.host, to, "where it is the registry's own, add --allow-host " + to}
	}
	if r.URL.Scheme != "https" && !(to == g.host && g.plain || ref.Loopback(to)) {
		return nil, &elsewhereError{g.host, r.URL.Scheme + "://" + to, "only TLS is allowed there"}
	}
	return g.next.RoundTrip(r)
}

// elsewhereError reports a registry that redirects requests to a host that the user did not name.
type elsewhereError struct{ from, to, remedy string }

func (e *elsewhereError) Error() string {
	return fmt.Sprintf("the registry %s redirects to %.100q, which was not followed; %.150s", e.from, e.to,
		e.remedy)
}

func (s *remoteStore) put(ctx context.Context, b blob) error {
	there, err := s.repo.Blobs().Exists(ctx, b.Descriptor)
	if err == nil && !there {
		err = s.repo.Blobs().Push(ctx, b.Descriptor, bytes.NewReader(b.data))
	}
	return s.explain(ctx, err)
}

func (s *remoteStore) name(ctx context.Context, manifest blob, tag string) error {
	return s.explain(ctx,
		s.repo.Manifests().PushReference(ctx, manifest.Descriptor, bytes.NewReader(manifest.data), tag))
}

func (s *remoteStore) manifest(ctx context.Context, tag string, want digest.Digest) ([]byte, error) {
	name := tag
	if want != "" {
		name = want.String()
	}
	d, body, err := s.repo.Manifests().FetchReference(ctx, name)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return s.read(ctx, body, d, maxManifest)
}

func (s *remoteStore) tags(ctx context.Context) (all []string, err error) {
	err = s.repo.Tags(ctx, "", func(page []string) error {
		if all = append(all, page...); len(all) > MaxPlans {
			return refused("the repository has more than %d tags; use a repository for plans alone", MaxPlans)
		}
		return nil
	})
	if errors.Is(err, ErrRefused) {
		return nil, err
	}
	return all, s.explain(ctx, err)
}

func (s *remoteStore) get(ctx context.Context, d v1.Descriptor, limit int64) ([]byte, error) {
	body, err := s.repo.Blobs().Fetch(ctx, d)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return s.read(ctx, body, d, limit)
}

// read reads a body to its end and closes it.
func (s *remoteStore) read(ctx context.Context, body io.ReadCloser, d v1.Descriptor, limit int64) ([]byte, error) {
	defer body.Close()
	if err := checkDescriptor(d, limit); err != nil {
		return nil, err
	}
	data, err := readBlob(body, d)
	if err != nil && !errors.Is(err, ErrRefused) {
		err = s.explain(ctx, err)
	}
	return data, err
}

// longestAnswer limits the length of a registry's message in an error.
const longestAnswer = 200

// explain returns an error that describes what the registry did and what to do.
func (s *remoteStore) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	host := s.repo.Reference.Host()
	var elsewhere *elsewhereError
	var answer *errcode.ErrorResponse
	switch {
	case errors.As(err, &elsewhere):
		return elsewhere
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the registry %s did not answer in full within %s; try again, or give a longer --timeout",
			host, s.timeout)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errdef.ErrNotFound), errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return &missingError{text: fmt.Sprintf("the registry %s has no such repository or tag; check the name", host)}
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Errorf("the registry %s requires credentials; %s", host, login(host))
	case errors.As(err, &answer):
		return explainStatus(host, answer)
	}
	return fmt.Errorf("the registry %s cannot be used: %.*s", host, longestAnswer, err.Error())
}

func login(host string) string { return "log in with `docker login " + host + "`" }

func explainStatus(host string, answer *errcode.ErrorResponse) error {
	remedy := "try again later"
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		remedy = login(host)
	case http.StatusMethodNotAllowed, http.StatusBadRequest:
		remedy = "this registry may not take artifacts"
	}
	return fmt.Errorf("the registry %s answered %d (%.*s); %s", host, answer.StatusCode, longestAnswer,
		answer.Errors.Error(), remedy)
}
