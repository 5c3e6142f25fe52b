package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var wholeTree = flag.Bool("whole", false, "also rename a copy of the source tree and build it; minutes")

const sourceTree = "../../../../.."

// fixture is a module with every kind of import.
var fixture = map[string]string{
	"go.mod": "module old // the product\n\ngo 1.24\n",
	"main.go": `package main

import (
	"fmt"

	alias "old/b"
	. "old/c"
	"older/x"
)

const text = "old/b"

func main() { fmt.Println(alias.Version, C, text, x.X) }
`,
	"b/b.go":            "package b\n\nimport _ \"old\x2fc\"\n\nvar Version = \"dev\"\n",
	"c/c.go":            "//go:build !never\n\npackage c\n\nconst C = \"c\"\n",
	"c/never.go":        "//go:build never\n\npackage c\n\nimport \"old/b\"\n\nvar X = b.Version\n",
	"older/go.mod":      "module older\n",
	"older/x/x.go":      "package x\n\nconst X = \"x\"\n",
	"nested/go.mod":     "module old/nested\n\ngo 1.24\n",
	"testdata/t.go":     "package t\n\nimport \"old/b\"\n",
	".hidden/hidden.go": "package t\n\nimport \"old/b\"\n",
}

func writeFixture(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range fixture {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRename renames a module, and then back.
func TestRename(t *testing.T) {
	const to = "example.com/owner/new"
	dir := writeFixture(t)
	n, err := rename(dir, to)
	if err != nil || n != 5 {
		t.Fatalf("renamed %d files (%v), want 5", n, err)
	}
	for name, want := range map[string]string{
		"go.mod": "module " + to + " // the product\n",
		"main.go": "\talias \"" + to + "/b\"\n\t. \"" + to + "/c\"\n\t\"older/x\"\n)\n\n" +
			"const text = \"old/b\"\n",
		"b/b.go":            `import _ "` + to + `/c"`,
		"c/never.go":        `import "` + to + `/b"`,
		"nested/go.mod":     "module " + to + "/nested\n",
		"older/go.mod":      fixture["older/go.mod"],
		"testdata/t.go":     fixture["testdata/t.go"],
		".hidden/hidden.go": fixture[".hidden/hidden.go"],
	} {
		if got := read(t, filepath.Join(dir, name)); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", name, got, want)
		}
	}
	if _, err := rename(dir, "old"); err == nil || !strings.Contains(err.Error(), "example.com/owner/sandwich") {
		t.Errorf("a path without a dot in its first element: %v", err)
	}
	if got := read(t, filepath.Join(dir, "go.mod")); !strings.HasPrefix(got, "module "+to) {
		t.Error("a refused path changed a file")
	}
}

func TestRenameRefusals(t *testing.T) {
	for _, path := range []string{"", "/x", "a b.com/c", "example.com/a/../b", "example.com/"} {
		if _, err := rename(t.TempDir(), path); err == nil {
			t.Errorf("the path %q was accepted", path)
		}
	}
	if _, err := rename(t.TempDir(), "example.com/a"); err == nil {
		t.Error("a folder without go.mod was accepted")
	}
}

// TestImportsAreTheOnlyUses checks that the source tree has the path of the module only in imports,
// so that renaming them is enough.
func TestImportsAreTheOnlyUses(t *testing.T) {
	path := regexp.QuoteMeta("sandwich" + "/")
	use := regexp.MustCompile("[\"`]" + path)
	imported := regexp.MustCompile(`^(import )?\s*([A-Za-z0-9_.]+ )?"` + path + `[a-z0-9_/]+"$`)
	err := filepath.WalkDir(sourceTree, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != sourceTree && (d.Name()[0] == '.' && d.Name() != ".." || d.Name() == "testdata" ||
			d.Name() == "bin" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !use.Match(data) {
			return nil
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\n")
			if use.MatchString(line) && !imported.MatchString(line) {
				t.Errorf("%s: %s: take the path of the module from go.mod or the build information", name, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRenamedTreeBuilds renames a copy of the source tree and builds it.
func TestRenamedTreeBuilds(t *testing.T) {
	if !*wholeTree {
		t.Skip("building the whole tree takes minutes; -whole runs it")
	}
	const to = "example.com/owner/sandwich"
	dir := t.TempDir()
	run := func(in, program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = in
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", program, args, err, out)
		}
		return string(out)
	}
	run(sourceTree, "sh", "-c", fmt.Sprintf("git ls-files -z | xargs -0 tar -cf - | tar -xf - -C '%s'", dir))
	if _, err := rename(dir, to); err != nil {
		t.Fatal(err)
	}
	run(dir, "make", "build", "VERSION=9.9.9")
	if got := run(dir, filepath.Join(dir, "bin/sandwich"), "version"); !strings.HasPrefix(got, "sandwich 9.9.9 ") {
		t.Errorf("the renamed program says %q", got)
	}
	run(dir, "go", "vet", "./cmd/sandwich/...", "./plans/...")
	run(dir, "go", "test", "./cmd/sandwich/internal/lint", "./cmd/sandwich/internal/build")
}
