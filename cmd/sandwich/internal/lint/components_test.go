package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// Limits of a package, tests not counted (DESIGN.md, section 2).
const (
	packageFiles   = 20 // files of a package
	componentFiles = 5  // files of a package that all reference each other
)

// TestPackageStructure checks the number of files of each package and the size of its largest
// strongly connected set of files. File A references file B if A uses an identifier, a method or a
// field that B declares, by go/types. testdata/structure.golden has bounds for packages that are
// above a limit; they may only fall.
func TestPackageStructure(t *testing.T) {
	known := readStructure(t)
	for _, p := range loadModule(t) {
		name := strings.TrimPrefix(p.PkgPath, modulePrefix())
		files, component := len(p.Syntax), largestComponent(p)
		bound, listed := known[name]
		delete(known, name)
		checkLimit(t, name, "files", files, max(packageFiles, bound.files))
		checkLimit(t, name, "files that reference each other", component, max(componentFiles, bound.component))
		if listed && files <= packageFiles && component <= componentFiles {
			t.Errorf("%s is within the limits; remove it from testdata/structure.golden", name)
		}
		if testing.Verbose() {
			t.Logf("%s: %d files, %d reference each other", name, files, component)
		}
	}
	for name := range known {
		t.Errorf("testdata/structure.golden lists %s, which has no Go file on this system; remove the entry", name)
	}
}

func checkLimit(t *testing.T, pkg, what string, n, limit int) {
	t.Helper()
	if n > limit {
		t.Errorf("%s has %d %s, above %d; divide the package by idea", pkg, n, what, limit)
	}
}

// structure has the bounds of a package above a limit.
type structure struct{ files, component int }

func readStructure(t *testing.T) map[string]structure {
	t.Helper()
	text, err := os.ReadFile("testdata/structure.golden")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]structure{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] == "#" {
			continue
		}
		files, err1 := strconv.Atoi(f[1])
		component, err2 := strconv.Atoi(f[2])
		if err1 != nil || err2 != nil {
			t.Fatalf("testdata/structure.golden: %q is not a package and two numbers", strings.TrimSpace(line))
		}
		known[f[0]] = structure{files, component}
	}
	return known
}

// loadModule returns the packages of the module with types, without tests.
func loadModule(t *testing.T) []*packages.Package {
	t.Helper()
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo | packages.NeedExportFile
	all, err := packages.Load(&packages.Config{Mode: mode, Dir: module}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, e := range p.Errors {
			t.Fatalf("%s: %v", p.PkgPath, e)
		}
	}
	return slices.DeleteFunc(all, func(p *packages.Package) bool { return len(p.Syntax) == 0 })
}

// largestComponent returns the size of the largest strongly connected set of files of a package.
func largestComponent(p *packages.Package) int {
	largest := 0
	for _, c := range components(fileReferences(p)) {
		largest = max(largest, len(c))
	}
	return largest
}

// fileReferences returns, for each file of a package, the files that declare what it uses.
func fileReferences(p *packages.Package) map[string]map[string]bool {
	file := func(n interface{ Pos() token.Pos }) string {
		return filepath.Base(p.Fset.Position(n.Pos()).Filename)
	}
	refs := map[string]map[string]bool{}
	for _, f := range p.Syntax {
		from := file(f)
		refs[from] = map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			used := p.TypesInfo.Uses[id]
			if used == nil || used.Pkg() != p.Types || !used.Pos().IsValid() || isLocal(used) {
				return true
			}
			if to := file(used); to != from {
				refs[from][to] = true
			}
			return true
		})
	}
	return refs
}

// isLocal reports whether an object is declared in a function.
func isLocal(o types.Object) bool {
	if v, ok := o.(*types.Var); ok && v.IsField() {
		return false
	}
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return false
	}
	return o.Parent() != o.Pkg().Scope()
}

// components returns the strongly connected components of a graph (Tarjan 1972).
func components(refs map[string]map[string]bool) (out [][]string) {
	index, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(v string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, onStack[v] = append(stack, v), true
		for w := range refs[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if onStack[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		for _, w := range stack[at:] {
			onStack[w] = false
		}
		out = append(out, slices.Clone(stack[at:]))
		stack = stack[:at]
	}
	for _, v := range slices.Sorted(maps.Keys(refs)) {
		if index[v] == 0 {
			visit(v)
		}
	}
	return out
}

func TestComponents(t *testing.T) {
	graph := map[string]map[string]bool{
		"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true}, "d": {"e": true},
		"e": {"d": true}, "f": {"a": true},
	}
	var got []string
	for _, c := range components(graph) {
		slices.Sort(c)
		got = append(got, fmt.Sprint(c))
	}
	slices.Sort(got)
	if want := []string{"[a b c]", "[d e]", "[f]"}; !slices.Equal(got, want) {
		t.Errorf("components are %v, want %v", got, want)
	}
}
