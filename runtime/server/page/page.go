// Package page serves the web page of the server: a chat and the state of the machine. Its files
// are embedded; the page loads nothing from other hosts.
package page

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
)

// Prefix is the path under which the files of the page are served. The page itself is at /.
const Prefix = "/page/"

// indexFile is the document at /.
const indexFile = "index.html"

// policy allows the page its own scripts, styles, images and requests, and nothing else. Other
// pages cannot embed it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed assets
var assets embed.FS

// Index writes the document of the page.
func Index(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
	write(w, r, indexFile)
}

// File writes the file of the page that the path names after Prefix. An unknown name is answered
// with status 404.
func File(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	if name == indexFile {
		name = "" // only at /, with the policy
	}
	write(w, r, name)
}

// write answers with a file. Browsers keep it and ask each time whether it has changed.
func write(w http.ResponseWriter, r *http.Request, name string) {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		apierr.New(http.StatusNotFound, apierr.TypeInvalid, "not_found", "the page has no file %q",
			jsontext.Clip(name)).Write(w)
		return
	}
	tag := fmt.Sprintf(`"%.16x"`, sha256.Sum256(text))
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("ETag", tag)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", contentType(name))
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // a client that hung up needs no answer
}

// contentType returns the type of a file. It does not depend on the files of the system.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(ext)
	}
}
