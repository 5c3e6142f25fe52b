// Package ref parses references to models: names that state where a model can be downloaded.
package ref

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/registry"
)

// Kind is the protocol by which a model is downloaded.
type Kind uint8

// Kinds of references.
const (
	Hub      Kind = iota // a repository of the Hugging Face hub
	Registry             // a repository of an OCI registry, or of ollama's
	Web                  // one file at an HTTPS address
	Layout               // an OCI image layout, a folder on this machine
)

// Ref is a parsed reference.
type Ref struct {
	Kind    Kind
	Text    string // canonical form; equal for references to the same model
	Host    string // host, with a port if one was given; "" for the hub
	Repo    string // OWNER/REPO of a hub, the repository of a registry, or the folder of a layout
	Variant string // of a hub: weight type or file name, "" for the default one
	Tag     string // of a registry or a layout: a tag or a digest
	URL     *url.URL
}

// Default hosts of references without one.
const (
	ollamaHost = "registry.ollama.ai"
	ollamaUser = "library" // namespace of names without one
	latest     = "latest"  // tag of references without one
)

const (
	hubPrefix    = "hf:"
	ollamaPrefix = "ollama:"
	layoutPrefix = "oci:"
)

// Syntax lists the forms of references, for help texts.
const Syntax = `hf:OWNER/REPO[:TYPE]      Hugging Face: the file of a weight type such as Q8_0, or of a file name
ollama:NAME[:TAG]         ollama's registry; also ollama:USER/NAME and ollama:HOST/USER/NAME
HOST/REPO[:TAG]           a model artifact in an OCI registry (ModelPack or Docker's format); also @sha256:...
https://HOST/FILE.gguf    one file
oci:FOLDER[:TAG]          a model artifact in an OCI image layout, a folder`

// wantSyntax ends the errors about references of no known form.
const wantSyntax = "give hf:OWNER/REPO[:TYPE], ollama:NAME[:TAG], HOST/REPO[:TAG] or https://HOST/FILE.gguf"

// longest limits the length of a reference in bytes.
const longest = 1000

