package bundle

import "errors"

// Names and versions for tests.
const (
	PlanFile       = planFile
	HostFile       = hostFile
	EvidenceFile   = evidenceFile
	ManifestName   = manifestFile
	ManifestFormat = manifestFormat
	FirstVersion   = firstVersion
)

// Decode decodes the files of a bundle by name.
func Decode(files map[string][]byte) (*Bundle, error) {
	return decode(func(name string, limit int64) ([]byte, error) {
		if int64(len(files[name])) > limit {
			return nil, errors.New("too large")
		}
		return files[name], nil
	})
}

// Render returns the files of a bundle by name.
func Render(b *Bundle) (map[string][]byte, error) {
	list, err := b.render()
	out := map[string][]byte{}
	for _, f := range list {
		out[f.name] = f.data
	}
	return out, err
}
