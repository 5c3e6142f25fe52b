// Package install lists the files that a release installs, for tarballs and Debian packages.
package install

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sandwich/cmd/sandwich/internal/release/archive"
)

// Parts are the built parts of a release for one architecture.
type Parts struct {
	Source      string // root of the source tree
	Binary      []byte
	SBOM        []byte
	Pages       map[string][]byte // manual pages by file name
	Completions map[string][]byte // scripts by shell: bash, zsh, fish
}

// documents are the files of the source tree that are installed next to README.md, as patterns.
var documents = []string{"README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "docs/*.svg", "docs/ops/*"}

// packagingFiles are the installed files of the folder packaging.
var packagingFiles = []struct{ from, to string }{
	{"sandwich.service", "lib/systemd/system/sandwich.service"},
	{"sandwich.sysusers", "lib/sysusers.d/sandwich.conf"},
	{"config.yaml", "etc/sandwich/config.yaml"},
}

// completionPaths has the path of the completion script of each shell.
var completionPaths = map[string]string{
	"bash": "share/bash-completion/completions/sandwich",
	"zsh":  "share/zsh/vendor-completions/_sandwich",
	"fish": "share/fish/vendor_completions.d/sandwich.fish",
}

// DocFolder is the folder of the installed documents.
const DocFolder = "share/doc/sandwich"

// Files returns the files of a release below its prefix. All but etc belong below /usr.
func Files(p Parts) ([]archive.File, error) {
	files := []archive.File{{Name: "bin/sandwich", Mode: 0o755, Data: p.Binary}}
	add := func(name string, data []byte) {
		files = append(files, archive.File{Name: name, Mode: 0o644, Data: data})
	}
	add(DocFolder+"/sbom.cdx.json", p.SBOM)
	for _, pattern := range documents {
		paths, err := filepath.Glob(filepath.Join(p.Source, pattern))
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 && !strings.Contains(pattern, "*") {
			return nil, fmt.Errorf("%s has no %s; run in the root of the source tree", p.Source, pattern)
		}
		for _, from := range paths {
			rel, err := filepath.Rel(p.Source, from)
			if err != nil {
				return nil, err
			}
			data, err := os.ReadFile(from)
			if err != nil {
				return nil, err
			}
			add(path.Join(DocFolder, filepath.ToSlash(rel)), data)
		}
	}
	for _, f := range packagingFiles {
		data, err := os.ReadFile(filepath.Join(p.Source, "packaging", f.from))
		if err != nil {
			return nil, err
		}
		add(f.to, data)
	}
	for name, data := range p.Pages {
		packed, err := compress(data)
		if err != nil {
			return nil, err
		}
		add("share/man/man1/"+name+".gz", packed)
	}
	for shell, data := range p.Completions {
		add(completionPaths[shell], data)
	}
	return files, nil
}

// compress compresses a manual page, as distributions do.
func compress(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
