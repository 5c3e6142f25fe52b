package modelref

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/models/cachetest"
	"sandwich/cmd/sandwich/internal/models/fetch"
	"sandwich/cmd/sandwich/internal/models/modelserver"
	"sandwich/cmd/sandwich/internal/models/netguard"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/source"
	"sandwich/runtime/demo"
)

// withHub starts a hub that has the embedded model as hf:me/tales, and an empty folder of models.
func withHub(t *testing.T) (hub *modelserver.Server, dir string) {
	t.Helper()
	hub, dir = modelserver.Start(), t.TempDir()
	t.Cleanup(hub.Close)
	hub.AddRepository("me/tales", map[string][]byte{"tales.gguf": demo.Model()})
	for name, value := range map[string]string{"HF_ENDPOINT": hub.URL, "HF_TOKEN": "", "HF_HUB_CACHE": dir,
		"OLLAMA_MODELS": dir, folderVariable: filepath.Join(dir, "models")} {
		t.Setenv(name, value)
	}
	return hub, dir
}

// flagOf runs a verb with a flag that names a model and returns what the verb receives.
func flagOf(t *testing.T, args ...string) (model string, err error) {
	t.Helper()
	c := &cobra.Command{Use: "verb", SilenceUsage: true, SilenceErrors: true, RunE: func(*cobra.Command,
		[]string) error {
		return nil
	}}
	Flag(c, &model, "model", "m", "", "GGUF file")
	c.SetArgs(args)
	c.SetContext(t.Context())
	err = c.Execute()
	return model, err
}

