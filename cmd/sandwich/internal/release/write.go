package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/release/archive"
	"sandwich/cmd/sandwich/internal/release/image"
	"sandwich/cmd/sandwich/internal/release/install"
	"sandwich/cmd/sandwich/internal/release/sbom"
)

// write writes the release into the output folder, which it replaces.
func (b *builder) write(ctx context.Context, p *parts) error {
	if err := b.clear(); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(b.source, "LICENSE"))
	if err != nil {
		return err
	}
	var programs []image.Program
	for _, arch := range b.archs {
		name := fmt.Sprintf("sandwich-%s-linux-%s", b.version, arch)
		bom, err := b.document(p.binaries[arch])
		if err != nil {
			return err
		}
		files, err := install.Files(install.Parts{Source: b.source, Binary: p.binaries[arch], SBOM: bom, Pages: p.pages,
			Completions: p.completions})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(b.out, name+".cdx.json"), bom, 0o644); err != nil {
			return err
		}
		if err := b.tarball(name, files); err != nil {
			return err
		}
		if !b.noDeb {
			if err := b.deb(ctx, arch, files); err != nil {
				return err
			}
		}
		program := image.Program{Arch: arch, Binary: p.binaries[arch], License: license, Version: b.version,
			Commit: b.commit, When: b.when}
		err = writeFile(filepath.Join(b.out, fmt.Sprintf("sandwich-%s-image-%s.tar", b.version, arch)),
			func(w io.Writer) error { return image.WriteArchive(ctx, w, program) })
		if err != nil {
			return err
		}
		programs = append(programs, program)
	}
	if err := b.checksums(); err != nil {
		return err
	}
	return image.WriteLayout(ctx, filepath.Join(b.out, "image"), programs)
}

// clear removes an earlier release. It refuses a folder with other files.
func (b *builder) clear() error {
	old, err := os.ReadDir(b.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range old {
		if n := e.Name(); !strings.HasPrefix(n, "sandwich") && n != "image" && n != sumsFile {
			return fmt.Errorf("%s has %s, which is not of a release; give another folder", b.out, n)
		}
	}
	if err := os.RemoveAll(b.out); err != nil {
		return err
	}
	return os.MkdirAll(b.out, 0o755)
}

// document returns the bill of materials of a program.
func (b *builder) document(binary []byte) ([]byte, error) {
	i, err := b.info(binary)
	if err != nil {
		return nil, err
	}
	return sbom.Document(sbom.Program{Name: "sandwich", Version: b.version, SHA256: sum(binary), When: b.when, Info: i})
}

func (b *builder) tarball(name string, files []archive.File) error {
	files = slices.Clone(files)
	for i := range files {
		files[i].Name = path.Join(name, files[i].Name)
	}
	return writeFile(filepath.Join(b.out, name+".tar.gz"), func(w io.Writer) error {
		return archive.Gzip(w, b.when, files)
	})
}

const sumsFile = "SHA256SUMS"

// checksums writes the checksums of the files of the release, as sha256sum -c reads them.
func (b *builder) checksums() error {
	names, err := os.ReadDir(b.out)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, n := range names {
		data, err := os.ReadFile(filepath.Join(b.out, n.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum(data), n.Name())
	}
	fmt.Print(text.String())
	return os.WriteFile(filepath.Join(b.out, sumsFile), text.Bytes(), 0o644)
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
