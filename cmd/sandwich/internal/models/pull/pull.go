// Package pull gets models by their references: it finds their files, downloads those that no
// folder of this machine has, and installs them.
package pull

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"sandwich/cmd/sandwich/internal/dockerlogin"
	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/hub"
	"sandwich/cmd/sandwich/internal/models/netguard"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/registry"
	"sandwich/cmd/sandwich/internal/models/source"
	"sandwich/cmd/sandwich/internal/models/store"
)

// Options configures a pull.
type Options struct {
	Name        string        // of the model; "": that of the file
	SHA256      string        // that the file of an address must have; "": unknown
	Hosts       []string      // other hosts that the server may use
	Connections int           // parallel requests per file; 0: the default of package fetch
	Stall       time.Duration // see [fetch.Options]
	Wait        func(ctx context.Context, d time.Duration) error

	// Confirm is called before a download of a size in bytes, 0 if unknown, from a host, and may
	// reject it; nil: never.
	Confirm func(host string, bytes int64) error
	// Notice receives messages for the user.
	Notice func(line string)
	// Progress starts to show the progress of a file; see show.ByteBar.
	Progress func(what string) (update func(done, total int64), done func())
	// Inspect checks the complete first file of a model before it is installed; nil: no check.
	Inspect func(path string) error
}

// magic begins each GGUF file.
const magic = "GGUF"

// pull is one run.
type pull struct {
	Options
	store  *store.Store
	ref    ref.Ref
	client fetch.Doer
	origin *url.URL
	bases  map[string]string // of downloads, by file name
	// offline forbids downloads: all files must be present.
	offline bool
}

// Pull gets the model of a reference and returns it. It finds out the current version, and
// downloads nothing if that is installed.
func Pull(ctx context.Context, s *store.Store, r ref.Ref, o Options) (*store.Model, error) {
	if o.SHA256 != "" && r.Kind != ref.Web {
		return nil, errors.New("--sha256 is for addresses of files; hubs and registries state their checksums")
	}
	if o.SHA256 = strings.ToLower(o.SHA256); o.SHA256 != "" && !source.IsSHA256(o.SHA256) {
		return nil, fmt.Errorf("--sha256 %.80s is not a sha256; give 64 hexadecimal digits", o.SHA256)
	}
	p := &pull{Options: o, store: s, ref: r, bases: map[string]string{}}
	m, err := p.find(ctx)
	if err == nil {
		err = m.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Text, err)
	}
	model, err := p.install(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Text, err)
	}
	return model, nil
}

// install names the model and gets it.
func (p *pull) install(ctx context.Context, m *source.Model) (*store.Model, error) {
	if p.Name == "" {
		p.Name = p.defaultName(m)
	}
	if err := errors.Join(ref.CheckName(p.Name), p.store.CheckFree(p.Name, p.ref.Text)); err != nil {
		return nil, err
	}
	if len(m.Files) == 1 { // parts keep their names, by which they find each other
		m.Files[0].Name = p.Name + ".gguf"
	}
	return p.get(ctx, m)
}

// find asks the server for the files of the model.
func (p *pull) find(ctx context.Context) (*source.Model, error) {
	policy := netguard.Policy{Hosts: p.Hosts}
	patient := func(client fetch.Doer) fetch.Doer {
		p.client = client
		return &source.Patient{Doer: client, Wait: p.Wait, Notice: p.Notice}
	}
	switch p.ref.Kind {
	case ref.Hub:
		endpoint, err := hubEndpoint()
		if err != nil {
			return nil, err
		}
		policy.Origin, policy.Token = endpoint, strings.TrimSpace(os.Getenv("HF_TOKEN"))
		p.origin = endpoint
		return hub.Find(ctx, patient(netguard.New(policy)), endpoint, p.ref)
	case ref.Layout:
		p.origin, p.client = &url.URL{Host: p.ref.Repo}, registry.LayoutClient(p.ref)
		return registry.FindLayout(ctx, p.client, p.ref)
	case ref.Registry:
		policy.Origin, policy.Hosts = registry.Origin(p.ref), append(slices.Clip(p.Hosts), registry.Hosts(p.ref)...)
		p.origin = policy.Origin
		return registry.Find(ctx, patient(dockerlogin.Client(netguard.New(policy))), p.ref)
	}
	policy.Origin = &url.URL{Scheme: p.ref.URL.Scheme, Host: p.ref.URL.Host}
	p.origin, p.client = policy.Origin, netguard.New(policy)
	return source.Web(p.ref.URL, p.SHA256)
}

