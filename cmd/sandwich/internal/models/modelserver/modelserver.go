// Package modelserver runs servers on loopback addresses that speak the protocols from which models
// are pulled, for tests: the Hugging Face hub, OCI and ollama registries, and plain files.
package modelserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Revision is the commit of every repository of the hub.
const Revision = "0123456789abcdef0123456789abcdef01234567"

// Server is one server. Its methods may be called concurrently.
type Server struct {
	URL  string // http://127.0.0.1:PORT
	Host string

	mu        sync.Mutex
	documents map[string][]byte // of the hub and the registry, by path
	files     map[string][]byte // by path
	redirects map[string]string // by path
	intercept func(w http.ResponseWriter, r *http.Request) bool
	requests  []*http.Request
	server    *httptest.Server
}

// Start starts a server, which Close ends.
func Start() *Server {
	s := &Server{documents: map[string][]byte{}, files: map[string][]byte{}, redirects: map[string]string{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL, s.Host = s.server.URL, strings.TrimPrefix(s.server.URL, "http://")
	return s
}

// Close ends all connections and the server.
func (s *Server) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	intercept := s.intercept
	document, file, to := s.documents[r.URL.Path], s.files[r.URL.Path], s.redirects[r.URL.Path]
	s.mu.Unlock()
	switch {
	case intercept != nil && intercept(w, r):
	case to != "":
		http.Redirect(w, r, to, http.StatusFound)
	case document != nil:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	case file != nil:
		w.Header().Set("ETag", `"`+SHA256(file)+`"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
	default:
		http.NotFound(w, r)
	}
}

// Intercept sets a function that may answer requests instead; it returns whether it did.
func (s *Server) Intercept(fn func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = fn
}

// Requests returns the requests since the last call.
func (s *Server) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.requests
	s.requests = nil
	return list
}

// SHA256 returns the checksum of data in hexadecimal digits.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// AddFile serves a file at a path.
func (s *Server) AddFile(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = data
}

// Redirect redirects requests for a path to an address.
func (s *Server) Redirect(path, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redirects[path] = to
}

// addDocument serves a JSON document at a path.
func (s *Server) addDocument(path string, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values of this package can be marshaled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[path] = data
	return data
}

// AddRepository serves a repository of the hub with files by path. As on the public hub, addresses
// of files redirect to another path.
func (s *Server) AddRepository(name string, files map[string][]byte) {
	type lfs struct {
		SHA256 string `json:"sha256"`
		Size   int    `json:"size"`
	}
	type sibling struct {
		Path string `json:"rfilename"`
		Size int    `json:"size"`
		LFS  lfs    `json:"lfs"`
	}
	list := []sibling{}
	for path, data := range files {
		sum := SHA256(data)
		list = append(list, sibling{path, len(data), lfs{sum, len(data)}})
		s.AddFile("/cdn/"+sum, data)
		s.Redirect("/"+name+"/resolve/"+Revision+"/"+path, s.URL+"/cdn/"+sum)
	}
	s.addDocument("/api/models/"+name+"/revision/main", map[string]any{"sha": Revision, "siblings": list})
}

// AddArtifact serves a model of a registry whose layers have a type.
func (s *Server) AddArtifact(repository, tag, layerType string, layers ...[]byte) {
	var m v1.Manifest
	m.MediaType = v1.MediaTypeImageManifest
	for _, data := range layers {
		d := digest.FromBytes(data)
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: layerType, Digest: d, Size: int64(len(data))})
		s.AddFile("/v2/"+repository+"/blobs/"+d.String(), data)
	}
	path := "/v2/" + repository + "/manifests/"
	s.addDocument(path+digest.FromBytes(s.addDocument(path+tag, m)).String(), m)
}
