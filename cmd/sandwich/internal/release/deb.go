package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sandwich/cmd/sandwich/internal/release/archive"
	"sandwich/cmd/sandwich/internal/release/install"
)

// deb writes the Debian package of an architecture by nfpm, whose module is in packaging.
func (b *builder) deb(ctx context.Context, arch string, files []archive.File) error {
	nfpm := filepath.Join(b.work, "nfpm")
	packaging := filepath.Join(b.source, "packaging")
	if _, err := os.Stat(nfpm); err != nil {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", nfpm, "github.com/goreleaser/nfpm/v2/cmd/nfpm")
		cmd.Dir, cmd.Stderr = packaging, os.Stderr
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building nfpm: %w; -no-deb leaves out the Debian packages", err)
		}
	}
	stage := filepath.Join(b.work, "stage-"+arch)
	if err := b.stage(stage, files); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, nfpm, "package", "-f", "nfpm.yaml", "-p", "deb", "-t",
		filepath.Join(b.out, fmt.Sprintf("sandwich_%s_%s.deb", b.version, arch)))
	cmd.Dir = stage
	cmd.Env = append(os.Environ(), "SANDWICH_VERSION="+b.version, "SANDWICH_ARCH="+arch,
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.when.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm: %w: %s", err, out)
	}
	return nil
}

// stage writes the files of a package as they are installed, and the inputs of nfpm. nfpm copies
// modes and times of files and folders, which must not depend on the umask.
func (b *builder) stage(dir string, files []archive.File) error {
	for _, f := range files {
		name := f.Name
		if !strings.HasPrefix(name, "etc/") {
			name = "usr/" + name
		}
		if name == "usr/"+install.DocFolder+"/LICENSE" {
			name = "usr/" + install.DocFolder + "/copyright"
		}
		if err := b.put(filepath.Join(dir, name), f.Data, os.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	for _, from := range []string{"nfpm.yaml", "scripts/postinst", "scripts/prerm", "scripts/postrm"} {
		data, err := os.ReadFile(filepath.Join(b.source, "packaging", from))
		if err != nil {
			return err
		}
		if err := b.put(filepath.Join(dir, filepath.Base(from)), data, 0o755); err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return errors.Join(os.Chmod(path, 0o755), os.Chtimes(path, b.when, b.when))
	})
}

// put writes a file with the time of the release, independent of the umask.
func (b *builder) put(name string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name, data, mode); err != nil {
		return err
	}
	if err := os.Chmod(name, mode); err != nil {
		return err
	}
	return os.Chtimes(name, b.when, b.when)
}
