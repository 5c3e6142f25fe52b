package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
)

// tree returns a program with texts that roff would interpret.
func tree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	top := &cobra.Command{Use: "top", Short: "Do it", Version: "1", Run: run}
	top.CompletionOptions.DisableDefaultCmd = true
	odd := &cobra.Command{Use: "odd [FILE]", Short: `Print "it's"`, Run: run,
		Long:    ".hidden and \\n text\n'quoted line\n\n  literal: 1\n    deeper: -2\nend",
		Example: "  top odd --size 1\n  .x"}
	odd.Flags().StringP("name", "n", "x", "the `word`; a \\ too")
	odd.Flags().String("old", "", "")
	odd.Flags().Int("size", 3, "size (default: 3, or more)")
	if err := odd.Flags().MarkHidden("old"); err != nil {
		panic(err)
	}
	top.AddCommand(odd, &cobra.Command{Use: "secret", Hidden: true, Run: run}, NewMan())
	return top
}

func runMan(t *testing.T, dir string) error {
	t.Helper()
	c := tree()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs([]string{"man", dir})
	return c.Execute()
}

func TestPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	dir := filepath.Join(t.TempDir(), "new", "man1")
	if err := runMan(t, dir); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range names {
		names[i] = filepath.Base(n)
	}
	if got := strings.Join(names, " "); got != "top-odd.1 top.1" {
		t.Errorf("pages %s, want top-odd.1 top.1", got)
	}
	data, err := os.ReadFile(filepath.Join(dir, "top-odd.1"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{
		`.TH "TOP\-ODD" 1 "1970-01-02" "1" "User commands"` + "\n",
		`top\-odd \- Print "it\(aqs"` + "\n",
		`.B "top odd [FILE] [flags]"` + "\n",
		`\&.hidden and \en text` + "\n" + `\&\(aqquoted line` + "\n",
		".nf\nliteral: 1\n  deeper: \\-2\n.fi\n",
		`\fB\-n\fR, \fB\-\-name\fR\fI word\fR` + "\n" + `the word; a \e too (default: x)` + "\n",
		"\nsize (default: 3, or more)\n",
		".nf\ntop odd \\-\\-size 1\n\\&.x\n.fi\n",
		".BR top (1)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, `\-old`) {
		t.Error("a hidden flag is listed")
	}
}

// TestPagesAreReproducible compares the pages of two runs.
func TestPagesAreReproducible(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	read := func() string {
		dir := t.TempDir()
		if err := runMan(t, dir); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "top.1"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if a, b := read(), read(); a != b || !strings.HasPrefix(a, `.TH "TOP" 1 "" "1"`) {
		t.Errorf("pages differ or have a date:\n%s\n%s", a, b)
	}
}

func TestManRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := runMan(t, file); exit.Code(err) != exit.Input {
		t.Errorf("a file as the folder: %v, exit code %d, want %d", err, exit.Code(err), exit.Input)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	err := runMan(t, t.TempDir())
	if exit.Code(err) != exit.Input || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("an invalid date: %v, exit code %d, want %d", err, exit.Code(err), exit.Input)
	}
}
