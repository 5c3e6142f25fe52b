package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/datafolder"
	"sandwich/plans/bundle"
	"sandwich/plans/hostkey"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/runtime/session"
)

// PlanPath returns the path of the plan of a model in the data folder. The name contains the
// model's name and the digest of its shape, so that different files of one name have separate
// plans.
func PlanPath(s *session.Subject) (string, error) {
	dir, err := datafolder.Path()
	if err != nil {
		return "", exit.Usage(fmt.Errorf("%w, or give the path of the plan with -o", err))
	}
	if err := retention.MakeDir(dir, 0o755); err != nil {
		return "", fmt.Errorf("the data folder cannot be created: %w; give the path of the plan with -o, or set "+
			"XDG_DATA_HOME", err)
	}
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s.Name)
	name = strings.TrimLeft(name, ".-")
	digest := strings.TrimPrefix(s.Shape.Digest(), "sha256:")
	return filepath.Join(dir, fmt.Sprintf("%.60s-%.8s%s", name, digest, bundle.Suffix)), nil
}

// checkPlanPath rejects a path that the plan cannot be written to, before the search starts.
func checkPlanPath(path string) error {
	parent, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("-o %s: %w", path, err)
	}
	if !parent.IsDir() {
		return fmt.Errorf("-o %s: %s is not a folder; give a path in a folder", path, filepath.Dir(path))
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("-o %s is a file, but a plan is a folder; give another path", path)
	}
	if _, err := os.Stat(filepath.Join(path, "MANIFEST.yaml")); err != nil {
		return fmt.Errorf("-o %s is a folder without a plan; give another path", path)
	}
	return nil
}

// fleetPath returns the path of the plan of a host and a model in the data folder, so that hosts
// that share the folder do not use the same files.
func fleetPath(host *profiles.Profile, subject *session.Subject) (string, error) {
	if _, err := PlanPath(subject); err != nil { // creates the folder
		return "", err
	}
	dir, err := datafolder.Path()
	return filepath.Join(dir, hostkey.OfHost(host, &subject.Shape).Tag()+bundle.Suffix), err
}
