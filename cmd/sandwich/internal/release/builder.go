package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// builder builds the parts of a release with the go command.
type builder struct {
	source, out     string // absolute
	version, commit string
	archs           []string
	when            time.Time
	noDeb           bool
	work            string // temporary folder
	// info reads the build information of a program.
	info func(binary []byte) (*buildinfo.BuildInfo, error)
}

// parts are the built parts that do not depend on the format of a package.
type parts struct {
	binaries    map[string][]byte // by architecture
	pages       map[string][]byte // manual pages by file name
	completions map[string][]byte // by shell
}

// release builds the programs and writes all files of the release.
func (b *builder) release(ctx context.Context) (err error) {
	if b.work, err = os.MkdirTemp("", "sandwich-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	p := &parts{binaries: map[string][]byte{}}
	for _, arch := range b.archs {
		fmt.Println("building for", arch)
		if p.binaries[arch], err = b.build(ctx, arch); err != nil {
			return err
		}
	}
	if err := b.describe(ctx, p); err != nil {
		return err
	}
	return b.write(ctx, p)
}

// build builds the static program for an architecture.
func (b *builder) build(ctx context.Context, arch string) ([]byte, error) {
	path := filepath.Join(b.work, "sandwich-"+arch)
	module, err := modulePath(b.source)
	if err != nil {
		return nil, err
	}
	stamp := module + "/cmd/sandwich/internal/build."
	ldflags := fmt.Sprintf("-s -w -buildid= -X %sversion=%s -X %scommit=%s", stamp, b.version, stamp, b.commit)
	// -buildvcs=false: a checkout and an unpacked archive of the same files give the same program.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", path,
		"./cmd/sandwich")
	cmd.Dir, cmd.Stderr = b.source, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=",
		"GOAMD64=v1", "GOARM64=v8.0")
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go build for %s: %w", arch, err)
	}
	return os.ReadFile(path)
}

// describe makes the manual pages and completion scripts with the program for this machine, which
// it builds if it is not of the release.
func (b *builder) describe(ctx context.Context, p *parts) error {
	program := filepath.Join(b.work, "sandwich-"+runtime.GOARCH)
	if _, ok := p.binaries[runtime.GOARCH]; !ok {
		if _, err := b.build(ctx, runtime.GOARCH); err != nil {
			return err
		}
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Stderr = os.Stderr
		cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.when.Unix()))
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("sandwich %s: %w", args[0], err)
		}
		return out, err
	}
	p.pages, p.completions = map[string][]byte{}, map[string][]byte{}
	pages := filepath.Join(b.work, "man1")
	if _, err := run("man", pages); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(pages, "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if p.pages[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			return err
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if p.completions[shell], err = run("completion", shell); err != nil {
			return err
		}
	}
	return nil
}

// readInfo returns the build information of a program.
func readInfo(binary []byte) (*buildinfo.BuildInfo, error) {
	i, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("the program has no build information: %w", err)
	}
	return i, nil
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// modulePath returns the path of the module in a folder.
func modulePath(dir string) (string, error) {
	cmd := exec.Command("go", "list", "-m")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	return string(bytes.TrimSpace(out)), err
}
