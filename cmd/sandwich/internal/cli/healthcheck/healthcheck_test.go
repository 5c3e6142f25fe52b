package healthcheck

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/cli/exit"
)

// run runs the verb and returns its output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := NewHealth()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(context.Background())
	return strings.TrimSpace(out.String()), err
}

// TestHealth checks the output and the exit code for each answer of a server.
func TestHealth(t *testing.T) {
	for _, test := range []struct {
		name, body string
		status     int
		code       int
		want       string // in the output, else in the error
	}{
		{"ready", `{"status":"ok"}`, 200, exit.OK, "ok"},
		{"loading", `{"status":"loading","stage":"packing weights","progress":0.42}`, 503, exit.Failed,
			"not ready: loading, packing weights, 42 % (503 Service Unavailable)"},
		{"stopping", `{"status":"shutting down"}`, 503, exit.Failed, "not ready: shutting down"},
		{"other program", "<html>", 404, exit.Failed, "not that of a sandwich server (404 Not Found)"},
		{"escapes", `{"status":"\u001b[2Jx"}`, 503, exit.Failed, `\u001b[2Jx`},
		{"long", `{"status":"` + strings.Repeat("x", 1<<20) + `"}`, 503, exit.Failed, "not ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var path string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path = r.URL.Path
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body)) // a client may leave before the end
			}))
			defer s.Close()
			out, err := run(t, s.URL, "--timeout", "60s")
			text := out
			if err != nil {
				text = err.Error()
			}
			if code := codeOf(err); code != test.code || !strings.Contains(text, test.want) || path != "/health" {
				t.Errorf("exit code %d, %q, path %s; want %d, %q, /health", code, text, path, test.code, test.want)
			}
		})
	}
}

func codeOf(err error) int {
	if err == nil {
		return exit.OK
	}
	return exit.Code(err)
}

// TestHealthSettings checks which of the addresses is asked.
func TestHealthSettings(t *testing.T) {
	answer := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"status":"` + name + `"}`))
		}))
		t.Cleanup(s.Close)
		return s
	}
	locked, err := parse("unix:/run/s,mode=0660,tls=yes", false)
	if err != nil || locked.url != "https://localhost/health" || locked.socket != "/run/s" {
		t.Errorf("a unix socket with TLS: %+v, %v", locked, err)
	}
	main, health := answer("main"), answer("health")
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"secure"}`))
	}))
	defer secure.Close()
	tlsAddr := secure.Listener.Addr().String()
	_, port, err := net.SplitHostPort(main.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"socket"}`))
	})}
	go func() { _ = s.Serve(ln) }()
	defer s.Close()
	for _, test := range []struct {
		want string
		args []string
	}{
		{"main", []string{"--listen", "0.0.0.0:" + port, "--listen", "127.0.0.1:1"}},
		{"main", []string{"--listen", ":" + port}},
		{"health", []string{"--listen", "127.0.0.1:1", "--health-listen", health.Listener.Addr().String()}},
		{"main", []string{"--health-listen", "127.0.0.1:1", main.URL + "/"}},
		{"main", []string{"--listen", "fd:api", "--listen", "127.0.0.1:" + port}},
		{"main", []string{"--tls-cert", "c", "--listen", "127.0.0.1:" + port + ",tls=no"}},
		{"secure", []string{"--tls-cert", "c", "--listen", tlsAddr}},
		{"secure", []string{secure.URL}},
		{"secure", []string{"--health-listen", "fd:health", "--health-listen", tlsAddr + ",tls=yes"}},
		{"health", []string{"--tls-cert", "c", "--listen", tlsAddr,
			"--health-listen", health.Listener.Addr().String()}},
		{"socket", []string{"unix:" + socket + ",mode=0660"}},
	} {
		out, err := run(t, append(test.args, "--timeout", "60s")...)
		if err != nil || out != test.want {
			t.Errorf("health %v: %q, %v; want %q", test.args, out, err, test.want)
		}
	}
}

// TestHealthRefusals checks addresses that cannot be used and servers that do not answer.
func TestHealthRefusals(t *testing.T) {
	block := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-block:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(block)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"ftp://127.0.0.1"}, exit.Input, "is not an address"},
		{[]string{"unix:relative"}, exit.Input, "absolute path"},
		{[]string{""}, exit.Input, "is not an address"},
		{[]string{"--listen", "fd:api"}, exit.Input, "is not an address"},
		{[]string{"http://[::"}, exit.Input, "is not an address"},
		{[]string{"a", "b"}, exit.Input, "unexpected argument"},
		{[]string{gone.URL, "--timeout", "-1s"}, exit.Input, "--timeout -1s is out of range"},
		{[]string{gone.URL}, exit.Failed, "connection refused"},
		{[]string{"unix:/nonexistent/socket"}, exit.Failed, "no such file"},
		{[]string{slow.URL, "--timeout", "50ms"}, exit.Failed, "no answer within 50ms"},
	} {
		_, err := run(t, test.args...)
		if codeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("health %q: %v, exit code %d; want %q, %d", test.args, err, codeOf(err), test.want, test.code)
		}
	}
}
