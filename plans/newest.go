package plans

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Suffix ends the name of every bundle folder.
const Suffix = ".plan"

// maxCandidates bounds how many bundles of one folder are looked at.
const maxCandidates = 4096

// FindNewest returns the newest bundle in dir that was made for a host with this fingerprint and a
// model with this digest, and its path. Bundles that are damaged, or for others, are passed over.
// The age is that of the evidence; ties go to the name that sorts last. The error is fs.ErrNotExist
// when there is none.
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
