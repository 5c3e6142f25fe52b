package healthcheck

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
)

// server is where a server answers.
type server struct {
	url    string
	socket string // path of a unix socket; "": TCP
}

// parse reads a URL, an address of --listen, or unix:PATH. An address of all interfaces becomes the
// loopback address. A URL without a path gets /health.
func parse(text string) (*server, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path, _, _ = strings.Cut(path, ",") // options of the listener may follow
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%s is not an address; give an absolute path, such as unix:/run/sandwich.sock",
				show.Clip(text, 80))
		}
		return &server{url: "http://localhost/health", socket: path}, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" && u.Port() == "" {
		return nil, fmt.Errorf("%q is not an address; give one such as http://127.0.0.1:8080 or 127.0.0.1:8080",
			show.Clip(text, 80))
	}
	if host := u.Hostname(); host == "" || isUnspecified(host) {
		loopback := "127.0.0.1"
		if strings.Contains(host, ":") {
			loopback = "::1"
		}
		u.Host = strings.TrimSuffix(net.JoinHostPort(loopback, u.Port()), ":")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/health"
	}
	return &server{url: u.String()}, nil
}

func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}
