package bundle

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pack checks the bundle at path and returns it as an archive, for `plan push`.
func Pack(path string) ([]byte, *Bundle, error) {
	f, b, err := readFiles(path)
	if err != nil {
		return nil, nil, err
	}
	data, err := f.pack()
	if err != nil {
		return nil, nil, fmt.Errorf("pack plan %s: %w", path, err)
	}
	return data, b, nil
}

// Unpack checks a packed bundle from another machine and writes it to the path to, packed or as a
// folder according to the name. It implements `plan pull`. The function accept may be nil; its
// error rejects the bundle. An invalid bundle fails with ErrDamaged.
func Unpack(data []byte, accept func(*Bundle) error, to string) error {
	f, b, err := parse(data)
	if err == nil && accept != nil {
		err = accept(b)
	}
	if err != nil {
		return err
	}
	if err := f.write(to); err != nil {
		return fmt.Errorf("write plan %s: %w", to, err)
	}
	return nil
}

// Parse returns the bundle of an archive. An invalid one fails with ErrDamaged.
func Parse(data []byte) (*Bundle, error) {
	_, b, err := parse(data)
	return b, err
}

func parse(data []byte) (files, *Bundle, error) {
	f, err := readArchive(data)
	if err != nil {
		return nil, nil, err
	}
	b, err := decode(f.open)
	return f, b, err
}

// Copy checks the bundle at from and writes it with its signatures to the path to, packed or as a
// folder according to the name. It implements `plan pack` and `plan unpack`.
func Copy(from, to string) error {
	f, _, err := readFiles(from)
	if err != nil {
		return err
	}
	if err := f.write(to); err != nil {
		return fmt.Errorf("write plan %s: %w", to, err)
	}
	return nil
}

// Suffix is the suffix of the name of a bundle folder.
const Suffix = ".plan"

// maxCandidates is the maximum number of bundles in a folder that FindNewest reads.
const maxCandidates = 4096

// FindNewest returns the newest bundle in dir for a host fingerprint and a model digest, and its
// path. It skips damaged bundles and those for other hosts and models. The age is the creation time
// in the evidence; of equal ones the last by name is returned. The error is fs.ErrNotExist if there
// is none.
func FindNewest(dir, fingerprint, modelDigest string) (string, *Bundle, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	var best *Bundle
	var path string
	seen := 0
	for _, e := range slices.Backward(entries) {
		bundle := strings.HasSuffix(e.Name(), Suffix) || strings.HasSuffix(e.Name(), ArchiveSuffix)
		if !bundle || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if seen++; seen > maxCandidates {
			return "", nil, fmt.Errorf("%s holds more than %d plans; remove old ones or name one with --plan", dir,
				maxCandidates)
		}
		candidate := filepath.Join(dir, e.Name())
		b, err := Read(candidate)
		if err != nil || b.Plan.Fingerprint != fingerprint || b.Plan.Model.Digest() != modelDigest {
			continue
		}
		if best == nil || b.Evidence.Created > best.Evidence.Created {
			best, path = b, candidate
		}
	}
	if best == nil {
		return "", nil, fmt.Errorf("no plan in %s for this host and model: %w", dir, fs.ErrNotExist)
	}
	return path, best, nil
}
