package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestExportedIsUsed checks that another package of the module uses each exported identifier. An
// identifier also counts as used if a used declaration mentions it (types of signatures and
// structs, constants of the same group or type), and so does each error variable (ErrX). Methods
// are matched by name only: a selector in another package or a method of any interface is a use.
// Fields are not checked. testdata/exported.golden lists exceptions with their reasons; an entry
// without effect fails the test.
func TestExportedIsUsed(t *testing.T) {
	x := &exports{declared: map[string]*export{}, selected: map[string]map[string]bool{}, asked: map[string]bool{}}
	for _, name := range strings.Fields(wellKnownMethods) {
		x.asked[name] = true
	}
	for _, name := range moduleFiles(t) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(module, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		pkg := path.Dir(name)
		if !strings.HasSuffix(name, "_test.go") && f.Name.Name != "main" {
			x.declare(pkg, f)
		}
		x.use(pkg, f)
	}
	x.spread()
	excused := readList(t, "testdata/exported.golden")
	idle := maps.Clone(excused)
	for _, name := range slices.Sorted(maps.Keys(x.declared)) {
		if x.declared[name].live {
			continue
		}
		by := excuse(excused, name)
		if by == "" {
			t.Errorf("%s is exported and no other package uses it: unexport it, delete it, or say in "+
				"testdata/exported.golden why not", name)
		}
		delete(idle, by)
	}
	for name := range idle {
		t.Errorf("testdata/exported.golden excuses %s, and there is nothing to excuse", name)
	}
}

// excuse returns the entry that covers name: name itself, or a prefix followed by *.
func excuse(lines map[string]map[string]bool, name string) string {
	for line := range lines {
		if all, ok := strings.CutSuffix(line, "*"); line == name || ok && strings.HasPrefix(name, all) {
			return line
		}
	}
	return ""
}

// wellKnownMethods lists methods of interfaces of the standard library and of the YAML and flag
// packages.
const wellKnownMethods = `String Error Unwrap Is As MarshalText UnmarshalText MarshalYAML UnmarshalYAML MarshalJSON
	UnmarshalJSON Read Write Close ReadAt Seek Open Stat Len Less Swap Set Type ServeHTTP Header WriteHeader Flush`

// export is an exported identifier of a package: package.Name, or package.Type.Method.
type export struct {
	live     bool
	pkg      string
	method   string
	mentions []string // qualified names in its declaration: types, constants of its group
}

type exports struct {
	declared map[string]*export
	uses     []string                   // qualified names that other packages use
	selected map[string]map[string]bool // packages that contain a selector
	asked    map[string]bool            // methods of interfaces
}

func (x *exports) declare(pkg string, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, e := d.Name.Name, &export{pkg: pkg, mentions: mentioned(pkg, d.Type)}
			if d.Recv != nil {
				name, e.method = receiver(d.Recv.List[0].Type)+"."+name, name
			}
			if d.Name.IsExported() && ast.IsExported(name) {
				x.declared[pkg+"."+name] = e
			}
		case *ast.GenDecl:
			x.declareGroup(pkg, d)
		}
	}
}

func (x *exports) declareGroup(pkg string, d *ast.GenDecl) {
	var group []string // of constants
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				x.declared[pkg+"."+s.Name.Name] = &export{mentions: mentioned(pkg, s.Type)}
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if !n.IsExported() {
					continue
				}
				x.declared[pkg+"."+n.Name] = &export{mentions: mentioned(pkg, s)}
				x.declared[pkg+"."+n.Name].live = strings.HasPrefix(n.Name, "Err")
				if d.Tok == token.CONST {
					group = append(group, pkg+"."+n.Name)
				}
			}
		}
	}
	for _, name := range group {
		x.declared[name].mentions = append(x.declared[name].mentions, group...)
	}
	if spec, ok := d.Specs[0].(*ast.ValueSpec); ok && len(group) > 0 {
		if typ, ok := spec.Type.(*ast.Ident); ok && x.declared[pkg+"."+typ.Name] != nil {
			of := x.declared[pkg+"."+typ.Name]
			of.mentions = append(of.mentions, group...)
		}
	}
}

func receiver(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// mentioned returns the exported names of the declaration's own package in it.
func mentioned(pkg string, n ast.Node) (names []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			if n.IsExported() {
				names = append(names, pkg+"."+n.Name)
			}
		}
		return true
	})
	return names
}

// use records which names of other packages a file uses, its selectors, and the methods of its
// interfaces.
func (x *exports) use(pkg string, f *ast.File) {
	imports := map[string]string{}
	for _, s := range f.Imports {
		of, ok := strings.CutPrefix(strings.Trim(s.Path.Value, `"`), modulePrefix())
		name := path.Base(of)
		if s.Name != nil {
			name = s.Name.Name
		}
		if ok && of != pkg {
			imports[name] = of
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok && imports[p.Name] != "" {
				x.uses = append(x.uses, imports[p.Name]+"."+n.Sel.Name)
			}
			if x.selected[n.Sel.Name] == nil {
				x.selected[n.Sel.Name] = map[string]bool{}
			}
			x.selected[n.Sel.Name][pkg] = true
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				for _, name := range m.Names {
					x.asked[name.Name] = true
				}
			}
		}
		return true
	})
}

// spread marks used identifiers and, transitively, the identifiers that their declarations mention.
func (x *exports) spread() {
	for _, name := range x.uses {
		x.mark(name)
	}
	for name, e := range x.declared {
		elsewhere := len(x.selected[e.method])
		if x.selected[e.method][e.pkg] {
			elsewhere--
		}
		if e.method != "" && (x.asked[e.method] || elsewhere > 0) {
			x.mark(name)
		}
	}
}

func (x *exports) mark(name string) {
	e := x.declared[name]
	if e == nil || e.live {
		return
	}
	e.live = true
	for _, m := range e.mentions {
		x.mark(m)
	}
}
