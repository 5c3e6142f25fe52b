package sbom

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// TestDocument compares the document of this test program with its build information.
func TestDocument(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	info.Deps = append(info.Deps, &debug.Module{Path: "example.com/a b", Version: "v1.0.0+x", Sum: "h1:abc"},
		&debug.Module{Path: "example.com/old", Version: "v1.0.0",
			Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0"}})
	p := Program{Name: "sandwich", Version: "1.2.3", SHA256: strings.Repeat("0", 64),
		When: time.Unix(86400, 0), Info: info}
	data, err := Document(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Document(p); err != nil || !bytes.Equal(again, data) {
		t.Errorf("a second document differs (%v)", err)
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if d.Format != "CycloneDX" || d.Spec != "1.6" || d.Metadata.Timestamp != "1970-01-02T00:00:00Z" ||
		d.Metadata.Component.Version != "1.2.3" || d.Metadata.Component.Hashes[0].Content != p.SHA256 {
		t.Errorf("the document begins with %+v", d.Metadata)
	}
	purls, refs := map[string]bool{}, map[string]bool{}
	for _, c := range d.Components {
		if refs[c.Ref] {
			t.Errorf("%s is listed twice", c.Ref)
		}
		purls[c.PURL], refs[c.Ref] = true, true
	}
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
		"pkg:golang/example.com/a%20b@v1.0.0+x",
		"pkg:golang/example.com/new@v2.0.0"}
	for _, m := range info.Deps[:len(info.Deps)-2] {
		want = append(want, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	for _, w := range want {
		if !purls[w] {
			t.Errorf("the document has no %s", w)
		}
	}
	if len(purls) != len(want) {
		t.Errorf("%d components, want %d", len(purls), len(want))
	}
	for _, r := range d.Dependencies[0].On {
		if !refs[r] {
			t.Errorf("depends on %s, which is not a component", r)
		}
	}
}

func TestNoBuildSettings(t *testing.T) {
	if _, err := Document(Program{Name: "x", Info: &buildinfo.BuildInfo{}}); err == nil {
		t.Error("a program without build settings was accepted")
	}
}
