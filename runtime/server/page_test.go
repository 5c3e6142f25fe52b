package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandwich/runtime/server/status"
	"sandwich/topotree"
)

// TestPageAtRoot checks which requests get the page and which a line of text.
func TestPageAtRoot(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct {
		method, path, accept string
		off, html            bool
	}{
		{method: "GET", path: "/", accept: browser, html: true},
		{method: "GET", path: "/?x=1", accept: browser, html: true},
		{method: "GET", path: "/", accept: "*/*"},
		{method: "GET", path: "/"},
		{method: "HEAD", path: "/", accept: browser},
		{method: "GET", path: "/v1/", accept: browser}, // the references of the page are relative
		{method: "GET", path: "/", accept: browser, off: true},
	} {
		s := New(nil, Options{NoPage: c.off, APIKeys: []string{"secret"}}) // open, also while the model loads
		r := httptest.NewRequest(c.method, c.path, nil)
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		html := strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")
		if w.Code != http.StatusOK || html != c.html || html != strings.Contains(w.Body.String(), "<main") {
			t.Errorf("%+v: status %d, type %s", c, w.Code, w.Header().Get("Content-Type"))
		}
		if !html && strings.Count(w.Body.String(), "\n") != 1 {
			t.Errorf("%+v: %q is not one line", c, w.Body)
		}
		if varies := w.Header().Get("Vary") == "Accept"; varies == c.off {
			t.Errorf("%+v: Vary is %q", c, w.Header().Get("Vary"))
		}
	}
}

// TestPageFiles checks that the files of the page need no key, and that NoPage removes them.
func TestPageFiles(t *testing.T) {
	for _, off := range []bool{false, true} {
		s := New(nil, Options{NoPage: off})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/page/app.js", nil))
		want := http.StatusOK
		if off {
			want = http.StatusNotFound
		}
		if w.Code != want {
			t.Errorf("without the page %v: status %d, want %d", off, w.Code, want)
		}
		w = httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", "/page/app.js", strings.NewReader("{}")))
		if w.Code == http.StatusOK {
			t.Errorf("without the page %v: POST has status %d", off, w.Code)
		}
	}
}

// described is a generator that reports a status.
type described struct {
	fake
	plan *status.Plan
}

func (d *described) Status() status.Live {
	return status.Live{Active: topotree.NewCPUSet(0, 1, 4), Tokens: status.Tokens{Generated: 7}}
}

func (d *described) Plan() *status.Plan { return d.plan }

// TestStatus checks that the status follows the rules of /metrics for keys, and is not logged each
// second.
func TestStatus(t *testing.T) {
	plan := &status.Plan{Model: "m", Decode: status.Phase{PUs: topotree.NewCPUSet(0)}}
	for _, c := range []struct {
		name   string
		server *Server
		key    string
		path   string
		status int
		want   string
	}{
		{"status", New(&described{}, Options{}), "", "/v1/sandwich/status", 200, `"active_pus":"0-1,4"`},
		{"status without /v1", New(&described{}, Options{}), "", "/sandwich/status", 200, `"generated":7`},
		{"plan", New(&described{plan: plan}, Options{}), "", "/v1/sandwich/plan", 200, `"decode":{"pus":"0"`},
		{"unknown plan", New(&described{}, Options{}), "", "/v1/sandwich/plan", 404, `"not_supported"`},
		{"generator without status", New(&fake{}, Options{}), "", "/v1/sandwich/status", 404, `"not_supported"`},
		{"key", New(&described{}, Options{APIKeys: []string{"k"}}), "k", "/v1/sandwich/status", 200, `"queue"`},
		{"no key", New(&described{}, Options{APIKeys: []string{"k"}}), "", "/v1/sandwich/status", 401, "key"},
		{"open metrics", New(&described{}, Options{APIKeys: []string{"k"}, OpenMetrics: true}), "",
			"/v1/sandwich/status", 200, `"queue"`},
		{"loading", New(nil, Options{}), "", "/v1/sandwich/status", 503, `"loading"`},
	} {
		r := httptest.NewRequest("GET", c.path, nil)
		if c.key != "" {
			r.Header.Set("Authorization", "Bearer "+c.key)
		}
		w := httptest.NewRecorder()
		c.server.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: status %d, want %d: %s has no %s", c.name, w.Code, c.status, w.Body, c.want)
		}
	}
	var lines strings.Builder
	s := New(&described{}, Options{Log: slog.New(slog.NewTextHandler(&lines, nil))})
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/sandwich/status", nil))
	if lines.Len() > 0 {
		t.Errorf("the log has %s", &lines)
	}
}
