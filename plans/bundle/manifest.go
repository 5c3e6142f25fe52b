package bundle

import (
	"bytes"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/profiles"
)

// Manifest lists the files of a bundle with two hashes each. The hash of the bytes detects damage.
// The hash of the content as canonical JSON identifies a bundle whatever its formatting.
type Manifest struct {
	Format  string         `yaml:"format" json:"format"` // always sandwich-plan
	Version int            `yaml:"version" json:"version"`
	Files   []ManifestFile `yaml:"files" json:"files"`
}

// ManifestFile is an entry of a Manifest.
type ManifestFile struct {
	Name    string `yaml:"name" json:"name"`
	SHA256  string `yaml:"sha256" json:"sha256"`   // of the bytes
	Content string `yaml:"content" json:"content"` // of the canonical JSON
}

// Content returns the content hash of the named file, or "" if the manifest does not list it.
func (m *Manifest) Content(name string) string {
	for _, f := range m.Files {
		if f.Name == name {
			return f.Content
		}
	}
	return ""
}

// readManifest reads and checks the manifest. A manifest that differs from what this program
// writes, byte for byte, counts as damaged: no other program writes one, and no other hash protects
// the manifest.
func readManifest(open opener) (m *Manifest, raw []byte, err error) {
	data, err := open(manifestFile, 64<<10)
	if err != nil {
		return nil, nil, damaged("%s cannot be read: %v", manifestFile, err)
	}
	m = &Manifest{}
	if err := profiles.DecodeYAML(data, m); err != nil {
		return nil, nil, damaged("%s: %v", manifestFile, err)
	}
	if m.Format != manifestFormat {
		return nil, nil, damaged("%s has the format %.40q, not %s", manifestFile, m.Format, manifestFormat)
	}
	if m.Version < firstVersion || m.Version > plans.Version {
		return nil, nil, damaged("%s has version %d; this build reads versions %d to %d; make the plan again with "+
			"`sandwich tune`", manifestFile, m.Version, firstVersion, plans.Version)
	}
	if again, err := profiles.EncodeYAML(m); err != nil || !bytes.Equal(again, data) {
		return nil, nil, damaged("%s was changed after it was written%s", manifestFile, convertedLines(data))
	}
	return m, data, nil
}

// bytes reads one file of the bundle and compares it with its hash.
func (m *Manifest) bytes(open opener, name string) ([]byte, error) {
	i := slices.IndexFunc(m.Files, func(f ManifestFile) bool { return f.Name == name })
	if i < 0 {
		return nil, damaged("%s does not list %s", manifestFile, name)
	}
	data, err := open(name, profiles.MaxYAMLBytes)
	if err != nil {
		return nil, damaged("%s cannot be read: %v", name, err)
	}
	if got := profiles.DigestBytes(data); got != m.Files[i].SHA256 {
		return nil, damaged("%s was changed after it was written (hash %s, but the manifest lists %.80s)%s", name, got,
			m.Files[i].SHA256, convertedLines(data))
	}
	return data, nil
}

// convertedLines returns the cause of a change that version control makes, or "".
func convertedLines(data []byte) string {
	if bytes.Contains(data, []byte("\r\n")) {
		return "; its line ends were converted to CRLF: in git, set the attribute -text for plans"
	}
	return ""
}

// checkContent compares the content hash of a decoded file. For a migrated profile it uses the hash
// of the version that was read.
func (m *Manifest) checkContent(name string, v any) error {
	var got string
	if host, ok := v.(*profiles.Profile); ok {
		got = host.ReadDigest()
	}
	if got == "" {
		content, err := profiles.CanonicalJSON(v)
		if err != nil {
			return damaged("%s: %v", name, err)
		}
		got = profiles.DigestBytes(content)
	}
	if want := m.Content(name); got != want {
		return damaged("%s has the content hash %s, but the manifest lists %.80s", name, got, want)
	}
	return nil
}

// entry encodes v as the named file of a bundle.
func entry(name string, v any) (ManifestFile, []byte, error) {
	data, err := profiles.EncodeYAML(v)
	if err != nil {
		return ManifestFile{}, nil, fmt.Errorf("encode %s: %w", name, err)
	}
	return ManifestFile{Name: name, SHA256: profiles.DigestBytes(data), Content: profiles.Digest(v)}, data, nil
}

const manifestFormat = "sandwich-plan"

// firstVersion is the earliest schema version that this build reads.
const firstVersion = 1
