package main

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

// TestExportedIsUsed: every exported identifier of a package that is not main is named by another
// package of the module, or belongs to what is: the types that a signature or a struct mentions,
// the constants of one group or of such a type. Errors (ErrX) belong to what returns them. Methods
// go by their name alone: one that another package selects from anything, or that some interface
// asks for, is used. Fields are not looked at. What stands in testdata/exported.golden is excused,
// each with the reason why; a line that excuses nothing fails as well.
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
		room := path.Dir(name)
		if !strings.HasSuffix(name, "_test.go") && f.Name.Name != "main" {
			x.declare(room, f)
		}
		x.use(room, f)
	}
	x.spread()
	excused := readAllowedImports(t, "testdata/exported.golden")
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

// excuse is the line that excuses a name: its own, or one of all that begins as it does.
func excuse(lines map[string]map[string]bool, name string) string {
	for line := range lines {
		if all, ok := strings.CutSuffix(line, "*"); line == name || ok && strings.HasPrefix(name, all) {
			return line
		}
	}
	return ""
}

// wellKnownMethods are asked for by interfaces of the standard library and of those that read YAML
// and flags.
const wellKnownMethods = `String Error Unwrap Is As MarshalText UnmarshalText MarshalYAML UnmarshalYAML MarshalJSON
	UnmarshalJSON Read Write Close ReadAt Seek Open Stat Len Less Swap Set Type ServeHTTP Header WriteHeader Flush`

// export is an exported identifier of a package: room.Name, or room.Type.Method.
type export struct {
	live     bool
	room     string
	method   string
	mentions []string // what it needs beside it, by the names of the package: types, its group of constants
}

type exports struct {
	declared map[string]*export
	uses     []string                   // room.Name that another package names
	selected map[string]map[string]bool // by selector the rooms that have it
	asked    map[string]bool            // methods of interfaces
}

func (x *exports) declare(room string, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, e := d.Name.Name, &export{room: room, mentions: mentioned(room, d.Type)}
			if d.Recv != nil {
				name, e.method = receiver(d.Recv.List[0].Type)+"."+name, name
			}
			if d.Name.IsExported() && ast.IsExported(name) {
				x.declared[room+"."+name] = e
			}
		case *ast.GenDecl:
			x.declareGroup(room, d)
		}
	}
}

func (x *exports) declareGroup(room string, d *ast.GenDecl) {
	var group []string // of constants
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				x.declared[room+"."+s.Name.Name] = &export{mentions: mentioned(room, s.Type)}
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if !n.IsExported() {
					continue
				}
				x.declared[room+"."+n.Name] = &export{mentions: mentioned(room, s)}
				x.declared[room+"."+n.Name].live = strings.HasPrefix(n.Name, "Err")
				if d.Tok == token.CONST {
					group = append(group, room+"."+n.Name)
				}
			}
		}
	}
	for _, name := range group {
		x.declared[name].mentions = append(x.declared[name].mentions, group...)
	}
	if spec, ok := d.Specs[0].(*ast.ValueSpec); ok && len(group) > 0 {
		if typ, ok := spec.Type.(*ast.Ident); ok && x.declared[room+"."+typ.Name] != nil {
			of := x.declared[room+"."+typ.Name]
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

// mentioned are the exported names of its own package in a declaration.
func mentioned(room string, n ast.Node) (names []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			if n.IsExported() {
				names = append(names, room+"."+n.Name)
			}
		}
		return true
	})
	return names
}

// use notes what a file names of other packages, the names that it selects, and the methods that
// its interfaces ask for.
func (x *exports) use(room string, f *ast.File) {
	imports := map[string]string{}
	for _, s := range f.Imports {
		of, ok := strings.CutPrefix(strings.Trim(s.Path.Value, `"`), "sandwich/")
		name := path.Base(of)
		if s.Name != nil {
			name = s.Name.Name
		}
		if ok && of != room {
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
			x.selected[n.Sel.Name][room] = true
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

// spread marks what is used, and what that mentions.
func (x *exports) spread() {
	for _, name := range x.uses {
		x.mark(name)
	}
	for name, e := range x.declared {
		elsewhere := len(x.selected[e.method])
		if x.selected[e.method][e.room] {
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
