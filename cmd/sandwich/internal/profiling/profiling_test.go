package profiling

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHandler checks which paths and names of hosts are served.
func TestHandler(t *testing.T) {
	h := handler()
	for _, c := range []struct {
		host, path string
		want       int
	}{
		{"127.0.0.1:6060", "/debug/pprof/", http.StatusOK},
		{"localhost:6060", "/debug/pprof/goroutine", http.StatusOK},
		{"[::1]:6060", "/debug/pprof/cmdline", http.StatusOK},
		{"127.0.0.1", "/", http.StatusNotFound},
		{"evil.example:6060", "/debug/pprof/", http.StatusMisdirectedRequest},
		{"192.0.2.1", "/debug/pprof/", http.StatusMisdirectedRequest},
		{"", "/debug/pprof/", http.StatusMisdirectedRequest},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s%s: status %d, want %d", c.host, c.path, w.Code, c.want)
		}
	}
}
