package server

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// visit sends a request with headers to a server whose host name is localhost:8080.
func visit(s http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(chatOnce))
	r.Host = "localhost:8080"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const chatPath = "/v1/chat/completions"

// TestContentTypes checks that requests that pages may send without a preflight run nothing.
func TestContentTypes(t *testing.T) {
	f := &fake{words: []string{"x"}}
	s := New(f, Options{})
	for kind, status := range map[string]int{
		"application/json": 200, "Application/JSON; charset=utf-8": 200, "application/vnd.api+json": 200, "": 200,
		"text/plain": 415, "text/plain;charset=UTF-8": 415, "application/x-www-form-urlencoded": 415,
		"multipart/form-data; boundary=x": 415, "application/jsonx": 415, "application/json, text/plain": 415,
		"text/plain; application/json": 415, ";": 415,
	} {
		before := f.finished.Load()
		w := visit(s, "POST", chatPath, "Content-Type", kind)
		if w.Code != status || f.finished.Load()-before != map[int]int64{200: 1}[status] {
			t.Errorf("%q: status %d: %s", kind, w.Code, w.Body)
		}
		if status == 415 && !strings.Contains(w.Body.String(), "Content-Type: application/json") {
			t.Errorf("%q: no remedy in %s", kind, w.Body)
		}
	}
}

// TestHosts checks that a name rebound to a loopback address is refused.
func TestHosts(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.ParseIP("127.0.0.5"), Port: 8080}
	s := New(&fake{words: []string{"x"}}, Options{Hosts: HostsOf(loopback, []string{"Box.lan"})})
	for host, status := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "localhost.:1": 200, "127.0.0.1:99": 200, "[::1]": 200,
		"[::1]:8080":     200,
		"127.0.0.5:8080": 200, "box.lan:80": 200, "": 200,
		"evil.example": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:80": 421,
		"[::2]:8080": 421, "x@localhost": 421, "::1": 200, "[": 421, ":": 421,
	} {
		for _, path := range []string{"/v1/models", "/health", "/metrics"} {
			if w := visit(s, "GET", path, "Host", host); w.Code != status {
				t.Errorf("Host %q, %s: status %d: %s", host, path, w.Code, w.Body)
			}
		}
	}
	if w := visit(s, "GET", "/health", "Host", "evil.example"); !strings.Contains(w.Body.String(), "--allow-host") {
		t.Errorf("no remedy: %s", w.Body)
	}
	for _, c := range []struct {
		addr string
		more []string
		host string
		want int
	}{
		{"0.0.0.0", nil, "any.example", 200}, {"192.0.2.1", nil, "any.example", 200},
		{"0.0.0.0", []string{"api.example"}, "any.example", 421},
		{"0.0.0.0", []string{"api.example"}, "api.example:443", 200},
		{"::1", nil, "any.example", 421}, {"::1", []string{"*"}, "any.example", 200},
	} {
		s := New(&fake{}, Options{Hosts: HostsOf(&net.TCPAddr{IP: net.ParseIP(c.addr), Port: 1}, c.more)})
		if w := visit(s, "GET", "/health", "Host", c.host); w.Code != c.want {
			t.Errorf("on %s with %q, Host %s: status %d", c.addr, c.more, c.host, w.Code)
		}
	}
}

// TestOrigins checks that pages of other origins are refused, whatever their Content-Type, unless
// the origin is allowed.
func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		name, origin string
		origins      []string
		status       int
		shared       bool
	}{
		{"no browser", "", nil, 200, false},
		{"its own page", "http://localhost:8080", nil, 200, false},
		{"its own page behind TLS", "https://LOCALHOST:8080", nil, 200, false},
		{"a foreign page", "https://evil.example", nil, 403, false},
		{"another port", "http://localhost:3000", nil, 403, false},
		{"a file or a sandbox", "null", nil, 403, false},
		{"a named page", "https://good.example", []string{"https://good.example"}, 200, true},
		{"not the named page", "https://evil.example", []string{"https://good.example"}, 403, false},
		{"any page", "null", []string{"*"}, 200, true},
	} {
		f := &fake{words: []string{"x"}}
		w := visit(New(f, Options{Origins: c.origins}), "POST", chatPath, "Content-Type", "application/json",
			"Origin", c.origin)
		if w.Code != c.status || f.finished.Load() != map[int]int64{200: 1}[c.status] {
			t.Errorf("%s: status %d: %s", c.name, w.Code, w.Body)
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); (got != "") != c.shared || c.shared &&
			got != c.origin {
			t.Errorf("%s: Access-Control-Allow-Origin %q", c.name, got)
		}
		if got := w.Header().Get("Vary"); (got == "Origin") != (c.origins != nil) {
			t.Errorf("%s: Vary %q", c.name, got)
		}
		if c.status == 403 && !strings.Contains(w.Body.String(), "--cors") {
			t.Errorf("%s: no remedy in %s", c.name, w.Body)
		}
	}
}

