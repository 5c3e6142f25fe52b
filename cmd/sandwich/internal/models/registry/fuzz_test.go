package registry

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"sandwich/cmd/sandwich/internal/models/ref"
)

// FuzzManifest checks that models of any manifest have valid names, sizes, checksums and addresses
// on the registry.
func FuzzManifest(f *testing.F) {
	f.Add(`{"layers":[{"mediaType":"application/vnd.docker.ai.gguf.v3","digest":"sha256:` + strings.Repeat("a", 64) +
		`","size":3}]}`)
	f.Add(`{"layers":[{"mediaType":"application/vnd.cncf.model.weight.v1.raw","digest":"sha256:x","size":-1,` +
		`"annotations":{"org.cncf.model.filepath":"../x.gguf"}}]}`)
	address := func(d digest.Digest) string { return "https://registry.example/blobs/" + d.String() }
	r, err := ref.Parse("registry.example/ai/tales")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m document
		if json.Unmarshal([]byte(text), &m) != nil {
			return
		}
		model, err := parse(m, r, address)
		if err != nil || model.Check() != nil {
			return
		}
		for _, file := range model.Files {
			if ref.CheckName(file.Name) != nil || file.Size < 0 || len(file.SHA256) != 64 ||
				!strings.HasPrefix(file.URL, "https://registry.example/blobs/sha256:") {
				t.Errorf("%s: %+v", text, file)
			}
		}
	})
}
