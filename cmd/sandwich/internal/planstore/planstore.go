// Package planstore keeps the plans of many hosts in one place, a repository of a registry, an OCI
// layout or a folder of bundles, and finds the plan for a host and a model there.
//
// Jobs push each plan under a tag of its own and never edit the index, since registries cannot
// compare and swap a tag; Index builds it from what is there. Neither an index nor its labels are
// trusted: the bundle itself decides whether it fits, and its signatures whether it is accepted.
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
	"sandwich/plans/bundle"
	"sandwich/plans/hostkey"
)

// Store is a place with the plans of many hosts.
type Store interface {
	// String returns the location, for messages.
	String() string
	// Remote reports whether the store may be out of reach while this machine works.
	Remote() bool
	// List returns the plans of the store. skipped receives a message for each one that cannot be
	// read.
	List(ctx context.Context, skipped func(error)) ([]Entry, error)
	// Tagged returns the plan that a job pushed under a tag. The error is oci.ErrMissing if the
	// store has no such tag.
	Tagged(ctx context.Context, tag string) (packed []byte, err error)
	// Read returns the packed plan of an entry.
	Read(ctx context.Context, e Entry) (packed []byte, err error)
	// Push stores a plan under a tag and returns its location.
	Push(ctx context.Context, tag string, packed []byte, b *bundle.Bundle) (where string, err error)
	// Index builds the index of all plans and returns its location and the number of plans.
	Index(ctx context.Context, skipped func(error)) (where string, plans int, err error)
}

// Entry is a plan of a store.
type Entry struct {
	hostkey.Entry
	Title string // for messages: the tag or the file name
}

// Open returns the store of a location: a folder of bundles, oci:FOLDER[:TAG], or HOST/NAME[:TAG].
// The tag is that of the index. Open sends no request.
func Open(text string, o oci.Options) (Store, error) {
	if st, err := os.Stat(text); err == nil && st.IsDir() {
		if _, err := os.Stat(filepath.Join(text, "oci-layout")); errors.Is(err, fs.ErrNotExist) {
			return folder(text), nil
		}
		text = "oci:" + strings.TrimRight(text, "/")
	}
	place, err := oci.ParsePlace(text, o)
	if err != nil {
		return nil, fmt.Errorf("%.80q is neither a folder of plans nor a location; give FOLDER, oci:FOLDER:TAG or "+
			"HOST/NAME:TAG", text)
	}
	if !place.Tagged() {
		place = place.WithTag(IndexTag)
	}
	return &repository{place}, nil
}

// IndexTag is the tag of an index in a location without a tag.
const IndexTag = "index"

// Labels that are not part of a key.
const (
	labelTitle   = "org.opencontainers.image.title"
	labelTag     = "org.opencontainers.image.ref.name"
	labelCreated = "dev.sandwich.measured"
	labelTuned   = "dev.sandwich.tuned"
)

// Labels returns the labels of a plan in a registry. They depend on the plan alone.
func Labels(b *bundle.Bundle) map[string]string {
	labels := hostkey.OfBundle(b).Labels()
	labels[labelTitle] = b.Plan.Name
	labels["dev.sandwich.fingerprint"] = b.Plan.Fingerprint
	labels["dev.sandwich.plan"] = b.Plan.Digest()
	labels[labelCreated] = b.Evidence.Created
	labels[labelTuned] = fmt.Sprint(b.Plan.Tuned)
	return labels
}

// entryOf returns the entry of a bundle.
func entryOf(name, title string, b *bundle.Bundle) Entry {
	return Entry{Title: title, Entry: hostkey.Entry{Name: name, Key: hostkey.OfBundle(b), Created: b.Evidence.Created,
		Tuned: b.Plan.Tuned}}
}

// entryFrom returns the entry that labels describe.
func entryFrom(name, title string, labels map[string]string) (Entry, error) {
	key, err := hostkey.ParseLabels(labels)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Title: title, Entry: hostkey.Entry{Name: name, Key: key, Created: labels[labelCreated],
		Tuned: labels[labelTuned] == "true"}}, nil
}
