package microkernel

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// comparison is the check of docs/contributing/add-isa.md: a line that compares an instruction set,
// a dot product or a form.
const comparison = `(==|!=|<|>|case|switch) *([a-z.A-Z]*\.(ISA|Dot|Form)\b *\{|[^"]*microkernel\.` +
	`(Go|AVX2|AVX512|NEON|NoDot|VNNI|AVXVNNI|MAdd|MMLA|SDot|MulL|AMX|MOPA|DPBF16|BFMMLA|BFDot|Load|Embed|Lane|Outer)\b)` +
	`|\.(Dot|Form) *(==|!=)`

// TestOnlyBackendsCompare checks that no package outside microkernel compares instruction sets, dot
// products or forms. Other packages ask a spec or a target for its capabilities, so that a new
// instruction set needs only a backend.
func TestOnlyBackendsCompare(t *testing.T) {
	forbidden := regexp.MustCompile(comparison)
	for _, line := range []string{"if s.ISA == microkernel.Go {", "case microkernel.VNNI:", "if s.Form != f {",
		"switch s.Dot {"} {
		if !forbidden.MatchString(line) {
			t.Errorf("%q is not found", line)
		}
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == filepath.Join("..", "microkernel") || d.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for i, line := range strings.Split(string(text), "\n") {
			if forbidden.MatchString(line) {
				t.Errorf("%s:%d: %s: ask the spec or its target", path, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "contributing", "add-isa.md"))
	if err != nil || !strings.Contains(string(page), comparison) {
		t.Errorf("docs/contributing/add-isa.md does not list the check (%v)", err)
	}
}
