// Package bundle reads and writes plan bundles: a plan with the profile of its host and the
// evidence for it, as a folder or a packed archive, with a manifest of hashes and signatures.
package bundle

import (
	"errors"
	"fmt"
	"io/fs"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/plans/migrate"
	"sandwich/profiles"
)

// Bundle is a plan with the profile of its host and the evidence for it: the folder NAME.plan.
type Bundle struct {
	Plan     plans.Plan
	Host     profiles.Profile
	Evidence evidence.Evidence
	Manifest Manifest // of the files that were read; Write makes a new one

	digest     string // of the plan that was read; "" if none was
	manifest   []byte // the bytes that were read, which the signatures cover
	signatures signatures
}

// Read reads a bundle, a folder or an archive, and checks everything that needs neither host nor
// model: hashes, limits, and that its parts belong together. It fails with fs.ErrNotExist if path
// does not exist, and with ErrDamaged if the bundle is invalid.
func Read(path string) (*Bundle, error) {
	_, b, err := readFiles(path)
	return b, err
}

// decode reads and checks the files of a bundle.
func decode(open opener) (*Bundle, error) {
	m, raw, err := readManifest(open)
	if err != nil {
		return nil, err
	}
	if len(m.Files) != 3 {
		return nil, damaged("%s lists %d files, a bundle has 3", manifestFile, len(m.Files))
	}
	b := &Bundle{Manifest: *m, manifest: raw}
	parts := b.parts()
	older := migrate.ReaderOf(m.Version)
	if older != nil {
		parts[0].value, parts[2].value = older.Plan, older.Evidence
	}
	var data [3][]byte
	for i, part := range parts {
		if data[i], err = m.bytes(open, part.name); err != nil {
			return nil, err
		}
	}
	for i, part := range parts { // decode after the hashes of all files have been checked
		if err := profiles.DecodeYAML(data[i], part.value); err != nil {
			return nil, damaged("%s: %v", part.name, err)
		}
	}
	if older != nil {
		if b.Plan, b.Evidence, err = older.Migrate(); err != nil {
			return nil, damaged("%s: %v", planFile, err)
		}
	}
	if err := b.validate(); err != nil {
		return nil, err
	}
	for _, part := range parts {
		if err := m.checkContent(part.name, part.value); err != nil {
			return nil, err
		}
	}
	b.digest = b.Plan.Digest()
	b.signatures, err = readSignatures(open)
	return b, err
}

// Digest returns the digest of the plan as it was read, or of the present plan if the bundle was
// not read. It identifies the plan also after its PUs were renumbered or flags changed it.
func (b *Bundle) Digest() string {
	if b.digest == "" {
		return b.Plan.Digest()
	}
	return b.digest
}

// part is a file of a bundle and the value that it is decoded into.
type part struct {
	name  string
	value any
}

// parts returns the files that the manifest lists and the values that they hold.
func (b *Bundle) parts() [3]part {
	return [3]part{{planFile, &b.Plan}, {hostFile, &b.Host}, {evidenceFile, &b.Evidence}}
}

// validate checks the parts of a bundle and that they belong together.
func (b *Bundle) validate() error {
	if err := b.Plan.Validate(); err != nil {
		return damaged("%s: %v", planFile, err)
	}
	if err := b.Host.Check(); err != nil {
		return damaged("%s: %v", hostFile, err)
	}
	if err := b.Evidence.Check(); err != nil {
		return damaged("%s: %v", evidenceFile, err)
	}
	if got := b.Host.Fingerprint(); got != b.Plan.Fingerprint {
		return damaged("%s is for the host %.80s and %s describes %s", planFile, b.Plan.Fingerprint, hostFile, got)
	}
	return nil
}

// Write writes the bundle to path, as an archive if the name ends in ArchiveSuffix, else as a
// folder. The path must not exist or must hold a bundle, which is replaced. Write syncs a temporary
// copy in the same folder and renames it last, so that a full disk or a crash keeps the old bundle.
// Equal bundles give equal bytes. Signatures are dropped, since they cover other bytes.
func (b *Bundle) Write(path string) error {
	if err := b.validate(); err != nil {
		return fmt.Errorf("write plan %s: %w", path, err)
	}
	f, err := b.render()
	if err == nil {
		err = f.write(path)
	}
	if err != nil {
		return fmt.Errorf("write plan %s: %w", path, err)
	}
	return nil
}

// render returns the files of the bundle, the manifest last.
func (b *Bundle) render() (files, error) {
	m := Manifest{Format: manifestFormat, Version: plans.Version}
	var out files
	for _, part := range b.parts() {
		e, data, err := entry(part.name, part.value)
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, e)
		out = append(out, file{part.name, data})
	}
	data, err := profiles.EncodeYAML(m)
	if err != nil {
		return nil, err
	}
	return append(out, file{manifestFile, data}), nil
}

// readFiles reads and checks the bundle at path and returns its files as well.
func readFiles(path string) (files, *Bundle, error) {
	open, err := openBundle(path)
	if p := (*fs.PathError)(nil); errors.As(err, &p) && p.Path == path {
		return nil, nil, &fs.PathError{Op: "read plan", Path: path, Err: p.Err}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read plan %s: %w", path, err)
	}
	var out files
	b, err := decode(func(name string, limit int64) ([]byte, error) {
		data, err := open(name, limit)
		if err == nil {
			out = append(out, file{name, data})
		}
		return data, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read plan %s: %w", path, err)
	}
	return out, b, nil
}

// damaged returns an ErrDamaged with a message.
func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %s", plans.ErrDamaged, fmt.Sprintf(format, a...))
}
