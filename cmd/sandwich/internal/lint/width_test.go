package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Limits of lines, files and functions (DESIGN.md, section 2). A tab counts as four columns.
const (
	codeColumns    = 120
	commentColumns = 100
	fileLines      = 600
	functionLines  = 80
	// longText is the length from which a word in a string cannot be broken sensibly, such as a
	// line of CSV or a request.
	longText = 60
)

// TestWidth checks the width of lines and the length of files and functions. Lines of raw strings
// and of strings that cannot be broken are exempt, and so are indented comments (tables, formulas).
func TestWidth(t *testing.T) {
	for _, name := range moduleFiles(t) {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		if n := len(lines) - 1; n > fileLines {
			t.Errorf("%s has %d lines, above %d; split it, one idea per file", name, n, fileLines)
		}
		checkFunctions(t, fset, f)
		texts := linesOfTexts(fset, f)
		for i, line := range lines {
			if limit := columnsOf(line, texts[i+1]); columns(line) > limit {
				t.Errorf("%s:%d has %d columns, above %d", name, i+1, columns(line), limit)
			}
		}
	}
}

// columnsOf returns the number of columns that the line may have.
func columnsOf(line string, text bool) int {
	comment, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
	switch {
	case text, strings.HasPrefix(comment, "go:"), strings.HasPrefix(comment, "  "), strings.HasPrefix(comment, "\t"):
		return 1 << 30
	case ok:
		return commentColumns
	}
	return codeColumns
}

func columns(line string) int { return len([]rune(strings.ReplaceAll(line, "\t", "    "))) }

// linesOfTexts returns the numbers of the lines that contain part of a raw or unbreakable string.
func linesOfTexts(fset *token.FileSet, f *ast.File) map[int]bool {
	at := map[int]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || lit.Value[0] != '`' && widestWord(lit.Value) < longText {
			return true
		}
		for l := fset.Position(lit.Pos()).Line; l <= fset.Position(lit.End()).Line; l++ {
			at[l] = true
		}
		return true
	})
	return at
}

func widestWord(text string) int {
	longest := 0
	for _, w := range strings.Fields(text) {
		longest = max(longest, len(w))
	}
	return longest
}

func checkFunctions(t *testing.T, fset *token.FileSet, f *ast.File) {
	t.Helper()
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		from, to := fset.Position(fn.Pos()), fset.Position(fn.End())
		if n := to.Line - from.Line + 1; n > functionLines {
			t.Errorf("%s:%d: %s has %d lines, above %d", from.Filename, from.Line, fn.Name.Name, n, functionLines)
		}
	}
}
