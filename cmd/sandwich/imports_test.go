package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

type listedPackage struct {
	ImportPath string
	Imports    []string
}

// TestImportDirection holds the layout: the imports of every package of the module must be in the
// golden list, and a few packages of the world may only be imported by the one room that owns them.
func TestImportDirection(t *testing.T) {
	allowed := readAllowedImports(t, "testdata/imports.golden")
	for _, p := range listModule(t) {
		room := strings.TrimPrefix(p.ImportPath, "sandwich/")
		may, known := allowed[room]
		if !known {
			t.Errorf("%s is not in testdata/imports.golden: every package is a room of the design", room)
			continue
		}
		for _, imp := range p.Imports {
			checkImport(t, room, may, imp)
		}
	}
}

func checkImport(t *testing.T, room string, may map[string]bool, imp string) {
	t.Helper()
	if own, ok := strings.CutPrefix(imp, "sandwich/"); ok {
		if !may[own] && !may["*"] {
			t.Errorf("%s imports %s, which the layout does not allow", room, own)
		}
		return
	}
	if imp == "C" {
		t.Errorf("%s uses cgo", room)
	}
	if imp == "github.com/spf13/cobra" && !strings.HasPrefix(room, "cmd/") {
		t.Errorf("%s imports cobra: only cmd may", room)
	}
	if imp == "net/http" && !strings.HasPrefix(room, "cmd/") && room != "runtime/server" {
		t.Errorf("%s imports net/http: only runtime/server and cmd may", room)
	}
}

func readAllowedImports(t *testing.T, file string) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]map[string]bool{}
	for line := range strings.Lines(string(text)) {
		room, list, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(room, "#") {
			continue
		}
		allowed[room] = map[string]bool{}
		for _, imp := range strings.Fields(list) {
			allowed[room][imp] = true
		}
	}
	return allowed
}

func listModule(t *testing.T) []listedPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "sandwich/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