// TestPreflight checks that preflights, which have no key, are answered for allowed origins only.
func TestPreflight(t *testing.T) {
	ask := func(o Options, origin string) *httptest.ResponseRecorder {
		o.APIKeys = []string{"secret"}
		return visit(New(&fake{}, o), "OPTIONS", chatPath, "Origin", origin, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,content-type,x-stainless-os")
	}
	named := Options{Origins: []string{"https://good.example"}}
	w := ask(named, "https://good.example")
	h := w.Header()
	if w.Code != 204 || h.Get("Access-Control-Allow-Origin") != "https://good.example" ||
		h.Get("Access-Control-Allow-Methods") != "POST" {
		t.Errorf("status %d, %v", w.Code, h)
	}
	for _, want := range []string{"Authorization", "Content-Type", "x-stainless-os"} {
		if !strings.Contains(h.Get("Access-Control-Allow-Headers"), want) {
			t.Errorf("%s is not allowed by %q", want, h.Get("Access-Control-Allow-Headers"))
		}
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"another page": ask(named, "https://evil.example"), "CORS off": ask(Options{}, "https://good.example"),
	} {
		if w.Code/100 != 4 || w.Header().Get("Access-Control-Allow-Origin") != "" ||
			w.Header().Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("%s: status %d, %v", name, w.Code, w.Header())
		}
	}
	// Pages can also read errors.
	w = visit(New(&fake{}, Options{APIKeys: []string{"secret"}, Origins: []string{"*"}}), "POST", chatPath, "Origin",
		"https://a.example")
	if w.Code != 401 || w.Header().Get("Access-Control-Allow-Origin") != "https://a.example" {
		t.Errorf("without a key: status %d, %v", w.Code, w.Header())
	}
}

// TestPreflightOfIDs checks that pages may delete stored answers, also with a base URL without /v1.
func TestPreflightOfIDs(t *testing.T) {
	s := New(&fake{}, Options{Origins: []string{"*"}})
	for path, want := range map[string]string{
		"/v1/responses/resp_1": "GET, DELETE", "/responses/resp_1": "GET, DELETE", "/v1/models/a/b": "GET",
	} {
		w := visit(s, "OPTIONS", path, "Origin", "https://a.example", "Access-Control-Request-Method", "DELETE")
		if got := w.Header().Get("Access-Control-Allow-Methods"); w.Code != 204 || got != want {
			t.Errorf("%s: status %d, allowed %q, want %q", path, w.Code, got, want)
		}
	}
	w := visit(s, "PUT", "/v1/responses/resp_1")
	if got := w.Header().Get("Allow"); w.Code != 405 || got != "GET, DELETE" {
		t.Errorf("PUT: status %d, Allow %q", w.Code, got)
	}
}

// TestSalts checks that the API key and cache_salt determine the salt of the prefix cache.
func TestSalts(t *testing.T) {
	f := &fake{words: []string{"x"}}
	salt := func(s *Server, key, fields string) [32]byte {
		t.Helper()
		r := httptest.NewRequest("POST", chatPath, strings.NewReader(strings.Replace(chatOnce, "{", "{"+fields, 1)))
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != 200 {
			t.Fatalf("status %d %s", w.Code, w.Body)
		}
		return f.request().Salt
	}
	keyed, open := New(f, Options{APIKeys: []string{"one", "two"}}), New(f, Options{})
	one := salt(keyed, "one", "")
	if one != salt(keyed, "one", "") || one == salt(keyed, "two", "") || one == ([32]byte{}) {
		t.Error("salts do not follow keys")
	}
	if a := salt(keyed, "one", `"cache_salt":"a",`); a == one || a != salt(keyed, "one", `"cache_salt":"a",`) ||
		a == salt(keyed, "two", `"cache_salt":"a",`) {
		t.Error("salts do not follow cache_salt")
	}
	if salt(open, "one", "") != salt(open, "two", "") {
		t.Error("without keys there is more than one salt")
	}
}
