package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// catalog writes a file for --models with the embedded model under the name that the tests send, a
// model of embeddings and one of scores, and returns its path. The tests use it if MODELS is set.
func catalog(t *testing.T, bin string) string {
	t.Helper()
	dir := t.TempDir()
	entries := []string{`{name: main, model: "", aliases: [any], load: start}`}
	for name, preset := range map[string]string{"embed": "bert-tiny", "rank": "bert-rerank-tiny"} {
		synth := exec.Command(bin, "model", "synth", "--preset", preset, "-o", filepath.Join(dir, name+".gguf"))
		if out, err := synth.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		entries = append(entries, "{name: "+name+", model: "+name+".gguf, context: 256}")
	}
	path := filepath.Join(dir, "models.yaml")
	text := "models: [" + strings.Join(entries, ", ") + "]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
