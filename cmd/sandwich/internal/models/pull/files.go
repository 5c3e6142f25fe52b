package pull

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sandwich/cmd/sandwich/internal/models/caches"
	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/hub"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
	"sandwich/cmd/sandwich/internal/models/store"
)

// present returns the files that other models or caches of other programs have, with an empty path
// for the others, and the downloads of the others.
func (p *pull) present(ctx context.Context, m *source.Model) (files []store.Staged, missing []fetch.Wanted) {
	for _, f := range m.Files {
		s, ok := p.existing(ctx, f)
		if !ok {
			missing = append(missing, fetch.Wanted{Base: p.bases[f.Name], Size: f.Size})
		}
		files = append(files, s)
	}
	return files, missing
}

// existing returns a file that another model or the cache of another program has.
func (p *pull) existing(ctx context.Context, f source.File) (store.Staged, bool) {
	s := store.Staged{File: store.File{Name: f.Name, Size: f.Size, SHA256: f.SHA256}}
	if s.Path, s.Shared = p.store.FindFile(f.SHA256, f.Size), true; s.Path != "" {
		return s, true
	}
	cached, ok := caches.Find(ctx, p.ref, f.SHA256, f.Size)
	if !ok {
		return store.Staged{}, false
	}
	st, err := os.Stat(cached.Path)
	if err != nil {
		return store.Staged{}, false
	}
	p.Notice(fmt.Sprintf("%s is in the cache of %s; it is used there", f.Name, cached.Owner))
	s.Path, s.Cache, s.Modified = cached.Path, cached.Path, st.ModTime()
	return s, true
}

// prepare checks the room on the disk for the missing files and asks for permission.
func (p *pull) prepare(m *source.Model, missing []fetch.Wanted) error {
	if len(missing) == 0 {
		return nil
	}
	if err := fetch.CheckRoom(p.store.Dir(), missing); err != nil {
		return err
	}
	for _, f := range m.Files {
		if f.SHA256 == "" {
			p.Notice(fmt.Sprintf("%s has no known checksum; the model will be marked as unverified", f.Name))
		}
	}
	if p.Confirm == nil {
		return nil
	}
	var bytes int64
	for _, w := range missing {
		bytes += max(w.Size, 0)
	}
	return p.Confirm(p.origin.Host, bytes)
}

// download downloads a file.
func (p *pull) download(ctx context.Context, f source.File) (store.Staged, error) {
	update, done := p.Progress(f.Name)
	defer done()
	base := p.bases[f.Name]
	r, err := fetch.Get(ctx, p.client, fetch.File{Name: f.Name, URL: f.URL, Size: f.Size, SHA256: f.SHA256,
		Label: p.ref.Text}, base, fetch.Options{Magic: magic, Progress: update, Connections: p.Connections,
		Stall: p.Stall,
		Wait:  p.Wait})
	var status *fetch.StatusError
	if p.ref.Kind == ref.Hub && errors.As(err, &status) && status.Denied() {
		err = fmt.Errorf("%w; %s", err, hub.Gated(p.origin.JoinPath(p.ref.Repo)))
	}
	if err != nil {
		return store.Staged{}, err
	}
	return store.Staged{Path: fetch.PartPath(base), File: store.File{Name: f.Name, Size: r.Size, SHA256: r.SHA256}}, nil
}

// inspect checks the complete files of a model in a folder of links, since parts find each other by
// their names.
func (p *pull) inspect(files []store.Staged) (err error) {
	if p.Inspect == nil {
		return nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(p.bases[files[0].Name]), "inspect-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, f := range files {
		path, err := filepath.Abs(f.Path)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, f.Name))
		}
		if err != nil {
			return err
		}
	}
	return p.Inspect(filepath.Join(dir, files[0].Name))
}
