// Package lint holds tests over the whole module: import directions, unused exports, the size of
// files and packages, strongly connected files, and the language of names and prose.
//
// Each rule that the module does not meet everywhere yet has a list of exceptions in testdata. A
// list only shrinks: an entry that is no longer needed fails the test.
package lint

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/modfile"
)

// module is the root of the module, relative to this package.
const module = "../../../.."

// modulePrefix returns the path of the module with a slash, by which the imports of its packages
// begin.
var modulePrefix = sync.OnceValue(func() string {
	data, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		panic(err)
	}
	return modfile.ModulePath(data) + "/"
})

// moduleFiles returns the Go files of the module, relative to its root, with slashes. Files of
// nested modules and of hidden folders are left out.
func moduleFiles(t *testing.T) []string {
	t.Helper()
	return filesOf(t, ".go")
}

// filesOf returns the files of the module whose names end in suffix, without build output.
func filesOf(t *testing.T, suffix string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(module, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != module {
			_, inner := os.Stat(filepath.Join(p, "go.mod"))
			foreign := inner == nil || d.Name() == "node_modules"
			if foreign || strings.HasPrefix(d.Name(), ".") || p == filepath.Join(module, "bin") {
				return fs.SkipDir
			}
		}
		if rel, err := filepath.Rel(module, p); err == nil && strings.HasSuffix(p, suffix) {
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

// readList reads a file of "name: word word ..." lines; # starts a comment.
func readList(t *testing.T, file string) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, words, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		list[name] = map[string]bool{}
		for _, word := range strings.Fields(words) {
			list[name][word] = true
		}
	}
	return list
}
