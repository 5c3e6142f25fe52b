// Package hub finds GGUF files in repositories of the Hugging Face hub.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
)

// DefaultEndpoint is the address of the public hub.
const DefaultEndpoint = "https://huggingface.co"

// defaultType is the weight type that a reference without one means if there are several.
const defaultType = "Q4_K_M"

// info is the description of a repository.
type info struct {
	SHA      string `json:"sha"`
	Siblings []struct {
		Path string `json:"rfilename"`
		Size *int64 `json:"size"`
		LFS  *struct {
			SHA256 string `json:"sha256"`
			Size   int64  `json:"size"`
		} `json:"lfs"`
	} `json:"siblings"`
}

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// entry is a GGUF file of a repository.
type entry struct {
	path   string
	size   int64  // negative: unknown
	sha256 string // "": unknown
}

// Find returns the model that a reference names at a hub. It selects the files of the weight type
// or the file name of the reference; without one, the only model of the repository, or that of type
// Q4_K_M.
func Find(ctx context.Context, client fetch.Doer, endpoint *url.URL, r ref.Ref) (*source.Model, error) {
	var about info
	address := endpoint.JoinPath("api", "models", r.Repo, "revision", "main").String() + "?blobs=true"
	_, _, err := source.Document(ctx, client, address, []string{"application/json"}, &about)
	if err != nil {
		return nil, explain(err, endpoint, r)
	}
	if !commit.MatchString(about.SHA) {
		return nil, source.Refuse("%s sends %.60q as the revision of the repository; it is not a hub", endpoint.Host,
			about.SHA)
	}
	list, whole := about.entries()
	if !whole {
		full, err := tree(ctx, client, endpoint, r.Repo, about.SHA)
		if err != nil {
			return nil, err
		}
		if full != nil {
			list = full
		}
	}
	var files []source.File
	for _, e := range list {
		files = append(files, source.File{Name: e.path, Size: e.size, SHA256: e.sha256,
			URL: endpoint.JoinPath(r.Repo, "resolve", about.SHA).String() + "/" + escape(e.path)})
	}
	m, err := Choose(files, r)
	if err != nil {
		return nil, err
	}
	m.Revision = about.SHA
	return m, nil
}

// explain adds the remedy to an error about a repository.
func explain(err error, endpoint *url.URL, r ref.Ref) error {
	page := endpoint.JoinPath(r.Repo)
	switch {
	case source.NeedsLogin(err):
		return fmt.Errorf("%w: %s", err, Gated(page))
	case errors.Is(err, source.ErrNotFound):
		return fmt.Errorf("%w: there is no such repository, or it needs a login: accept its terms at %s and set "+
			"HF_TOKEN", err, page)
	}
	return err
}

// Gated says how to get access to a repository, whose page is given.
func Gated(page *url.URL) string {
	return fmt.Sprintf("accept the terms of the repository at %s, and set HF_TOKEN to a token of that account", page)
}

// entries returns the GGUF files of a repository. whole is false if the hub left out files or
// their checksums, as some mirrors do.
func (about *info) entries() (list []entry, whole bool) {
	whole = len(about.Siblings) > 0
	for _, s := range about.Siblings {
		if !isModel(s.Path) {
			continue
		}
		e := entry{path: s.Path, size: -1}
		if s.Size != nil {
			e.size = *s.Size
		}
		if s.LFS != nil {
			e.size, e.sha256 = s.LFS.Size, s.LFS.SHA256
		} else {
			whole = false
		}
		list = append(list, e)
	}
	return list, whole
}

// isModel reports whether a path is that of a GGUF file with a model, or of a part of one.
func isModel(name string) bool { return strings.HasSuffix(name, ".gguf") && !auxiliary(name) }

// escape escapes each component of a path.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// auxiliary reports whether a file belongs to a model but is not one: a projector of images, or
// statistics for quantization.
func auxiliary(name string) bool {
	base := strings.ToLower(path.Base(name))
	return strings.Contains(base, "mmproj") || strings.Contains(base, "imatrix")
}

// Choose returns the model of the reference's type or file name among the GGUF files of a
// repository, whose names are paths. The names of the model's files are their last components.
func Choose(files []source.File, r ref.Ref) (*source.Model, error) {
	groups := map[string][]source.File{} // by path without extension and number of part
	for _, f := range files {
		if !isModel(f.Name) {
			continue
		}
		name, err := ref.FileName(f.Name)
		if err != nil {
			return nil, err
		}
		key := path.Join(path.Dir(f.Name), ref.Stem(name))
		f.Name = name
		groups[key] = append(groups[key], f)
	}
	keys := slices.Sorted(maps.Keys(groups))
	var found []string
	switch {
	case len(keys) == 0:
		return nil, source.Refuse("the repository has no GGUF file; name one that has, often OWNER/NAME-GGUF")
	case r.Variant == "" && len(keys) == 1:
		found = keys
	default:
		found = matching(keys, cmp.Or(r.Variant, defaultType))
	}
	if len(found) != 1 {
		number := "no model"
		if len(found) > 1 {
			number = fmt.Sprintf("%d models", len(found))
		}
		return nil, source.Refuse("the repository has %s of the type %s; give hf:%s:TYPE with the type or the name of "+
			"one of %s", number, cmp.Or(r.Variant, defaultType), r.Repo, list(keys))
	}
	m := &source.Model{Name: path.Base(found[0]), Files: groups[found[0]]}
	slices.SortFunc(m.Files, func(a, b source.File) int { return cmp.Compare(a.Name, b.Name) })
	return m, checkParts(m)
}

// matching returns the keys whose name ends with a type, or is that of a file. A type of several
// words, such as UD-Q4_K_M, is not taken for its last word if that word has a model of its own.
func matching(keys []string, variant string) (found []string) {
	if stem, ok := strings.CutSuffix(variant, ".gguf"); ok {
		return filter(keys, func(key string) bool { return path.Base(key) == ref.Stem(stem) })
	}
	found = filter(keys, func(key string) bool { return endsWith(path.Base(key), variant) })
	if len(found) == 0 {
		found = filter(keys, func(key string) bool { return endsWith(path.Dir(key), variant) })
	}
	if plain := filter(found, func(key string) bool { return !endsWith(key, "UD-"+variant) }); len(plain) > 0 {
		return plain
	}
	return found
}

func filter(keys []string, ok func(string) bool) (found []string) {
	for _, key := range keys {
		if ok(key) {
			found = append(found, key)
		}
	}
	return found
}

// endsWith reports whether a name is a word or ends with it, regardless of case.
func endsWith(name, word string) bool {
	name, word = strings.ToLower(name), strings.ToLower(word)
	before, ok := strings.CutSuffix(name, word)
	return ok && (before == "" || strings.ContainsAny(before[len(before)-1:], "-._/"))
}

// listed limits the number of models in an error.
const listed = 40

// list names the models of a repository.
func list(keys []string) string {
	var names []string
	for _, key := range keys[:min(len(keys), listed)] {
		names = append(names, path.Base(key)+".gguf")
	}
	return strings.Join(names, ", ")
}

// checkParts rejects a model of which parts are missing.
func checkParts(m *source.Model) error {
	for i, f := range m.Files {
		single := len(m.Files) == 1 && f.Name == m.Name+".gguf"
		if want := fmt.Sprintf("%s-%05d-of-%05d.gguf", m.Name, i+1, len(m.Files)); !single && f.Name != want {
			return source.Refuse("the repository has the file %s, expected is %s: parts are missing", f.Name, want)
		}
	}
	return nil
}
