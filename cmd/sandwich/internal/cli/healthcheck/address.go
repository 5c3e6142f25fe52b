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
	// loopback is true for a server of this host. Its certificate is for another name and is not
	// verified.
	loopback bool
}

// address returns the first address of a listener that a client can connect to: sockets of systemd
// (fd:NAME) have no address of their own.
func address(listen []string) string {
	for _, l := range listen {
		if !strings.HasPrefix(l, "fd:") {
			return l
		}
	}
	return ""
}

// parse reads a URL, or an address of --listen with its options. An address of all interfaces
// becomes the loopback address. A URL without a path gets /health. tls is true if TCP listeners use
// TLS.
func parse(text string, tls bool) (*server, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path, options, _ := strings.Cut(path, ",")
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%s is not an address; give an absolute path, such as unix:/run/sandwich.sock",
				show.Clip(text, 80))
		}
		scheme := "http"
		if strings.Contains(","+options+",", ",tls=yes,") {
			scheme = "https"
		}
		return &server{url: scheme + "://localhost/health", socket: path, loopback: true}, nil
	}
	full := text
	if !strings.Contains(text, "://") {
		addr, options, _ := strings.Cut(text, ",")
		full = "http://" + addr
		if (tls || options == "tls=yes") && options != "tls=no" {
			full = "https://" + addr
		}
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" && u.Port() == "" {
		return nil, fmt.Errorf("%q is not an address; give one such as http://127.0.0.1:8080 or 127.0.0.1:8080",
			show.Clip(text, 80))
	}
	if host := u.Hostname(); host == "" || isUnspecified(host) {
		local := "127.0.0.1"
		if strings.Contains(host, ":") {
			local = "::1"
		}
		u.Host = strings.TrimSuffix(net.JoinHostPort(local, u.Port()), ":")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/health"
	}
	ip := net.ParseIP(u.Hostname())
	return &server{url: u.String(), loopback: u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()}, nil
}

func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}
