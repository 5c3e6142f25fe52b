package hub

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/models/ref"
)

// recorded answers every request with one document.
type recorded string

func (d recorded) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	fmt.Fprint(w, string(d))
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// FuzzRepository checks that models of any description of a repository have valid names, and
// addresses on the hub.
func FuzzRepository(f *testing.F) {
	f.Add(`{"sha":"`+sha+`","siblings":[{"rfilename":"m.gguf","lfs":{"sha256":"aa","size":3}}]}`, "")
	f.Add(`{"sha":"`+sha+`","siblings":[{"rfilename":"a/../m-Q8_0.gguf","size":-5},{"rfilename":"b.gguf"}]}`, ":Q8_0")
	endpoint := &url.URL{Scheme: "https", Host: "hub.example"}
	f.Fuzz(func(t *testing.T, document, variant string) {
		r, err := ref.Parse("hf:a/b" + variant)
		if err != nil {
			return
		}
		m, err := Find(t.Context(), recorded(document), endpoint, r)
		if err != nil || m.Check() != nil {
			return
		}
		for _, file := range m.Files {
			if ref.CheckName(file.Name) != nil || !strings.HasPrefix(file.URL, "https://hub.example/a/b/resolve/"+
				sha+"/") {
				t.Errorf("%s: %+v", document, file)
			}
		}
	})
}
