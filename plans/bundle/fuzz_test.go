package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/evidence"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/migrate"
	"sandwich/plans/summary"
	"sandwich/profiles"
)

func FuzzReadBundle(f *testing.F) {
	dir := bundletest.Write(f, bundletest.New(f))
	var files [4][]byte
	for i, name := range []string{bundle.PlanFile, bundle.HostFile, bundle.EvidenceFile, bundle.ManifestName} {
		files[i], _ = os.ReadFile(filepath.Join(dir, name))
	}
	f.Add(files[0], files[1], files[2], files[3], true)
	for i, name := range []string{bundle.PlanFile, bundle.HostFile, bundle.EvidenceFile, bundle.ManifestName} {
		files[i], _ = os.ReadFile(filepath.Join("..", "testdata", "v1", "two-ranks.plan", name))
	}
	f.Add(files[0], files[1], files[2], files[3], true)
	f.Add([]byte("version: 1\n"), []byte("a: &a [*a]"), []byte("{"), []byte(""), true)
	f.Fuzz(func(t *testing.T, plan, host, evidence, manifest []byte, reseal bool) {
		files := map[string][]byte{bundle.PlanFile: plan, bundle.HostFile: host, bundle.EvidenceFile: evidence,
			bundle.ManifestName: manifest}
		if reseal { // so that mutations get past the hashes
			m := bundle.Manifest{Format: bundle.ManifestFormat, Version: plans.Version}
			for v := bundle.FirstVersion; v < plans.Version; v++ {
				if bytes.HasPrefix(plan, fmt.Appendf(nil, "version: %d\n", v)) {
					m.Version = v
				}
			}
			for _, name := range []string{bundle.PlanFile, bundle.HostFile, bundle.EvidenceFile} {
				m.Files = append(m.Files, bundle.ManifestFile{Name: name, SHA256: profiles.DigestBytes(files[name]),
					Content: contentOf(name, files[name], m.Version)})
			}
			files[bundle.ManifestName], _ = profiles.EncodeYAML(m)
		}
		b, err := bundle.Decode(files)
		if err != nil {
			if !errors.Is(err, plans.ErrDamaged) || len(err.Error()) > 2000 {
				t.Fatalf("refused with %d bytes: %.300v", len(err.Error()), err)
			}
			return
		}
		again, err := bundle.Render(b)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		c, err := bundle.Decode(again)
		if err != nil || c.Plan.Digest() != b.Plan.Digest() {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		check.Verify(b, &b.Host, &b.Plan.Model)
		summary.Of(b)
	})
}

// contentOf is the content hash that a manifest would hold, "" for what cannot be read.
func contentOf(name string, data []byte, version int) string {
	var v any
	older := migrate.ReaderOf(version)
	switch {
	case name == bundle.PlanFile && older != nil:
		v = older.Plan
	case name == bundle.EvidenceFile && older != nil:
		v = older.Evidence
	case name == bundle.PlanFile:
		v = new(plans.Plan)
	case name == bundle.HostFile:
		v = new(profiles.Profile)
	default:
		v = new(evidence.Evidence)
	}
	if profiles.DecodeYAML(data, v) != nil {
		return ""
	}
	b, err := profiles.CanonicalJSON(v)
	if err != nil {
		return ""
	}
	return profiles.DigestBytes(b)
}
