// Command rename renames the module of a checkout: the module lines of all go.mod files and the
// imports of all Go files. The Makefile runs it: make module MODULE=host/owner/name.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

func main() {
	dir := flag.String("dir", ".", "root of the module")
	to := flag.String("module", "", "new path of the module")
	flag.Parse()
	n, err := rename(*dir, *to)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("renamed the module to %s in %d files\n", *to, n)
}

// editors has the function for each kind of file, by extension. It returns the text after
// the change of the module's path.
var editors = map[string]func(old []byte, from, to string) ([]byte, error){".go": editGo, ".mod": editMod}

// rename renames the module in dir and the modules nested in it. It returns the number of changed
// files.
func rename(dir, to string) (changed int, err error) {
	if err := module.CheckPath(to); err != nil {
		return 0, fmt.Errorf("%w; give a path such as example.com/owner/sandwich", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return 0, err
	}
	from := modfile.ModulePath(data)
	if from == "" {
		return 0, errors.New("go.mod has no module line")
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); path != dir && (n[0] == '.' || n == "testdata" || n == "node_modules" || n == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		edit := editors[filepath.Ext(path)]
		if edit == nil {
			return nil
		}
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, err := edit(old, from, to)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if bytes.Equal(old, text) {
			return nil
		}
		changed++
		return os.WriteFile(path, text, 0o644)
	})
	return changed, err
}

// renamed returns a path of the module from with the prefix to; false for other paths.
func renamed(path, from, to string) (string, bool) {
	rest, ok := strings.CutPrefix(path, from)
	return to + rest, ok && (rest == "" || rest[0] == '/')
}

// editGo replaces the imports of a Go file.
func editGo(old []byte, from, to string) ([]byte, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", old, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	text, changed := slices.Clone(old), false
	for _, s := range slices.Backward(f.Imports) {
		path, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			return nil, err
		}
		if path, ok := renamed(path, from, to); ok {
			at := files.Position(s.Path.Pos()).Offset
			text = slices.Replace(text, at, at+len(s.Path.Value), []byte(strconv.Quote(path))...)
			changed = true
		}
	}
	if !changed {
		return old, nil
	}
	return format.Source(text)
}

// editMod replaces the path of a go.mod file, if it is that of the module or of one nested in it.
func editMod(old []byte, from, to string) ([]byte, error) {
	f, err := modfile.ParseLax("go.mod", old, nil)
	if err != nil {
		return nil, err
	}
	if f.Module == nil {
		return old, nil
	}
	path, ok := renamed(f.Module.Mod.Path, from, to)
	if !ok {
		return old, nil
	}
	at, end := f.Module.Syntax.Start.Byte, f.Module.Syntax.End.Byte
	return slices.Concat(old[:at], []byte("module "+path), old[end:]), nil
}
