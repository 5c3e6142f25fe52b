// Package netguard makes HTTP clients for downloads from servers that are not trusted: they follow
// redirects with TLS only, keep credentials from other hosts, and do not connect to private
// addresses on behalf of a server.
package netguard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandwich/cmd/sandwich/internal/models/ref"
)

// Policy states which servers a client contacts.
type Policy struct {
	Origin *url.URL // scheme and host of the server that the user named
	Hosts  []string // other hosts, with a port or not, that the user allows the server to use
	Token  string   // bearer token for Origin; "" for none
}

// limits of a client.
const (
	maxRedirects   = 10
	maxHeaderBytes = 64 << 10
	dialTimeout    = 30 * time.Second
	headerTimeout  = 60 * time.Second
)

// New returns a client. It sends the headers Authorization and Cookie to the host of the policy's
// origin only, and to the other hosts of the policy unless a redirect leads there. It uses plain
// HTTP only for loopback addresses that the policy names. It connects to private, link-local and
// loopback addresses only for hosts that the policy names, whatever other names resolve to. It does
// not decompress answers. The client may be used concurrently.
func New(p Policy) *http.Client {
	g := &guard{Policy: p, proxies: map[string]bool{}}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxResponseHeaderBytes = maxHeaderBytes
	t.ResponseHeaderTimeout = headerTimeout
	t.DialContext = g.dial
	g.next = t
	return &http.Client{Transport: g, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return &Error{p.Origin.Host, r.URL.Host, fmt.Sprintf("it redirects more than %d times", maxRedirects)}
		}
		return nil
	}}
}

// Error reports a server that sends requests to a place that they may not go to.
type Error struct{ From, To, Reason string }

func (e *Error) Error() string {
	return fmt.Sprintf("%s sends requests on to %.100q, which were not followed: %s", e.From, e.To, e.Reason)
}

// Final reports that the same request fails again.
func (*Error) Final() bool { return true }

// guard is the transport of a client.
type guard struct {
	Policy
	next    http.RoundTripper
	mu      sync.Mutex
	proxies map[string]bool // addresses of proxies that the environment names
}

// RoundTrip checks a request and sends it.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	to, named := r.URL.Host, g.names(address(r.URL))
	switch {
	case r.URL.Scheme == "http" && !(named && ref.Loopback(r.URL.Hostname())):
		return nil, &Error{g.Origin.Host, r.URL.Scheme + "://" + to, "the connection would not be encrypted"}
	case r.URL.Scheme != "https" && r.URL.Scheme != "http":
		return nil, &Error{g.Origin.Host, r.URL.Scheme + "://" + to, "only https is allowed"}
	case !named && private(r.URL.Hostname()):
		return nil, g.privateError(to)
	}
	r = r.Clone(r.Context())
	if address(r.URL) == address(g.Origin) {
		if g.Token != "" {
			r.Header.Set("Authorization", "Bearer "+g.Token)
		}
	} else if err := g.withhold(r, named); err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "sandwich")
	if err := g.allowProxy(r); err != nil {
		return nil, err
	}
	return g.next.RoundTrip(r)
}

// withhold removes credentials from a request that a redirect sends to another host than the
// origin. It rejects a direct request with credentials to a host that the policy does not name:
// such a request goes to a token server.
func (g *guard) withhold(r *http.Request, named bool) error {
	redirected := r.Response != nil
	secret := r.Header.Get("Authorization") != "" || r.Method != http.MethodGet && r.Method != http.MethodHead
	if secret && !redirected && !named {
		return &Error{g.Origin.Host, r.URL.Host, "credentials are for the first host only; if it is the server's " +
			"own, add --allow-host " + r.URL.Host}
	}
	if redirected {
		r.Header.Del("Authorization")
	}
	r.Header.Del("Cookie")
	r.Header.Del("Referer")
	return nil
}

// allowProxy remembers the address of the proxy for a request, which may be private.
func (g *guard) allowProxy(r *http.Request) error {
	proxy, err := http.ProxyFromEnvironment(r)
	if err != nil || proxy == nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proxies[address(proxy)] = true
	return nil
}

// names reports whether the policy names an address.
func (g *guard) names(addr string) bool {
	if addr == address(g.Origin) {
		return true
	}
	return slices.ContainsFunc(g.Hosts, func(host string) bool {
		u := ref.Origin(host)
		return addr == address(u)
	})
}

// address returns host:port of a URL, in lower case.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// dial connects to host:port. The address is checked after the name was resolved, so that a name
// cannot lead to a private address.
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	g.mu.Lock()
	free := g.proxies[strings.ToLower(addr)] || g.names(strings.ToLower(addr))
	g.mu.Unlock()
	if !free {
		d.Control = func(_, resolved string, _ syscall.RawConn) error {
			if host, _, err := net.SplitHostPort(resolved); err != nil || private(host) {
				return g.privateError(addr)
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, addr)
}

func (g *guard) privateError(to string) error {
	return &Error{g.Origin.Host, to, "its address is not public; if it is the server's own, add --allow-host " + to}
}

// special lists the address blocks, other than those that package netip knows, that are not public
// or that embed other addresses.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "64:ff9b::/96",
	"64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10", "::/96")

func prefixes(list ...string) (blocks []netip.Prefix) {
	for _, text := range list {
		blocks = append(blocks, netip.MustParsePrefix(text))
	}
	return blocks
}

// private reports whether a host is an address that is not public, or localhost.
func private(host string) bool {
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	addr = addr.WithZone("").Unmap()
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return true
	}
	return slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(addr) })
}
