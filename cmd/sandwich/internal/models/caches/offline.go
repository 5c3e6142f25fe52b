package caches

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
	"sandwich/profiles/retention"
)

// Limits of the files that describe models.
const (
	maxRevision = 1 << 10
	maxManifest = 1 << 20
)

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Snapshot returns the GGUF files of the revision main of a repository in the cache of the Hugging
// Face libraries, as they were when that was downloaded last. Their names are paths in the
// repository. Files without a known checksum are left out. It sends no request.
func Snapshot(r ref.Ref) (files []source.File, revision string) {
	if r.Kind != ref.Hub {
		return nil, ""
	}
	for _, c := range huggingFace() {
		dir := filepath.Join(c.path, repository(r))
		text, err := retention.ReadRegular(filepath.Join(dir, "refs", "main"), maxRevision)
		revision = strings.TrimSpace(string(text))
		if err != nil || !commit.MatchString(revision) {
			continue
		}
		root := filepath.Join(dir, "snapshots", revision)
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSymlink == 0 || !strings.HasSuffix(path, ".gguf") {
				return nil // a folder that cannot be read has no files
			}
			to, err := os.Readlink(path)
			if sum := filepath.Base(to); err == nil && source.IsSHA256(sum) {
				if st, err := os.Stat(path); err == nil {
					name, _ := filepath.Rel(root, path)
					files = append(files, source.File{Name: filepath.ToSlash(name), Size: st.Size(), SHA256: sum})
				}
			}
			return nil
		})
		return files, revision
	}
	return nil, ""
}

// Manifest returns the manifest of a model of a registry in the cache of ollama, nil if there is
// none. It sends no request.
func Manifest(r ref.Ref) []byte {
	if r.Kind != ref.Registry || strings.Contains(r.Tag, ":") {
		return nil
	}
	for _, c := range ollama() {
		path := filepath.Join(c.path, "manifests", r.Host, filepath.FromSlash(r.Repo), r.Tag)
		if text, err := retention.ReadRegular(path, maxManifest); err == nil {
			return text
		}
	}
	return nil
}

// repository returns the name of the folder of a repository of the hub.
func repository(r ref.Ref) string { return "models--" + strings.ReplaceAll(r.Repo, "/", "--") }
