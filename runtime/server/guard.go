package server

import (
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
)

// A browser lets any page send requests to any address that its user can reach. This file keeps
// such pages out by three headers: the Host, which shows a name that the page's owner rebinds to
// this address; the Origin; and a Content-Type that browsers send to other sites only after a
// preflight.

// anything in Options.Hosts or Options.Origins allows everything.
const anything = "*"

// HostsOf are the names under which a server that listens on addr is asked, with
// those of more. On an address that other machines reach, where names are not
// known, they are nil, which allows every name, unless more says otherwise.
func HostsOf(addr net.Addr, more []string) []string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return more
	}
	if ip := net.ParseIP(host); len(more) == 0 && (ip == nil || !ip.IsLoopback()) {
		return nil
	}
	return append([]string{"localhost", "127.0.0.1", "::1", host}, more...)
}

// hostAllowed checks the Host header without its port. What sends none is no browser.
func (s *Server) hostAllowed(r *http.Request) bool {
	if len(s.opts.Hosts) == 0 || r.Host == "" {
		return true
	}
	name := hostName(r.Host)
	return slices.ContainsFunc(s.opts.Hosts,
		func(h string) bool { return h == anything || strings.EqualFold(hostName(h), name) })
}

// hostName takes the port, the brackets of an IPv6 address and the dot at the end from a host.
func hostName(host string) string {
	if strings.HasPrefix(host, "[") {
		name, _, _ := strings.Cut(host[1:], "]")
		return name
	}
	if strings.Count(host, ":") == 1 {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.TrimSuffix(host, ".")
}

// originAllowed says whether Options.Origins names the page that sent r.
func (s *Server) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return slices.ContainsFunc(s.opts.Origins,
		func(o string) bool { return o == anything || strings.EqualFold(o, origin) })
}

// share writes the headers that let the pages of Options.Origins read the answer,
// errors included, and reports whether r is a preflight, which it then answers.
func (s *Server) share(w http.ResponseWriter, r *http.Request, rt route) (preflight bool) {
	if len(s.opts.Origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if r.Header.Get("Origin") == "" || !s.originAllowed(r) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", requestID+", Retry-After, "+queuePlace+", "+queueWait+", "+queueFirst+
		", "+queueCache+", "+warningsHeader)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", rt.method)
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header.Get("Access-Control-Request-Headers")))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowedHeaders adds what a page asks for to what the API reads: clients send
// headers of their own, which change nothing here.
func allowedHeaders(asked string) string {
	own := "Authorization, Content-Type, " + keyHeader + ", " + requestID + ", " + priorityHeader
	if asked == "" || len(asked) > 2048 {
		return own
	}
	return own + ", " + asked
}

// refusal checks everything about r but its body.
func (s *Server) refusal(x *exchange, r *http.Request, rt route, known bool) *apiError {
	allowed := r.Method == rt.method || (rt.method == http.MethodGet && r.Method == http.MethodHead)
	switch {
	case !rt.open && !s.authorized(x, r):
		return newError(http.StatusUnauthorized, typeInvalid, "invalid_api_key",
			"a valid API key is needed; send it as the header Authorization: Bearer KEY or X-Api-Key: KEY")
	case !known:
		return newError(http.StatusNotFound, typeInvalid, "not_found", "there is no %q here; there are %s",
			clip(r.URL.Path), s.paths())
	case !allowed:
		x.Header().Set("Allow", rt.method)
		return newError(http.StatusMethodNotAllowed, typeInvalid, "method_not_allowed", "%s takes %s, not %s",
			x.route, rt.method, x.method)
	case rt.method == http.MethodGet:
		return nil // reading changes nothing, and a page cannot see the answer unless it may
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) && !s.originAllowed(r) {
		return newError(http.StatusForbidden, typeInvalid, "origin_not_allowed",
			"pages of %q may not use this server; start it with --cors and their origin to let them", clip(origin))
	}
	// A form of a page always has a Content-Type, and a request of its scripts has an Origin.
	if kind := r.Header.Get("Content-Type"); kind != "" && !isJSON(kind) && !(rt.form && isPlainForm(kind, r.Header)) {
		return newError(http.StatusUnsupportedMediaType, typeInvalid, "unsupported_media_type",
			"the body is sent as %q; send JSON with the header Content-Type: application/json", clip(kind))
	}
	if coding, known := contentCoding(r.Header); !known {
		x.Header().Set("Accept-Encoding", codingGzip)
		return newError(http.StatusUnsupportedMediaType, typeInvalid, "unsupported_media_type",
			"the body is sent with Content-Encoding: %s; send it uncompressed or with gzip", clip(coding))
	}
	return nil
}

// isPlainForm reports whether a body of this Content-Type is JSON that a program such as curl -d
// declares as a form by default. Browsers send forms of pages with an Origin or with Sec-Fetch-
// headers; older ones send neither, but they encode braces and quotes, which is not valid JSON.
func isPlainForm(contentType string, h http.Header) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "application/x-www-form-urlencoded" || h.Get("Origin") != "" {
		return false
	}
	for name := range h {
		if strings.HasPrefix(name, "Sec-Fetch-") {
			return false
		}
	}
	return true
}

// sameOrigin says whether a page of this server itself sends the request. The
// scheme is left out: what ends TLS in front of the server changes it.
func sameOrigin(origin, host string) bool {
	_, from, ok := strings.Cut(origin, "://")
	return ok && strings.EqualFold(from, host)
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
