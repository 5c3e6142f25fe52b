// Package caches finds files that other programs downloaded. It only reads their folders.
package caches

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"sandwich/cmd/sandwich/internal/models/ref"
)

// File is a file in the cache of another program.
type File struct {
	Path  string // absolute
	Owner string // the program
}

// folder is where a program keeps files.
type folder struct{ owner, path string }

// Find returns a file with a checksum in hexadecimal digits and a size in bytes, which it reads to
// verify the checksum. ok is false if there is none.
func Find(ctx context.Context, r ref.Ref, sum string, size int64) (f File, ok bool) {
	if sum == "" || size < 0 {
		return f, false
	}
	var list []File
	for _, c := range ollama() {
		list = append(list, File{filepath.Join(c.path, "blobs", "sha256-"+sum), c.owner})
	}
	if r.Kind == ref.Hub {
		for _, c := range huggingFace() {
			list = append(list, File{filepath.Join(c.path, repository(r), "blobs", sum), c.owner})
		}
	}
	for _, f := range list {
		if st, err := os.Stat(f.Path); err == nil && st.Mode().IsRegular() && st.Size() == size && has(ctx, f.Path,
			sum) {
			return f, true
		}
	}
	return File{}, false
}

// has reports whether a file has a checksum.
func has(ctx context.Context, path, want string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	buffer := make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := f.Read(buffer)
		sum.Write(buffer[:n])
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)) == want
		}
		if err != nil {
			return false
		}
	}
	return false
}

// ollama returns the folders of ollama: that of the environment, else those of the user and of the
// system's service.
func ollama() (list []folder) {
	if dir := os.Getenv("OLLAMA_MODELS"); dir != "" {
		return absolute("ollama", dir)
	}
	if home, err := os.UserHomeDir(); err == nil {
		list = absolute("ollama", filepath.Join(home, ".ollama", "models"))
	}
	return append(list, folder{"ollama", "/usr/share/ollama/.ollama/models"})
}

// huggingFace returns the folder of the Hugging Face libraries.
func huggingFace() []folder {
	const owner = "Hugging Face"
	if dir := os.Getenv("HF_HUB_CACHE"); dir != "" {
		return absolute(owner, dir)
	}
	if dir := os.Getenv("HF_HOME"); dir != "" {
		return absolute(owner, filepath.Join(dir, "hub"))
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return absolute(owner, filepath.Join(dir, "huggingface", "hub"))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return absolute(owner, filepath.Join(home, ".cache", "huggingface", "hub"))
}

// absolute returns a folder with an absolute path, none if it cannot be determined.
func absolute(owner, dir string) []folder {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	return []folder{{owner, path}}
}
