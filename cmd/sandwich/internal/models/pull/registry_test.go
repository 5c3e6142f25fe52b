package pull

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/models/modelserver"
)

// TestTokensExpire pulls from a registry whose tokens are valid for one request, and whose blobs
// are at another host: each request gets a new token, and the other host gets none.
func TestTokensExpire(t *testing.T) {
	w := newWorld(t)
	storage := modelserver.Start()
	t.Cleanup(storage.Close)
	data := ggufOf(5000, 'a')
	w.AddArtifact("ai/tales", "1b", "application/vnd.docker.ai.gguf.v3", data)
	blob := "sha256:" + modelserver.SHA256(data)
	w.Redirect("/v2/ai/tales/blobs/"+blob, storage.URL+"/x?signature=1")
	storage.AddFile("/x", data)
	var mu sync.Mutex
	issued, valid := 0, ""
	w.Intercept(func(out http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.URL.Path == "/token":
			issued++
			valid = fmt.Sprint("token", issued)
			fmt.Fprintf(out, `{"token":%q}`, valid)
			return true
		case valid != "" && r.Header.Get("Authorization") == "Bearer "+valid:
			valid = ""
			return false
		}
		out.Header().Set("WWW-Authenticate", `Bearer realm="`+w.URL+`/token",service="x",`+
			`scope="repository:ai/tales:pull"`)
		out.WriteHeader(http.StatusUnauthorized)
		return true
	})
	o := Options{Connections: 1, Hosts: []string{storage.Host},
		Wait: func(context.Context, time.Duration) error { return nil }}
	m, got, err := w.pull(t.Context(), w.Host+"/ai/tales:1b", o)
	if err != nil || string(got) != string(data) || !m.Verified {
		t.Errorf("%+v, %v", m, err)
	}
	if issued < 3 { // for the manifest, for the first bytes of the file, and for the file
		t.Errorf("%d tokens", issued)
	}
	for _, r := range storage.Requests() {
		if r.Header.Get("Authorization") != "" || !strings.HasPrefix(r.Header.Get("Range"), "bytes=") {
			t.Errorf("the other host receives %v", r.Header)
		}
	}
}
