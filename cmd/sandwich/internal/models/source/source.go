// Package source describes models on servers, and reads the documents that describe them there.
package source

import (
	"fmt"
	"net/url"
	"strings"

	"sandwich/cmd/sandwich/internal/models/ref"
)

// Model is a model on a server.
type Model struct {
	Name     string // default name for the model
	Revision string // of the repository, "" if the server has none
	Files    []File // the GGUF file, or its parts in their order
}

// File is a file of a model.
type File struct {
	Name   string // one component of a path, which ends with .gguf
	URL    string
	Size   int64  // in bytes; negative: unknown
	SHA256 string // in hexadecimal digits; "": unknown
}

// Bytes returns the sum of the known sizes.
func (m *Model) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += max(f.Size, 0)
	}
	return sum
}

// RefusedError reports a model, or a document of a server, that cannot be used.
type RefusedError struct{ reason string }

func (e *RefusedError) Error() string { return e.reason }

// Refuse returns a RefusedError.
func Refuse(format string, a ...any) error { return &RefusedError{fmt.Sprintf(format, a...)} }

// maxFiles limits the number of parts of a model.
const maxFiles = 1000

// Check rejects a model without files, with two equal ones, or with invalid checksums.
func (m *Model) Check() error {
	if len(m.Files) == 0 || len(m.Files) > maxFiles {
		return Refuse("the model has %d files; 1 to %d are supported", len(m.Files), maxFiles)
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if seen[f.Name] {
			return Refuse("the model has two files of the name %s", f.Name)
		}
		if f.SHA256 != "" && seen[f.SHA256] {
			return Refuse("the model has two equal files; one is %s", f.Name)
		}
		seen[f.Name], seen[f.SHA256] = true, true
		if f.SHA256 != "" && !IsSHA256(f.SHA256) {
			return Refuse("the server states %.80q as the checksum of %s, which is not a sha256", f.SHA256, f.Name)
		}
	}
	return nil
}

// IsSHA256 reports whether a text is a SHA-256 in lower-case hexadecimal digits.
func IsSHA256(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// Web returns the model at an address, whose checksum may be "".
func Web(u *url.URL, sum string) (*Model, error) {
	name, err := ref.FileName(u.Path)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(name, ".gguf") {
		name += ".gguf"
	}
	return &Model{Name: ref.Stem(name), Files: []File{{Name: name, URL: u.String(), Size: -1, SHA256: sum}}}, nil
}
