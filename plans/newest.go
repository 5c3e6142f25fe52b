package plans

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
