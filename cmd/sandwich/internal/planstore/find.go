package planstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/hostkey"
	"sandwich/plans/renumber"
	"sandwich/profiles"
)

// Finder finds the plan of a store for a host and a model.
type Finder struct {
	Store  Store
	Cache  string                     // folder of the last plans of remote stores; "": none
	Accept func(*bundle.Bundle) error // refuses a plan, such as one without a required signature; nil: accepts all
	Note   func(text string)          // receives messages for the user
}

// Found is a plan that fits a host and a model.
type Found struct {
	Where   string // for messages
	Created string // date of the measurements
	packed  []byte
}

// Bundle returns the bundle with the PUs of the host, and text that says how they were renumbered,
// "" if they were not. Each call returns a new bundle.
func (f *Found) Bundle(host *profiles.Profile) (*bundle.Bundle, string, error) {
	b, err := bundle.Parse(f.packed)
	if err != nil {
		return nil, "", err
	}
	return renumber.Bundle(b, host)
}

// Find returns the newest plan for a host and a model. If no plan fits, it returns nil, and Note
// receives the fields in which the nearest plan differs. If a remote store cannot be read, Find
// uses the last plan that it returned before. The error is that of Accept.
func (f *Finder) Find(ctx context.Context, host *profiles.Profile, shape *plans.ModelShape) (*Found, error) {
	here := hostkey.OfHost(host, shape)
	list, err := f.Store.List(ctx, func(err error) { f.Note(err.Error()) })
	var found *Found
	if err == nil {
		found, err = f.choose(ctx, f.Store, list, here, host)
	}
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return nil, refused.error
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return f.cached(ctx, here, host, err)
	case found != nil:
		f.keep(here, found)
	}
	return found, nil
}

// refusedError is an error of Accept.
type refusedError struct{ error }

// choose returns the first plan of a list that fits and can be read, nil if none fits. The error
// reports that those that fit cannot be read, or is a refusedError.
func (f *Finder) choose(ctx context.Context, s Store, list []Entry, here hostkey.Key, host *profiles.Profile) (
	*Found, error) {
	titles := map[string]string{}
	for _, e := range list {
		titles[e.Name] = e.Title
	}
	fits, nearest := hostkey.Select(keysOf(list), here)
	if len(fits) == 0 {
		f.sayNone(s, nearest, titles, here)
		return nil, nil
	}
	var unread error
	for i, e := range fits {
		where := fmt.Sprintf("%s of %s", titles[e.Name], s)
		packed, err := s.Read(ctx, Entry{Entry: e, Title: titles[e.Name]})
		if err != nil {
			f.Note(fmt.Sprintf("%s cannot be read: %v", where, err))
			unread = err
			continue
		}
		found := &Found{Where: where, Created: e.Created, packed: packed}
		if err := f.check(found, here, host); err != nil {
			if refused := (*refusedError)(nil); errors.As(err, &refused) {
				return nil, refused
			}
			f.Note(fmt.Sprintf("%s is not used: %v", where, err))
			unread = err
			continue
		}
		if n := len(fits) - i; n > 1 {
			f.Note(fmt.Sprintf("%s has %d plans for this host and model; using the newest by measurement, %s of %s", s,
				n, titles[e.Name], e.Created))
		}
		return found, nil
	}
	return nil, unread
}

// keysOf returns the entries without their titles.
func keysOf(list []Entry) []hostkey.Entry {
	out := make([]hostkey.Entry, len(list))
	for i, e := range list {
		out[i] = e.Entry
	}
	return out
}

// check reports whether the content of a plan fits and is accepted, and sets the date of found.
func (f *Finder) check(found *Found, here hostkey.Key, host *profiles.Profile) error {
	b, err := bundle.Parse(found.packed)
	if err != nil {
		return err
	}
	found.Created = b.Evidence.Created
	if d := hostkey.Differences(hostkey.OfBundle(b), here); len(d) > 0 {
		return fmt.Errorf("its labels say that it fits, but it differs in %s; build the index again with "+
			"`sandwich plan index`", d[0])
	}
	if f.Accept != nil {
		if err := f.Accept(b); err != nil {
			return &refusedError{fmt.Errorf("%s: %w", found.Where, err)}
		}
	}
	_, _, err = renumber.Bundle(b, host)
	return err
}

