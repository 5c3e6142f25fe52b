// Package cachetest writes models to folders as the Hugging Face libraries and ollama do, for
// tests.
package cachetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"sandwich/cmd/sandwich/internal/models/modelserver"
)

// Write writes a file with its folders.
func Write(path string, data []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
}

// Hub adds files, by path, to the snapshot of revision main of a repository in a cache of Hugging
// Face, and returns the folder of the repository.
func Hub(cache, repository string, files map[string][]byte) (folder string, err error) {
	folder = filepath.Join(cache, "models--"+strings.ReplaceAll(repository, "/", "--"))
	err = Write(filepath.Join(folder, "refs", "main"), []byte(modelserver.Revision))
	for name, data := range files {
		sum := sha256.Sum256(data)
		blob := filepath.Join("blobs", hex.EncodeToString(sum[:]))
		link := filepath.Join(folder, "snapshots", modelserver.Revision, name)
		up := strings.Repeat("../", 2+strings.Count(name, "/"))
		err = errors.Join(err, Write(filepath.Join(folder, blob), data), os.MkdirAll(filepath.Dir(link), 0o700),
			os.Symlink(up+blob, link))
	}
	return folder, err
}

// Ollama adds a model to a folder of ollama. The name is HOST/USER/NAME/TAG.
func Ollama(dir, name string, data []byte) error {
	d := digest.FromBytes(data)
	text, err := json.Marshal(v1.Manifest{Layers: []v1.Descriptor{
		{MediaType: "application/vnd.ollama.image.model", Digest: d, Size: int64(len(data))}}})
	return errors.Join(err, Write(filepath.Join(dir, "manifests", filepath.FromSlash(name)), text),
		Write(filepath.Join(dir, "blobs", "sha256-"+d.Encoded()), data))
}