// Is reports whether a text has the form of a reference. A file name with a folder, such as
// models.d/x.gguf, does not.
func Is(text string) bool {
	for _, prefix := range []string{hubPrefix, ollamaPrefix, layoutPrefix, "hf.co/", "huggingface.co/", "https://",
		"http://"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	host, rest, ok := strings.Cut(text, "/")
	if !ok || rest == "" || strings.HasSuffix(text, ".gguf") || strings.HasSuffix(text, ".json") ||
		strings.HasPrefix(text, ".") {
		return false
	}
	_, _, err := net.SplitHostPort(host)
	return err == nil || strings.Contains(host, ".") || host == "localhost"
}

// Parse parses a reference. It sends no request.
func Parse(text string) (Ref, error) {
	if len(text) > longest {
		return Ref{}, fmt.Errorf("the reference %.80q... is too long; %s", text, wantSyntax)
	}
	var r Ref
	var err error
	switch rest := ""; {
	case cut(text, hubPrefix, &rest):
		r, err = parseHub(rest)
	case cut(text, ollamaPrefix, &rest):
		r, err = parseOllama(rest)
	case strings.HasPrefix(text, "https://"), strings.HasPrefix(text, "http://"):
		r, err = parseWeb(text)
	case cut(text, layoutPrefix, &rest):
		r, err = parseLayout(rest)
	case cut(text, "hf.co/", &rest), cut(text, "huggingface.co/", &rest):
		r, err = parseHub(rest)
	case Is(text):
		r, err = parseRegistry(text)
	default:
		err = errors.New(wantSyntax)
	}
	if err != nil {
		return Ref{}, fmt.Errorf("%.200q is not a reference to a model: %w", text, err)
	}
	return r, nil
}

// cut stores text without prefix in rest and reports whether text has the prefix.
func cut(text, prefix string, rest *string) (ok bool) {
	*rest, ok = strings.CutPrefix(text, prefix)
	return ok
}

// part matches the owner or the name of a repository, a weight type and a file name.
var part = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$`)

// checkPart rejects a part of a reference that could be more than a name.
func checkPart(what, s string) error {
	if !part.MatchString(s) || strings.Contains(s, "..") {
		return fmt.Errorf("%.80q is not a valid %s", s, what)
	}
	return nil
}

func parseHub(text string) (Ref, error) {
	repo, variant, typed := strings.Cut(text, ":")
	owner, name, ok := strings.Cut(repo, "/")
	if !ok {
		return Ref{}, errors.New("give hf:OWNER/REPO")
	}
	err := errors.Join(checkPart("owner", owner), checkPart("repository", name))
	if typed {
		err = errors.Join(err, checkPart("weight type or file name", variant))
	}
	return Ref{Kind: Hub, Text: hubPrefix + text, Repo: repo, Variant: variant}, err
}

func parseOllama(text string) (Ref, error) {
	host, user := ollamaHost, ollamaUser
	parts := strings.Split(text, "/")
	name := parts[len(parts)-1]
	switch len(parts) {
	case 1:
	case 2:
		user = parts[0]
	case 3:
		host, user = parts[0], parts[1]
	default:
		return Ref{}, errors.New("give ollama:NAME[:TAG], ollama:USER/NAME[:TAG] or ollama:HOST/USER/NAME[:TAG]")
	}
	name, tag, tagged := strings.Cut(name, ":")
	if !tagged {
		tag = latest
	}
	if err := errors.Join(checkPart("user", user), checkPart("model", name), checkPart("tag", tag)); err != nil {
		return Ref{}, err
	}
	ref := registry.Reference{Registry: host, Repository: user + "/" + strings.ToLower(name), Reference: tag}
	if err := ref.Validate(); err != nil {
		return Ref{}, err
	}
	canonical := name + ":" + tag
	if len(parts) > 1 {
		canonical = strings.Join(parts[:len(parts)-1], "/") + "/" + canonical
	}
	return Ref{Kind: Registry, Text: ollamaPrefix + canonical, Host: host, Repo: ref.Repository, Tag: tag}, nil
}

func parseRegistry(text string) (Ref, error) {
	ref, err := registry.ParseReference(text)
	if err != nil {
		return Ref{}, err
	}
	if ref.Reference == "" {
		ref.Reference = latest
	}
	return Ref{Kind: Registry, Text: ref.String(), Host: ref.Registry, Repo: ref.Repository, Tag: ref.Reference}, nil
}

func parseLayout(text string) (Ref, error) {
	dir, tag, separator := text, latest, ":"
	if i := strings.LastIndex(text, "@sha256:"); i >= 0 {
		dir, tag, separator = text[:i], text[i+1:], "@"
	} else if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.Contains(text[i:], "/") {
		dir, tag = text[:i], text[i+1:]
	}
	ref := registry.Reference{Registry: "localhost", Repository: "x", Reference: tag}
	if err := ref.ValidateReference(); err != nil || dir == "" || tag == "" || strings.ContainsRune(dir, 0) {
		return Ref{}, errors.New("give oci:FOLDER[:TAG]")
	}
	path, err := filepath.Abs(dir)
	return Ref{Kind: Layout, Text: layoutPrefix + path + separator + tag, Repo: path, Tag: tag}, err
}

func parseWeb(text string) (Ref, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return Ref{}, errors.New("the address cannot be parsed")
	case u.User != nil:
		return Ref{}, errors.New("the address has a password; leave it out")
	case u.Host == "" || u.Opaque != "":
		return Ref{}, errors.New("the address has no host")
	case u.Scheme == "http" && !Loopback(u.Hostname()):
		return Ref{}, errors.New("plain HTTP is allowed for loopback addresses only; give https://")
	case path.Base(u.Path) == "/" || path.Base(u.Path) == ".":
		return Ref{}, errors.New("the address has no file name")
	}
	u.Fragment, u.RawFragment = "", ""
	return Ref{Kind: Web, Text: u.String(), Host: u.Host, URL: u}, nil
}

// Loopback reports whether a host, with or without a port, is localhost or a loopback address.
func Loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Origin returns the address of the server at a host: with TLS, except for loopback addresses.
func Origin(host string) *url.URL {
	if Loopback(host) {
		return &url.URL{Scheme: "http", Host: host}
	}
	return &url.URL{Scheme: "https", Host: host}
}