// sayNone notes that no plan fits, and the fields in which the nearest one differs.
func (f *Finder) sayNone(s Store, nearest *hostkey.Entry, titles map[string]string, here hostkey.Key) {
	if nearest == nil {
		f.Note(fmt.Sprintf("%s has no plan", s))
		return
	}
	f.Note(fmt.Sprintf("%s has no plan for this host and model; the nearest one, %s, differs:", s,
		titles[nearest.Name]))
	for _, d := range hostkey.Differences(nearest.Key, here) {
		f.Note("  " + d.String())
	}
}

// folder returns the cache folder of the store.
func (f *Finder) folder() folder {
	digest := strings.TrimPrefix(profiles.DigestBytes([]byte(f.Store.String())), "sha256:")
	return folder(filepath.Join(f.Cache, digest[:16]))
}

// keep stores a plan of a remote store in the cache.
func (f *Finder) keep(here hostkey.Key, found *Found) {
	if f.Cache == "" || !f.Store.Remote() {
		return
	}
	dir := f.folder()
	b, err := bundle.Parse(found.packed)
	if err == nil {
		err = os.MkdirAll(string(dir), 0o755)
	}
	if err == nil {
		_, err = dir.Push(context.Background(), here.Tag(), found.packed, b)
	}
	if err != nil {
		f.Note(fmt.Sprintf("the plan is not kept for starts without the registry: %v", err))
	}
}

// cached returns the last plan of a store that cannot be read now.
func (f *Finder) cached(ctx context.Context, here hostkey.Key, host *profiles.Profile, failed error) (*Found, error) {
	f.Note(failed.Error())
	if f.Cache == "" || !f.Store.Remote() {
		return nil, nil
	}
	dir := f.folder()
	packed, err := dir.Tagged(ctx, here.Tag())
	if errors.Is(err, oci.ErrMissing) {
		f.Note(fmt.Sprintf("the cache folder %s has no plan for this host and model either", dir))
		return nil, nil
	}
	var found *Found
	if err == nil {
		where := fmt.Sprintf("the last plan of %s, from the cache folder %s", f.Store, dir)
		found = &Found{Where: where, packed: packed}
		err = f.check(found, here, host)
	}
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return nil, refused.error
	case err != nil:
		f.Note(fmt.Sprintf("the plan in the cache folder %s cannot be used: %v", dir, err))
		return nil, nil
	}
	return found, nil
}

// Lookup returns the plan that a job pushed for a host and a model, under the tag of the key or any
// other one that the index lists. It returns nil if no plan fits, and an error if the store cannot
// be read.
func (f *Finder) Lookup(ctx context.Context, host *profiles.Profile, shape *plans.ModelShape) (*Found, error) {
	here := hostkey.OfHost(host, shape)
	packed, err := f.Store.Tagged(ctx, here.Tag())
	if err == nil {
		found := &Found{Where: fmt.Sprintf("%s of %s", here.Tag(), f.Store), packed: packed}
		if err = f.check(found, here, host); err == nil {
			return found, nil
		}
		f.Note(fmt.Sprintf("%s is not used: %v", found.Where, err))
	} else if !missing(err) {
		return nil, err
	}
	list, err := f.Store.List(ctx, func(err error) { f.Note(err.Error()) })
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fits, _ := hostkey.Select(keysOf(list), here); len(fits) == 0 {
		return nil, nil
	}
	found, err := f.choose(ctx, f.Store, list, here, host)
	if err != nil && ctx.Err() == nil {
		return nil, nil // choose said why
	}
	return found, err
}

// missing reports an error about a location that does not exist yet.
func missing(err error) bool { return errors.Is(err, oci.ErrMissing) || errors.Is(err, fs.ErrNotExist) }
