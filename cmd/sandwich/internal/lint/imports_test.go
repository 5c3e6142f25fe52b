package lint

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestImportDirection checks each import between packages of the module, for every system and
// architecture, against testdata/imports.golden. It refuses unused entries of the golden file, cgo,
// and imports that only some packages may have.
func TestImportDirection(t *testing.T) {
	allowed := readList(t, "testdata/imports.golden")
	found := map[string]map[string]bool{}
	for _, f := range moduleFiles(t) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		pkg := path.Dir(f)
		if found[pkg] == nil {
			found[pkg] = map[string]bool{}
		}
		for _, imp := range fileImports(t, f) {
			found[pkg][imp] = true
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(found)) {
		may, known := allowed[pkg]
		if !known {
			t.Errorf("%s is not in testdata/imports.golden; add it with the imports that the layout allows", pkg)
			continue
		}
		for imp := range found[pkg] {
			checkImport(t, pkg, may, imp)
		}
	}
	checkStale(t, allowed, found)
}

// checkStale refuses packages and imports of the list that no longer exist.
func checkStale(t *testing.T, allowed, found map[string]map[string]bool) {
	t.Helper()
	for pkg, may := range allowed {
		if found[pkg] == nil {
			t.Errorf("testdata/imports.golden lists %s, which has no Go file", pkg)
			continue
		}
		for imp := range may {
			if imp != "*" && !found[pkg][modulePrefix()+imp] {
				t.Errorf("testdata/imports.golden lets %s import %s, which it no longer does", pkg, imp)
			}
		}
	}
}

func checkImport(t *testing.T, pkg string, may map[string]bool, imp string) {
	t.Helper()
	if own, ok := strings.CutPrefix(imp, modulePrefix()); ok {
		if !may[own] && !may["*"] {
			t.Errorf("%s imports %s, which the layout does not allow", pkg, own)
		}
		return
	}
	if imp == "C" {
		t.Errorf("%s uses cgo", pkg)
	}
	if imp == "github.com/spf13/cobra" && !strings.HasPrefix(pkg, "cmd/") {
		t.Errorf("%s imports cobra: only cmd may", pkg)
	}
	server := pkg == "runtime/server" || strings.HasPrefix(pkg, "runtime/server/")
	if imp == "net/http" && !strings.HasPrefix(pkg, "cmd/") && !server {
		t.Errorf("%s imports net/http: only runtime/server, its sub-packages and cmd may", pkg)
	}
}
