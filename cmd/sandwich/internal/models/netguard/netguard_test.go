package netguard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// server returns a server whose handler may change, and its host.
func server(t *testing.T, h http.HandlerFunc) (host string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestRedirects checks which redirects of a loopback server are followed, and which headers the
// other host receives.
func TestRedirects(t *testing.T) {
	var got http.Header
	other := server(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = io.WriteString(w, "other")
	})
	var to string
	first := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("the first host receives %q", r.Header)
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, to, http.StatusFound)
	})
	for _, c := range []struct {
		to    string
		hosts []string
		want  string // of the error
	}{
		{"http://" + other + "/x", []string{other}, ""},
		{"http://" + other + "/x", nil, "not be encrypted"},
		{"http://files.example/x", nil, "not be encrypted"},
		{"http://files.example/x", []string{"files.example"}, "not be encrypted"},
		{"http://10.1.2.3/x", []string{"10.1.2.3"}, "not be encrypted"},
		{"https://" + other + "/x", nil, "not public"},
		{"https://localhost/x", nil, "not public"},
		{"https://a.localhost/x", nil, "not public"},
		{"https://[::1]/x", nil, "not public"},
		{"https://[::ffff:127.0.0.1]/x", nil, "not public"},
		{"https://10.1.2.3/x", nil, "not public"},
		{"https://169.254.169.254/latest/meta-data", nil, "not public"},
		{"https://[fe80::1]/x", nil, "not public"},
		{"https://[64:ff9b::7f00:1]/x", nil, "not public"},
		{"ftp://files.example/x", nil, "only https"},
		{"file:///etc/passwd", nil, "only https"},
	} {
		to, got = c.to, nil
		client := New(Policy{Origin: &url.URL{Scheme: "http", Host: first}, Hosts: c.hosts, Token: "secret"})
		resp, err := client.Get("http://" + first + "/file")
		if err == nil {
			resp.Body.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, allowed %v: %v; want %q", c.to, c.hosts, err, c.want)
		}
		if (got != nil) != (c.want == "") || got.Get("Authorization") != "" || got.Get("Cookie") != "" ||
			got.Get("Referer") != "" {
			t.Errorf("%s, allowed %v: the other host receives %v", c.to, c.hosts, got)
		}
	}
}

// TestNamesResolveToPrivateAddresses checks that a host with a public name is not connected to if
// its name resolves to a private address, unless the user named the host.
func TestNamesResolveToPrivateAddresses(t *testing.T) {
	host := server(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := strings.Cut(host, ":")
	addr := "localhost:" + port // resolves to a loopback address, as a name of an attacker would
	for _, hosts := range [][]string{nil, {addr}} {
		g := &guard{Policy: Policy{Origin: &url.URL{Scheme: "https", Host: "hub.example"}, Hosts: hosts}}
		conn, err := g.dial(context.Background(), "tcp", addr)
		if err == nil {
			conn.Close()
		}
		if refused := (*Error)(nil); errors.As(err, &refused) != (hosts == nil) {
			t.Errorf("allowed %v: %v", hosts, err)
		}
	}
}

// TestLoops checks that a server cannot redirect without end.
func TestLoops(t *testing.T) {
	n := 0
	host := server(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	})
	_, err := New(Policy{Origin: &url.URL{Scheme: "http", Host: host}}).Get("http://" + host)
	if refused := (*Error)(nil); !errors.As(err, &refused) || n != maxRedirects {
		t.Errorf("%v after %d requests", err, n)
	}
}

// TestDirectCredentials checks that credentials go to a token server only if the user allows its
// host, and that requests without credentials need no permission.
func TestDirectCredentials(t *testing.T) {
	var got string
	token := server(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") })
	origin := &url.URL{Scheme: "https", Host: "registry.example"}
	for _, hosts := range [][]string{nil, {token}} {
		got = ""
		r, _ := http.NewRequest(http.MethodGet, "http://"+token, http.NoBody)
		r.SetBasicAuth("user", "secret")
		resp, err := New(Policy{Origin: origin, Hosts: hosts}).Do(r)
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != (hosts != nil) || (got != "") != (hosts != nil) {
			t.Errorf("allowed %v: %v, received %q", hosts, err, got)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		g := &guard{Policy: Policy{Origin: origin}, next: answer{}, proxies: map[string]bool{}}
		r, _ := http.NewRequest(method, "https://token.example", http.NoBody)
		if _, err := g.RoundTrip(r); (err == nil) != (method == http.MethodGet) {
			t.Errorf("%s without credentials: %v", method, err)
		}
	}
}

// answer is a transport that answers every request.
type answer struct{}

func (answer) RoundTrip(*http.Request) (*http.Response, error) { return &http.Response{}, nil }

// TestPrivate checks the classification of addresses.
func TestPrivate(t *testing.T) {
	for host, want := range map[string]bool{"8.8.8.8": false, "2606:4700::1111": false, "hub.example": false,
		"127.0.0.1": true, "0.0.0.0": true, "10.0.0.1": true, "172.16.0.1": true, "192.168.1.1": true,
		"169.254.169.254": true, "100.100.100.200": true, "224.0.0.1": true, "255.255.255.255": true, "::": true,
		"::1": true, "fc00::1": true, "fe80::1%eth0": true, "[::1]": true, "::ffff:10.0.0.1": true,
		"2002:7f00:1::": true,
		"localhost":     true, "x.localhost": true, "::127.0.0.1": true, "64:ff9b::a00:1": true, "ff02::1": true} {
		if got := private(host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
}