// TestFlag checks the order in which a value is understood: path, name, reference.
func TestFlag(t *testing.T) {
	hub, dir := withHub(t)
	t.Chdir(dir)
	for _, value := range []string{"", "nowhere.gguf", "llama-3.1-8b", "models.d/x.gguf", "a/b/config.json", "../x",
		"tales"} {
		if got, err := flagOf(t, "--model", value); got != value || err != nil {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
	if _, err := flagOf(t, "-m", "hf:me/tales"); err == nil || exit.Code(err) != exit.Input ||
		!strings.Contains(err.Error(), "sandwich pull hf:me/tales") || len(hub.Requests()) != 0 {
		t.Errorf("without --pull: %v", err)
	}
	path, err := flagOf(t, "-m", "hf:me/tales", "--pull")
	if st, statErr := os.Stat(path); err != nil || statErr != nil || st.Size() != int64(len(demo.Model())) {
		t.Errorf("%s, %v, %v", path, err, statErr)
	}
	hub.Requests()
	for _, value := range []string{"tales", "hf:me/tales"} {
		if got, err := flagOf(t, "-m", value); got != path || err != nil {
			t.Errorf("%s: %s, %v", value, got, err)
		}
		if got, err := Local(t.Context(), value); got != path || err != nil {
			t.Errorf("%s: %s, %v", value, got, err)
		}
	}
	if n := len(hub.Requests()); n != 0 {
		t.Errorf("a pulled model costs %d requests", n)
	}
	if err := os.Mkdir("tales", 0o700); err != nil { // a folder is not a model
		t.Fatal(err)
	}
	if got, err := flagOf(t, "-m", "tales"); got != path || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if err := os.Remove("tales"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("tales", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := flagOf(t, "-m", "tales"); got != "tales" || err != nil {
		t.Errorf("a file: %s, %v", got, err)
	}
	if err := os.Truncate(path, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := flagOf(t, "-m", "hf:me/tales"); err == nil || exit.Code(err) != exit.Input ||
		!strings.Contains(err.Error(), "pull it again") {
		t.Errorf("a damaged model: %v", err)
	}
}

// TestOffline checks that references resolve without a request from the caches of other programs,
// as the value of a flag and of Local, and that others say how to pull them.
func TestOffline(t *testing.T) {
	hub, dir := withHub(t)
	hub.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		t.Errorf("a request for %s", r.URL)
		return false
	})
	for _, v := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(v, "http://127.0.0.1:1") // refuses everything
	}
	if _, err := cachetest.Hub(dir, "you/fox", map[string][]byte{"fox-Q8_0.gguf": demo.Model()}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"registry.ollama.ai/library/hen/latest", "registry.example/ai/owl/1b"} {
		if err := cachetest.Ollama(dir, name, demo.Model()); err != nil {
			t.Fatal(err)
		}
	}
	for _, reference := range []string{"hf:you/fox", "hf:you/fox:Q8_0", "ollama:hen", "registry.example/ai/owl:1b"} {
		path, err := flagOf(t, "-m", reference)
		if st, statErr := os.Stat(path); err != nil || statErr != nil || st.Size() != int64(len(demo.Model())) {
			t.Errorf("%s: %s, %v, %v", reference, path, err, statErr)
		}
		if got, err := Local(t.Context(), reference); got != path || err != nil {
			t.Errorf("%s: %s, %v; want %s", reference, got, err, path)
		}
	}
	for _, reference := range []string{"hf:me/tales", "hf:you/fox:Q4_0", "ollama:hen:2b"} {
		_, err := flagOf(t, "-m", reference)
		if err == nil || !strings.Contains(err.Error(), "sandwich pull "+reference) {
			t.Errorf("%s: %v", reference, err)
		}
	}
}

// TestAsk checks which answers start a download.
func TestAsk(t *testing.T) {
	for answer, agrees := range map[string]bool{"\n": true, "y\n": true, " YES \n": true, "n\n": false, "no\n": false,
		"what?\n": false, "": false, "y": false} {
		var out strings.Builder
		err := askOn(strings.NewReader(answer), &out, "hub.example\x1b[2J", 3<<30)
		if (err == nil) != agrees {
			t.Errorf("%q: %v", answer, err)
		}
		if want := `download 3.0 GiB from hub.example\u001b[2J? [Y/n] `; out.String() != want {
			t.Errorf("the question is %q, want %q", out.String(), want)
		}
	}
}

// TestCodes checks that unusable input and failures have different exit codes.
func TestCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{fetch.ErrChecksum, exit.Input}, {fetch.ErrContent, exit.Input}, {source.ErrNotFound, exit.Input},
		{source.Refuse("no"), exit.Input}, {&netguard.Error{}, exit.Input}, {&fetch.StatusError{Code: 404}, exit.Input},
		{&fetch.StatusError{Code: 403}, exit.Input},
		{&fetch.StatusError{Code: 500}, exit.Failed}, {&url.Error{Op: "Get", Err: errors.New("refused")}, exit.Failed},
		{&os.PathError{Op: "open", Err: os.ErrPermission}, exit.Failed}, {context.Canceled, exit.Failed},
	} {
		if got := exit.Code(coded(fmt.Errorf("model: %w", c.err))); got != c.code {
			t.Errorf("%v: %d, want %d", c.err, got, c.code)
		}
	}
}

// TestStoreFolder checks where models are stored.
func TestStoreFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", dir)
	for value, want := range map[string]string{"": filepath.Join(dir, "sandwich", "models"),
		filepath.Join(dir, "own"): filepath.Join(dir, "own")} {
		t.Setenv(folderVariable, value)
		if s, err := OpenStore(); err != nil || s.Dir() != want {
			t.Errorf("%q: %v, %v; want %s", value, s, err, want)
		}
	}
}

// TestPulledIsInspected checks that a file which is not a sound GGUF file is not installed.
func TestPulledIsInspected(t *testing.T) {
	hub, _ := withHub(t)
	hub.AddRepository("me/cut", map[string][]byte{"cut.gguf": demo.Model()[:1000]})
	r, err := ref.Parse("hf:me/cut")
	if err != nil {
		t.Fatal(err)
	}
	if _, m, err := Pull(t.Context(), r, Options{}); err == nil || exit.Code(err) != exit.Input {
		t.Errorf("%v, %v", m, err)
	}
	if s, err := OpenStore(); err != nil {
		t.Error(err)
	} else if models, _, err := s.List(); err != nil || len(models) != 0 {
		t.Errorf("%v, %v", models, err)
	}
}
