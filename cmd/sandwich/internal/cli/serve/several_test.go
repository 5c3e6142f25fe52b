package serve

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/cli/serve/modelset"
	"sandwich/cmd/sandwich/internal/listen"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/server"
	"sandwich/runtime/session"
)

// TestReloadModels checks that SIGHUP reads the models and their keys again, and that a file that
// is not valid changes nothing.
func TestReloadModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "models.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("models: [{name: a, model: \"\", context: 64}]")
	var f modelflags.Flags
	var v modelflags.Service
	c := &cobra.Command{}
	f.Add(c)
	f.Wants = modelflags.ForBoth
	v.AddService(c.Flags())
	v.Parallel = 1
	set, err := modelset.Open(modelset.Options{Path: path, Session: f, Sizes: v.Sizes, Notice: func(string) {},
		Prefixes: func(string) *disk.Store { return nil }, Accept: func(*session.Session) error { return nil },
		ReadKeys: readKeys, Stage: func(string, float64) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	d := &listeners{server: server.New(nil, server.Options{}), level: new(slog.LevelVar), sockets: &listen.Listeners{},
		reread: func() (reloaded, error) { return reloaded{}, nil }}
	if _, err := d.reload(); err == nil {
		t.Error("there is something to reload before the models are read")
	}
	d.serveModels(set)
	list := func(key string) string {
		r := httptest.NewRequest("GET", "/v1/models", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		d.server.ServeHTTP(w, r)
		return w.Body.String()
	}
	expect := func(key, has string, names ...string) {
		t.Helper()
		text := list(key)
		if !strings.Contains(text, has) {
			t.Errorf("key %q: %s, want %s", key, text, has)
		}
		for _, name := range []string{"a", "b"} {
			want := strings.Contains(strings.Join(names, " "), name)
			if got := strings.Contains(text, `"id":"`+name+`"`); got != want {
				t.Errorf("key %q: model %s is listed: %v", key, name, got)
			}
		}
	}
	expect("", "unloaded", "a")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "keys"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const two = "models: [{name: a, model: \"\", context: 64}, {name: b, model: \"\", context: 64, keys: keys}]"
	write(two)
	if text, err := d.reload(); err != nil || !strings.Contains(text, "2 models") {
		t.Error(text, err)
	}
	expect("", "invalid_api_key")
	expect("secret", "unloaded", "a", "b")
	for _, text := range []string{"models: []", strings.Replace(two, "keys: keys", "keys: none", 1)} {
		write(text)
		if _, err := d.reload(); err == nil {
			t.Errorf("%s is accepted", text)
		}
		expect("secret", "unloaded", "a", "b")
	}
}

// TestModelsExcludes checks the errors for flags that --models excludes.
func TestModelsExcludes(t *testing.T) {
	for args, want := range map[string]string{
		"--model x.gguf":  "--model cannot be used with --models",
		"--plan x.plan":   "--plan cannot be used with --models",
		"--device cuda:0": "--device cannot be used with --models",
		"--dry-run":       "--dry-run checks one model",
	} {
		c := NewServe()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append(strings.Fields(args), "--models", "m.yaml"))
		if err := c.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