// hubEndpoint returns the address of the hub: HF_ENDPOINT, else the public one.
func hubEndpoint() (*url.URL, error) {
	text := os.Getenv("HF_ENDPOINT")
	if text == "" {
		text = hub.DefaultEndpoint
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" ||
		u.Scheme == "http" && !ref.Loopback(u.Hostname()) {
		return nil, fmt.Errorf("HF_ENDPOINT=%.80q is not the address of a hub; give https://HOST", text)
	}
	return u, nil
}

// defaultName returns the name of the model that this reference has already, else that of its
// files.
func (p *pull) defaultName(m *source.Model) string {
	if old, err := p.store.ByReference(p.ref.Text); err == nil {
		return old.Name
	}
	return m.Name
}

// get downloads the missing files and installs the model. It holds the locks of all files until
// then, so that another process waits and finds the model.
func (p *pull) get(ctx context.Context, m *source.Model) (*store.Model, error) {
	if old := p.installed(m); old != nil {
		return old, nil
	}
	unlock, err := p.lockAll(ctx, m.Files)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if old := p.installed(m); old != nil { // by the process that held a lock
		return old, nil
	}
	files, missing := p.present(ctx, m)
	if p.offline && len(missing) > 0 {
		return nil, ErrNotCached
	}
	if err := p.prepare(m, missing); err != nil {
		return nil, err
	}
	verified := true
	for i, f := range m.Files {
		verified = verified && f.SHA256 != ""
		if files[i].Path != "" {
			continue
		}
		if files[i], err = p.download(ctx, f); err != nil {
			return nil, err
		}
	}
	if err := p.inspect(files); err != nil {
		return nil, errors.Join(err, p.discard())
	}
	model := &store.Model{Name: p.Name, Reference: p.ref.Text, Revision: m.Revision, Verified: verified,
		Pulled: time.Now().UTC().Truncate(time.Second)}
	if err := p.store.Install(ctx, model, files); err != nil {
		return nil, err
	}
	return model, p.discard()
}

// discard removes the files of the downloads.
func (p *pull) discard() (err error) {
	for _, base := range p.bases {
		err = errors.Join(err, fetch.Discard(base))
	}
	return err
}

// installed returns the model if this version of it is installed and intact.
func (p *pull) installed(m *source.Model) *store.Model {
	old, err := p.store.Get(p.Name)
	if err != nil || !old.Verified || old.Reference != p.ref.Text || len(old.Files) != len(m.Files) {
		return nil
	}
	for i, f := range m.Files {
		if f.SHA256 == "" || f.SHA256 != old.Files[i].SHA256 || f.Name != old.Files[i].Name {
			return nil
		}
	}
	if _, err := p.store.Path(old); err != nil {
		return nil
	}
	return old
}

// key returns the name of the download of a file: by its checksum, else by its address.
func key(f source.File) string {
	if f.SHA256 != "" {
		return f.SHA256
	}
	sum := sha256.Sum256([]byte(f.URL))
	return "url-" + hex.EncodeToString(sum[:])
}

// lockAll takes the locks of the downloads of files.
func (p *pull) lockAll(ctx context.Context, files []source.File) (unlock func(), err error) {
	var locked []func()
	unlock = func() {
		for _, u := range locked {
			u()
		}
	}
	names := map[string]string{}
	for _, f := range files {
		names[key(f)] = f.Name
	}
	for _, k := range slices.Sorted(maps.Keys(names)) { // the same order in every process
		base, u, err := p.store.Lock(ctx, k, func() {
			p.Notice("another process downloads " + names[k] + "; waiting for it")
		})
		if err != nil {
			unlock()
			return nil, err
		}
		locked = append(locked, u)
		p.bases[names[k]] = base
	}
	return unlock, nil
}
