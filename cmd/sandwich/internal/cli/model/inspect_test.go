package model

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/runtime/gguf"
)

// TestInspectTellsTheTokenizer checks that faults of the tokenizer are reported together with those
// of the model's sizes, and not for a file that needs no tokenizer.
func TestInspectTellsTheTokenizer(t *testing.T) {
	for _, c := range []struct {
		arch, tokenizer string
		told            bool
	}{{"gemma3", "klingon", true}, {"clip", "", false}} {
		path := filepath.Join(t.TempDir(), "model.gguf")
		var file bytes.Buffer
		w := gguf.NewWriter(&file)
		w.SetString("general.architecture", c.arch)
		if c.told {
			w.SetString("tokenizer.ggml.model", c.tokenizer)
			w.SetStrings("tokenizer.ggml.tokens", []string{"a"})
		}
		if err := errors.Join(w.Close(), os.WriteFile(path, file.Bytes(), 0o666)); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Look(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		report, err := inspect(f, &machine.Flags{})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(report.Reasons, "\n")
		if strings.Contains(all, "okenizer") != c.told || c.told && !strings.Contains(all, "gemma3.block_count") {
			t.Errorf("%s: %q", c.arch, report.Reasons)
		}
	}
}
