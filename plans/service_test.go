package plans

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/topotree"
)

func TestNewServiceChecks(t *testing.T) {
	set, none := topotree.NewCPUSet, topotree.CPUSet{}
	two := []Rank{{set(0, 1), 0}, {set(2, 3), 1}}
	s, err := NewService(two, set(0, 1, 2, 3), set(0, 2))
	if err != nil || s.TP() != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	for want, c := range map[string]struct {
		ranks           []Rank
		prefill, decode topotree.CPUSet
	}{
		"0 ranks":                   {nil, set(0), set(0)},
		"ranks share a PU":          {[]Rank{{set(0, 1), 0}, {set(1, 2), 0}}, set(0, 2), set(0, 2)},
		"rank 1 has no PU":          {[]Rank{{set(0), 0}, {none, 0}}, set(0), set(0)},
		"NUMA node -2":              {[]Rank{{set(0), -2}}, set(0), set(0)},
		"NUMA node 65537":           {[]Rank{{set(0), 65537}}, set(0), set(0)},
		"prefill has no PUs":        {two, none, set(0, 2)},
		"decode uses the PUs 9":     {two, set(0, 2), set(0, 2, 9)},
		"has no PU that works in d": {two, set(0, 2), set(0, 1)},
	} {
		if _, err := NewService(c.ranks, c.prefill, c.decode); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal that names %q, got %v", want, err)
		}
	}
}

// TestServiceHasOneMaker checks that only service.go makes a ServiceConfig from ranks and PUs.
// Empty values next to an error and tests are exempt.
func TestServiceHasOneMaker(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			path == filepath.Join("..", "plans", "service.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok && len(lit.Elts) > 0 && typeName(lit.Type) == "ServiceConfig" {
				t.Errorf("%s makes a ServiceConfig: use NewService", path)
			}
			return true
		})
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
