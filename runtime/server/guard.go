package server

import (
	"crypto/sha256"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/ollama"
	"sandwich/runtime/server/request"
)

// Browsers let any web page send requests to any address that the user can reach. This file keeps
// such pages out by three headers: Host, which reveals DNS rebinding; Origin; and Content-Type,
// because browsers send JSON to other origins only after a preflight.

// wildcard in Options.Hosts or Options.Origins allows every value.
const wildcard = "*"

// HostsOf returns the allowed Host names of a server that listens on addr: the loopback names, the
// address itself, and more. It returns nil, which allows every name, if addr is reachable from
// other machines and more is empty.
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

// hostAllowed checks the Host header, ignoring its port. Requests without Host, or over unix
// sockets, do not come from browsers and are allowed.
func (s *Server) hostAllowed(r *http.Request) bool {
	if len(s.opts.Hosts) == 0 || r.Host == "" {
		return true
	}
	if _, local := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); local {
		return true
	}
	name := hostName(r.Host)
	return slices.ContainsFunc(s.opts.Hosts,
		func(h string) bool { return h == wildcard || strings.EqualFold(hostName(h), name) })
}

// hostName removes the port, the brackets of an IPv6 address and a trailing dot from a host.
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

// originAllowed reports whether Options.Origins contains the origin of r.
func (s *Server) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return slices.ContainsFunc(s.opts.Origins,
		func(o string) bool { return o == wildcard || strings.EqualFold(o, origin) })
}

// writeCORS writes the CORS headers for pages of Options.Origins, also for errors. It answers
// preflight requests and reports whether r was one.
func (s *Server) writeCORS(w http.ResponseWriter, r *http.Request, rt route) (preflight bool) {
	if len(s.opts.Origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if r.Header.Get("Origin") == "" || !s.originAllowed(r) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", exchange.RequestID+", Retry-After, "+exchange.QueuePlaceHeader+", "+
		exchange.QueueWaitHeader+", "+exchange.FirstTokenHeader+", "+exchange.CacheHeader+", "+exchange.WarningsHeader)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", rt.methods())
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header.Get("Access-Control-Request-Headers")))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowedHeaders returns the request headers that the API reads and those that a page asks for.
// Other headers have no effect.
func allowedHeaders(asked string) string {
	own := "Authorization, Content-Type, " + keyHeader + ", " + exchange.RequestID + ", " + request.PriorityHeader
	if asked == "" || len(asked) > 2048 {
		return own
	}
	return own + ", " + asked
}

// check checks everything about r except its body.
func (s *Server) check(x *exchange.Exchange, r *http.Request, rt route, known bool) *apierr.Error {
	authorized := rt.open || s.authorized(x, r)
	if !authorized && rt.public {
		x.Salt = [sha256.Size]byte{} // as without a key
		authorized = true
	}
	switch {
	case !authorized:
		return apierr.New(http.StatusUnauthorized, apierr.TypeInvalid, "invalid_api_key",
			"a valid API key is required; send the header Authorization: Bearer KEY or X-Api-Key: KEY")
	case !known && ollama.Manages(r.URL.Path):
		return apierr.New(http.StatusNotFound, apierr.TypeInvalid, "not_supported",
			"this server neither downloads nor changes models; use `sandwich pull ollama:NAME` and `sandwich "+
				"model` on its host")
	case !known:
		return apierr.New(http.StatusNotFound, apierr.TypeInvalid, "not_found", "unknown path %q; the paths are %s",
			jsontext.Clip(r.URL.Path), s.paths())
	case rt.handler(r.Method) == nil:
		x.Header().Set("Allow", rt.methods())
		return apierr.New(http.StatusMethodNotAllowed, apierr.TypeInvalid, "method_not_allowed",
			"%s accepts %s, not %s", x.Route, rt.methods(), x.Method)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return nil // reading changes nothing, and pages cannot read the answer without CORS
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) && !s.originAllowed(r) {
		return apierr.New(http.StatusForbidden, apierr.TypeInvalid, "origin_not_allowed",
			"pages of %q may not use this server; allow their origin with --cors", jsontext.Clip(origin))
	}
	// HTML forms always send a Content-Type, and scripts send an Origin.
	if kind := r.Header.Get("Content-Type"); kind != "" && !isJSON(kind) && !(rt.form && isPlainForm(kind, r.Header)) {
		return apierr.New(http.StatusUnsupportedMediaType, apierr.TypeInvalid, "unsupported_media_type",
			"the body is sent as %q; send JSON with the header Content-Type: application/json", jsontext.Clip(kind))
	}
	if coding, known := generation.ContentCoding(r.Header); !known {
		x.Header().Set("Accept-Encoding", generation.CodingGzip)
		return apierr.New(http.StatusUnsupportedMediaType, apierr.TypeInvalid, "unsupported_media_type",
			"the body is sent with Content-Encoding: %s; send it uncompressed or with gzip", jsontext.Clip(coding))
	}
	return nil
}

// isPlainForm reports whether a body of this Content-Type may be JSON that a program such as curl
// -d declares as a form by default. Browsers send forms with an Origin or with Sec-Fetch- headers;
// older browsers send neither, but they encode braces and quotes, so that the body is not valid
// JSON.
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

// sameOrigin reports whether origin is this server. It ignores the scheme, which a TLS proxy in
// front of the server changes.
func sameOrigin(origin, host string) bool {
	_, from, ok := strings.Cut(origin, "://")
	return ok && strings.EqualFold(from, host)
}

// isJSON reports whether a Content-Type is JSON.
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
