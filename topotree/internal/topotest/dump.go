package topotest

import (
	"archive/tar"
	"compress/bzip2"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// DumpFS unpacks a tarball of a saved machine into memory. The root of the result is folder.
func DumpFS(t testing.TB, dir, tarball, folder string) fstest.MapFS {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, tarball))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := fstest.MapFS{}
	for r := tar.NewReader(bzip2.NewReader(f)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(strings.TrimSuffix(filepath.ToSlash(filepath.Clean(h.Name)), "/"), folder+"/")
		if !ok {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = &fstest.MapFile{Data: data, Mode: 0o444}
		case tar.TypeDir:
			out[name] = &fstest.MapFile{Mode: 0o555 | os.ModeDir}
		case tar.TypeSymlink:
			out[name] = &fstest.MapFile{Data: []byte(h.Linkname), Mode: os.ModeSymlink | 0o777}
		}
	}
}

// Fact is one entry of facts.json or facts_synthetic.json.
type Fact struct {
	Input     string `json:"input"`
	Folder    string `json:"unpacks_to"`
	Tier      string `json:"tier"`
	Kind      string `json:"kind"`
	Arch      string `json:"arch"`
	ArchFrom  string `json:"arch_from"`
	XMLOfDump string `json:"xml_of_dump"`

	Packages       int `json:"packages"`
	NUMANodes      int `json:"numa_nodes"`
	NUMALocalities int `json:"numa_localities"`
	Dies           int `json:"dies"`
	Clusters       int `json:"clusters"`
	L4             int `json:"l4"`
	L3             int `json:"l3"`
	L2             int `json:"l2"`
	Cores          int `json:"cores"`
	PUs            int `json:"pus"`
	LLCLevel       int `json:"llc_level"`
	LLC            int `json:"llc"`
	MemCaches      int `json:"memory_side_caches"`

	NotAllowed    string `json:"pus_not_allowed"`
	Unrepresented string `json:"pus_unrepresented"`

	Sets  *factSets       `json:"sets"`
	Views map[string]Fact `json:"views"`
}

type factSets struct {
	Machine string        `json:"machine"`
	Package []numberedRaw `json:"package"`
	NUMA    []numberedRaw `json:"numa"`
	Die     []string      `json:"die"`
	L3      []string      `json:"l3"`
	L2      []string      `json:"l2"`
	Cluster []string      `json:"cluster"`
	Core    []string      `json:"core"`
}

type numberedRaw struct {
	OS   *int   `json:"os"`
	CPUs string `json:"cpus"`
}

// ReadFacts reads a file of facts by input name.
func ReadFacts(t testing.TB, dir, name string) map[string]Fact {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]Fact{}
	if err := json.Unmarshal(b, &facts); err != nil {
		t.Fatal(err)
	}
	return facts
}
