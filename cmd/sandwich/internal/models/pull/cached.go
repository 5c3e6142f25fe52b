package pull

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"sandwich/cmd/sandwich/internal/models/caches"
	"sandwich/cmd/sandwich/internal/models/hub"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/registry"
	"sandwich/cmd/sandwich/internal/models/source"
	"sandwich/cmd/sandwich/internal/models/store"
)

// ErrNotCached is returned if the caches of other programs do not have a whole model.
var ErrNotCached = errors.New("the model is not in the caches of Hugging Face and ollama")

// Cached installs the model of a reference from the cache of Hugging Face or ollama, whose files
// stay there. It verifies their checksums and sends no request.
func Cached(ctx context.Context, s *store.Store, r ref.Ref, o Options) (*store.Model, error) {
	m, err := described(r)
	if err != nil {
		return nil, err
	}
	p := &pull{Options: o, store: s, ref: r, bases: map[string]string{}, origin: &url.URL{}, offline: true}
	if p.Name = p.defaultName(m); s.CheckFree(p.Name, r.Text) != nil {
		sum := sha256.Sum256([]byte(r.Text)) // the user was not asked for a name
		p.Name += "-" + hex.EncodeToString(sum[:4])
	}
	model, err := p.install(ctx, m)
	if err != nil && !errors.Is(err, ErrNotCached) {
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("the model is in the cache of another program and cannot be recorded: %w", err)
		}
		return nil, fmt.Errorf("%s: %w", r.Text, err)
	}
	return model, err
}

// described returns the model of a reference as a cache describes it. An unusable description is
// the same as none.
func described(r ref.Ref) (m *source.Model, err error) {
	if manifest := caches.Manifest(r); manifest != nil {
		m, err = registry.Parse(manifest, r)
	} else if files, revision := caches.Snapshot(r); len(files) > 0 {
		if m, err = hub.Choose(files, r); err == nil {
			m.Revision = revision
		}
	}
	if m == nil || err != nil || m.Check() != nil {
		return nil, ErrNotCached
	}
	return m, nil
}
