package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRead checks a file with every key, relative paths and chains of aliases.
func TestRead(t *testing.T) {
	path := write(t, `
memory: 2GiB
aliases: {gpt-4o: fast, fast: chat, default: bge:1}
models:
  - name: chat
    model: chat.gguf
    aliases: [story]
    plan: /plans/chat.plan
    device: cuda:0
    context: 2048
    parallel: 3
    keys: keys.txt
    class: proactive
    load: pinned
  - {name: "bge:1", model: "hf:a/b"}
  - {name: tales, model: ""}
`)
	dir := filepath.Dir(path)
	for _, name := range []string{"chat.gguf", "keys.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	m := c.Models[0]
	slices.Sort(m.Aliases)
	if m.Model != filepath.Join(dir, "chat.gguf") || m.Keys != filepath.Join(dir, "keys.txt") || m.Context != 2048 ||
		m.Plan != "/plans/chat.plan" || m.Device != "cuda:0" || m.Parallel != 3 || m.Class != "proactive" ||
		m.Load != Pinned ||
		strings.Join(m.Aliases, " ") != "fast gpt-4o story" || c.Memory != 2<<30 {
		t.Errorf("%+v", c)
	}
	if m := c.Models[1]; m.Model != "hf:a/b" || m.Load != OnDemand || strings.Join(m.Aliases, "") != "default" {
		t.Errorf("%+v", m)
	}
	if m := c.Models[2]; m.Model != "" {
		t.Errorf("%+v", m)
	}
}

// TestFolder checks which files of a folder are models.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "no GGUF file") {
		t.Error(err)
	}
	for _, name := range []string{"b.gguf", "a.gguf", "notes.txt", "c-00001-of-00002.gguf", "c-00002-of-00002.gguf"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range c.Models {
		names = append(names, m.Name+"="+filepath.Base(m.Model))
	}
	if got := strings.Join(names, " "); got != "a=a.gguf b=b.gguf c=c-00001-of-00002.gguf" {
		t.Error(got)
	}
}

// TestRefusals checks the messages for files that are not valid.
func TestRefusals(t *testing.T) {
	const a = "models:\n  - {name: a, model: x"
	for text, want := range map[string]string{
		"":                                 "the file is empty",
		"- a\n":                            "line 1: write settings",
		"modles: []\n":                     "line 1: unknown key modles; did you mean models?",
		"models: []\n":                     "there are no models",
		a + ", contxt: 1}\n":               "line 2: unknown key contxt; did you mean context?",
		a + ", zzzzzzzzz: 1}\n":            "unknown key zzzzzzzzz; the keys are aliases, class",
		a + ", name: b}\n":                 "name is given twice",
		a + ", load: never}\n":             "model a: load never is unknown; give start, demand or pinned",
		a + ", class: slow}\n":             "model a: class slow is unknown",
		a + ", context: -1}\n":             "is negative",
		a + ", context: many}\n":           "line 2: context many is not valid; give a whole number",
		a + ", parallel: 1.5}\n":           "line 2: parallel 1.5 is not valid; give a whole number",
		a + ", ctx: 100}\n":                "unknown key ctx; did you mean context?",
		a + ", keys: }\n":                  "line 2: keys has no value; give a value, or leave the key out",
		a + ", keys: [x]}\n":               "line 2: keys is not valid; give a value",
		a + ", aliases: x}\n":              "line 2: aliases x is not valid; give a list",
		a + ", aliases: [{x: y}]}\n":       "line 2: aliases is not valid; give a list",
		a + "}\naliases: [x]\n":            "line 3: aliases is not valid; give a mapping",
		"model: x\n":                       "line 1: unknown key model; did you mean models?",
		"models:\n  a: x.gguf\n":           "line 2: models is not valid; give a list with an entry for each model",
		"models:\n":                        "line 1: models has no value; give a list with an entry",
		"models: [{path: x}]\n":            "unknown key path; did you mean model?",
		a + "}\n  - {name: a, model: y}\n": "a names two models, x and y",
		a + "}\n  - {name: b, model: y, aliases: [a]}\n": "a names two models, x and y",
		a + ", aliases: [a]}\n":                          "a names two models",
		a + "}\naliases: {b: c, c: d, d: b}\n":           "the aliases form a cycle: b -> c -> d -> b",
		a + "}\naliases: {b: b}\n":                       "the aliases form a cycle",
		a + "}\naliases: {a: a}\n":                       "a is an alias and names a model too",
		a + "}\naliases: {b: aa}\n":                      "alias b: there is no model aa",
		a + "}\nmemory: 12\n":                            "memory: 12 is not a size; give one such as 12GiB",
		a + "}\nmemory: 0\n":                             "memory: 0 is not a size",
		"models: [{name: a}]\n":                          "model a: the key model is missing",
		"models: [{model: x}]\n":                         "model 1 has no name",
		"models: [{name: ../a, model: x}]\n":             `"../a" is not a valid name`,
		"models: [{name: a/b, model: x}]\n":              "is not a valid name",
		"models: [{name: a..b, model: x}]\n":             "is not a valid name",
		`models: [{name: "a\\b", model: x}]`:             "is not a valid name",
		"models: [{name: \"a\\n\", model: x}]\n":         "is not a valid name",
		"models: a\n":                                    "line 1: models a is not valid; give a list",
		"models: [a]\n":                                  "line 1: a is not an entry; write one such as",
		"models: [[a]]\n":                                "line 1: write settings",
		"models: [*x]\n":                                 "unknown anchor",
	} {
		if _, err := Read(write(t, text)); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "models.yaml") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.yaml")); err == nil ||
		!strings.Contains(err.Error(), "--models") {
		t.Error(err)
	}
}
