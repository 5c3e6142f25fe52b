// Package sbom writes the software bill of materials of a Go program: a CycloneDX 1.6 document in
// JSON that lists the modules that the linker recorded.
package sbom

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Program describes the program of a document.
type Program struct {
	Name, Version string
	SHA256        string // of the executable, in hexadecimal
	When          time.Time
	Info          *buildinfo.BuildInfo
}

// Document returns the document of a program. Equal programs have equal documents.
func Document(p Program) ([]byte, error) {
	goos, arch := setting(p.Info, "GOOS"), setting(p.Info, "GOARCH")
	if goos == "" || arch == "" {
		return nil, fmt.Errorf("%s has no build settings; build it with the go command", p.Name)
	}
	top := component{Type: "application", Ref: fmt.Sprintf("%s@%s", p.Name, p.Version), Name: p.Name,
		Version:    p.Version,
		Hashes:     []hash{{"SHA-256", p.SHA256}},
		Licenses:   []license{{licenseID{"Apache-2.0"}}},
		Properties: []property{{"go:module", p.Info.Main.Path}, {"go:os", goos}, {"go:arch", arch}}}
	standard := component{Type: "library", Ref: "std", Name: "std", Version: p.Info.GoVersion,
		PURL: "pkg:golang/std@" + strings.TrimPrefix(p.Info.GoVersion, "go")}
	d := document{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX",
		Spec: "1.6", Version: 1,
		Metadata:   metadata{Timestamp: p.When.UTC().Format(time.RFC3339), Component: top},
		Components: []component{standard}}
	for _, m := range p.Info.Deps {
		d.Components = append(d.Components, module(m))
	}
	slices.SortFunc(d.Components, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	depends := dependency{Ref: top.Ref}
	for _, c := range d.Components {
		depends.On = append(depends.On, c.Ref)
	}
	d.Dependencies = []dependency{depends}
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

// module describes a linked module, or the one that replaces it.
func module(m *debug.Module) component {
	for m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version}
	c.PURL = "pkg:golang/" + strings.ReplaceAll(url.PathEscape(m.Path), "%2F", "/") + "@" + url.PathEscape(m.Version)
	c.Ref = c.PURL
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// The types below have the names of CycloneDX.
type (
	document struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []license  `json:"licenses,omitempty"`
		PURL       string     `json:"purl,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	license struct {
		License licenseID `json:"license"`
	}
	licenseID struct {
		ID string `json:"id"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)
