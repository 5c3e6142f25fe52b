package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the root of the module, seen from this package.
const module = "../.."

// TestImportDirection holds the layout: what a package of the module imports must be in the golden
// list, whatever the system and the architecture it is built for; an arrow of the list that no file
// draws any more must go; and a few packages of the world may only be imported by the one room that
// owns them.
func TestImportDirection(t *testing.T) {
	allowed := readAllowedImports(t, "testdata/imports.golden")
	drawn := map[string]map[string]bool{}
	for _, f := range moduleFiles(t) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		room := path.Dir(f)
		if drawn[room] == nil {
			drawn[room] = map[string]bool{}
		}
		for _, imp := range fileImports(t, f) {
			drawn[room][imp] = true
		}
	}
	for _, room := range slices.Sorted(maps.Keys(drawn)) {
		may, known := allowed[room]
		if !known {
			t.Errorf("%s is not in testdata/imports.golden: every package is a room of the design", room)
			continue
		}
		for imp := range drawn[room] {
			checkImport(t, room, may, imp)
		}
	}
	checkStale(t, allowed, drawn)
}

// checkStale refuses rooms and arrows of the list that no longer exist.
func checkStale(t *testing.T, allowed, drawn map[string]map[string]bool) {
	t.Helper()
	for room, may := range allowed {
		if drawn[room] == nil {
			t.Errorf("testdata/imports.golden lists %s, which has no Go file", room)
			continue
		}
		for imp := range may {
			if imp != "*" && !drawn[room]["sandwich/"+imp] {
				t.Errorf("testdata/imports.golden lets %s import %s, which it no longer does", room, imp)
			}
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

// moduleFiles are the Go files of the module, relative to its root with slashes; those of modules
// inside it and of hidden folders are not among them.
func moduleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(module, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != module {
			_, inner := os.Stat(filepath.Join(p, "go.mod"))
			if inner == nil || strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
		}
		if rel, err := filepath.Rel(module, p); err == nil && strings.HasSuffix(p, ".go") {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func fileImports(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(module, file), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, s := range f.Imports {
		imp, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, imp)
	}
	return imports
}
