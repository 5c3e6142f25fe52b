package planstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/plans/bundle"
	"sandwich/profiles"
	"sandwich/profiles/retention"
)

// folder is a folder of bundles, packed or not. Its index saves reading the bundles that it lists.
// Entries of changed files are ignored, and files without an entry are read.
type folder string

const indexFile = "index.json"

// Media types of the entries of the index: a packed bundle, and the manifest of another one.
const (
	bundleArchive  = "application/vnd.sandwich.plan.v2.tar"
	bundleManifest = "application/vnd.sandwich.plan.v2.manifest+yaml"
)

func (f folder) String() string { return string(f) }

func (f folder) Remote() bool { return false }

// names returns the file names of the bundles, sorted.
func (f folder) names() ([]string, error) {
	files, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range files {
		name := e.Name()
		if !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, bundle.Suffix) ||
			strings.HasSuffix(name, bundle.ArchiveSuffix)) {
			out = append(out, name)
		}
	}
	if len(out) > oci.MaxPlans {
		return nil, fmt.Errorf("%s holds more than %d plans; use a folder for each model", f, oci.MaxPlans)
	}
	return out, nil
}

// listed returns the entry of a file in an index, without labels.
func (f folder) listed(name string) (oci.Listed, error) {
	path, kind, limit := filepath.Join(string(f), name), bundleArchive, int64(bundle.MaxArchive)
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path, kind, limit = filepath.Join(path, "MANIFEST.yaml"), bundleManifest, profiles.MaxYAMLBytes
	}
	data, err := retention.ReadRegular(path, limit)
	return oci.Listed{Digest: profiles.DigestBytes(data), Size: int64(len(data)), MediaType: kind}, err
}

func (f folder) List(_ context.Context, skipped func(error)) ([]Entry, error) {
	entries, _, err := f.read(skipped)
	return entries, err
}

// read returns the plans of the folder as entries and as entries of an index.
func (f folder) read(skipped func(error)) (entries []Entry, list []oci.Listed, err error) {
	names, err := f.names()
	if err != nil {
		return nil, nil, err
	}
	known := f.index()
	for _, name := range names {
		l, err := f.listed(name)
		var e Entry
		if err == nil {
			if k, ok := known[name]; ok && k.Digest == l.Digest && k.Size == l.Size && k.MediaType == l.MediaType {
				l.Labels = k.Labels
				e, err = entryFrom(name, name, l.Labels)
			}
			if l.Labels == nil || err != nil {
				var b *bundle.Bundle
				if b, err = bundle.Read(filepath.Join(string(f), name)); err == nil {
					l.Labels = Labels(b)
					l.Labels[labelTag] = name
					e = entryOf(name, name, b)
				}
			}
		}
		if err != nil {
			skipped(fmt.Errorf("left out %s: %w", filepath.Join(string(f), name), err))
			continue
		}
		entries, list = append(entries, e), append(list, l)
	}
	return entries, list, nil
}

// index returns the entries of the index by file name; none if it is missing or damaged.
func (f folder) index() map[string]oci.Listed {
	data, err := retention.ReadRegular(filepath.Join(string(f), indexFile), oci.MaxIndex)
	if err != nil {
		return nil
	}
	list, err := oci.ParseIndex(data)
	if err != nil {
		return nil
	}
	out := map[string]oci.Listed{}
	for _, l := range list {
		out[l.Labels[labelTag]] = l
	}
	return out
}

func (f folder) Tagged(_ context.Context, tag string) ([]byte, error) {
	packed, _, err := bundle.Pack(filepath.Join(string(f), tag+bundle.ArchiveSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", f, oci.ErrMissing)
	}
	return packed, err
}

func (f folder) Read(_ context.Context, e Entry) ([]byte, error) {
	packed, _, err := bundle.Pack(filepath.Join(string(f), e.Name))
	return packed, err
}

func (f folder) Push(_ context.Context, tag string, packed []byte, _ *bundle.Bundle) (string, error) {
	path := filepath.Join(string(f), tag+bundle.ArchiveSuffix)
	return path, retention.WriteFile(path, packed)
}

func (f folder) Index(_ context.Context, skipped func(error)) (string, int, error) {
	_, list, err := f.read(skipped)
	if err != nil {
		return "", 0, err
	}
	slices.SortFunc(list, func(a, b oci.Listed) int { return strings.Compare(a.Labels[labelTag], b.Labels[labelTag]) })
	data, err := oci.EncodeIndex(list)
	if err != nil {
		return "", 0, err
	}
	path := filepath.Join(string(f), indexFile)
	return path, len(list), retention.WriteFile(path, data)
}
