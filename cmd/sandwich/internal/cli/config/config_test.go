package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// values of the flags of the test commands
type given struct {
	threads int
	listen  string
	hosts   []string
}

// testRoot returns a program with the commands serve and plan check.
func testRoot(g *given) *cobra.Command {
	root := &cobra.Command{Use: "sandwich", SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return Apply(c) }}
	AddFlag(root)
	run := func(*cobra.Command, []string) error { return nil }
	serve := &cobra.Command{Use: "serve", RunE: run}
	serve.Flags().IntVar(&g.threads, "threads", 2, "workers")
	serve.Flags().StringVar(&g.listen, "listen", "127.0.0.1:8080", "address")
	serve.Flags().StringArrayVar(&g.hosts, "allow-host", nil, "names")
	plan := &cobra.Command{Use: "plan"}
	check := &cobra.Command{Use: "check", RunE: run}
	check.Flags().IntVar(&g.threads, "threads", 3, "workers")
	plan.AddCommand(check)
	root.AddCommand(serve, plan, NewConfig())
	return root
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOrder checks that a flag comes before the environment, that before the mapping of the
// command, that before the keys of all commands, and those before the default.
func TestOrder(t *testing.T) {
	path := writeConfig(t, "threads: 7\nlisten: a:1\nserve:\n  threads: 8\n  allow-host: [x, \"y\"]\nplan:\n  check:\n"+
		"    threads: 9\n")
	for _, c := range []struct {
		args string
		env  string
		want given
	}{
		{"serve", "", given{8, "a:1", []string{"x", "y"}}},
		{"serve --threads 5 --allow-host z", "", given{5, "a:1", []string{"z"}}},
		{"serve", "6", given{6, "a:1", []string{"x", "y"}}},
		{"serve --threads 5", "6", given{5, "a:1", []string{"x", "y"}}},
		{"plan check", "", given{threads: 9}},
	} {
		if c.env != "" {
			t.Setenv("SANDWICH_THREADS", c.env)
		} else {
			os.Unsetenv("SANDWICH_THREADS")
		}
		var g given
		root := testRoot(&g)
		root.SetArgs(append(strings.Fields(c.args), "--config", path))
		if err := root.Execute(); err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		if g.threads != c.want.threads || strings.HasPrefix(c.args, "serve") && (g.listen != c.want.listen ||
			strings.Join(g.hosts, " ") != strings.Join(c.want.hosts, " ")) {
			t.Errorf("%s with SANDWICH_THREADS=%s: %+v, want %+v", c.args, c.env, g, c.want)
		}
	}
}

// TestRefusals checks the messages for files that are not valid.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"serve:\n  lisen: a:1\n":        "c.yaml:2: unknown setting of sandwich serve: lisen; did you mean listen?",
		"sevre:\n  listen: a:1\n":       "c.yaml:1: unknown command: sevre; did you mean serve?",
		"config: x\n":                   "unknown setting: config",
		"threads: many\n":               "c.yaml:1: threads: many: ",
		"threads: [1, 2]\n":             "c.yaml:1: threads takes one value, not a list",
		"threads:\n":                    "threads: give a value or a list of values",
		"allow-host: []\n":              "the list is empty",
		"allow-host: [[x]]\n":           "give a value or a list of values",
		"threads: 1\nthreads: 2\n":      "threads",
		"- threads\n":                   "write settings as lines of the form name: value",
		"threads: \"\n":                 "c.yaml: ",
		"listen: *x\n":                  "unknown anchor",
		strings.Repeat("a", 1<<20) + "": "c.yaml",
		"serve: 8080\n":                 "c.yaml:1: serve is a command; write its settings below it",
		"threads: {a: 1}\n":             "c.yaml:1: threads is a setting; give a value",
		"plan:\n  check:\n    listen: a\n": "c.yaml:3: unknown setting of sandwich plan check: listen; it is one of " +
			"sandwich serve",
		"plan:\n  chekc:\n    threads: 1\n": "unknown command of sandwich plan: chekc; did you mean check?",
		"serve:\n  port: 80\n":              "unknown setting of sandwich serve: port; did you mean listen?",
		"threads: 1\n---\nthreads: 2\n":     "the file has several documents",
		"threads: 1.5\n":                    "c.yaml:1: threads: 1.5: write a whole number",
		"serve:\n\tthreads: 1\n":            "c.yaml: ",
	} {
		var g given
		root := testRoot(&g)
		root.SetArgs([]string{"serve", "--config", writeConfig(t, text)})
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	t.Setenv("SANDWICH_CONFIG", filepath.Join(t.TempDir(), "none"))
	root := testRoot(new(given))
	root.SetArgs([]string{"serve"})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("a missing file: %v", err)
	}
}

// TestEmptyFiles checks files without settings: empty ones, and those in which all settings are
// comments, as config print writes them.
func TestEmptyFiles(t *testing.T) {
	var printed strings.Builder
	root := testRoot(new(given))
	root.SetOut(&printed)
	root.SetArgs([]string{"config", "print", "plan", "check"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "null\n", "serve:\n", "serve: {}\n", printed.String()} {
		var g given
		root := testRoot(&g)
		root.SetArgs([]string{"serve", "--config", writeConfig(t, text)})
		if err := root.Execute(); err != nil || g.listen != "127.0.0.1:8080" || len(g.hosts) != 0 {
			t.Errorf("%q: %+v, %v", text, g, err)
		}
	}
}

// TestPlaces checks that an error about a flag says where the flag was set.
func TestPlaces(t *testing.T) {
	path := writeConfig(t, "serve:\n  threads: 8\n  allow-host: [x]\n")
	t.Setenv("SANDWICH_LISTEN", "a:1")
	root := testRoot(new(given))
	root.SetArgs([]string{"serve", "--allow-host", "y", "--config", path})
	c, err := root.ExecuteC()
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		"--threads 8 is out of range":        "; --threads is set in " + path + ":2",
		"a:1 is no address; change --listen": "; --listen is set in SANDWICH_LISTEN",
		"--threads-batch is unknown":         "",
		"--allow-host y":                     "",
		"threads":                            "",
		path + ":2: --threads":               "",
	} {
		if got := Places(c, message); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

// TestPrint checks that what config print writes is a valid file with the same values.
func TestPrint(t *testing.T) {
	path := writeConfig(t, "serve:\n  threads: 8\n  allow-host: [x, \"y: z\"]\n")
	out := func(args ...string) string {
		var b strings.Builder
		root := testRoot(new(given))
		root.SetOut(&b)
		root.SetArgs(append([]string{"config", "print"}, args...))
		if err := root.Execute(); err != nil {
			t.Fatal(args, err)
		}
		return b.String()
	}
	first := out("--effective", "--config", path)
	for _, want := range []string{"threads: 8 # file", "#listen: 127.0.0.1:8080", `allow-host: [x, 'y: z'] # file`} {
		if !strings.Contains(first, want) {
			t.Errorf("no %s in\n%s", want, first)
		}
	}
	if again := out("--effective", "--config", writeConfig(t, first)); again != first {
		t.Errorf("%s\nbecame\n%s", first, again)
	}
	if text := out("plan", "check"); !strings.Contains(text, "plan:\n  check:\n    # workers\n    #threads: 3") {
		t.Error(text)
	}
}
