package modelshape_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/refdata"
)

// TestShapeOfReference reads the reference models of all types and architectures, and checks the
// matrices of one of them.
func TestShapeOfReference(t *testing.T) {
	for _, path := range refdata.Glob(t, "parity/models/*.gguf") {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := modelshape.Of(f)
		if err == nil {
			err = s.Check()
		}
		if err != nil || s.Vocab != 320 || s.Layers != 2 {
			t.Errorf("%s: %+v, %v", filepath.Base(path), s, err)
		}
		if filepath.Base(path) == "qwen3moe-q8_0.gguf" {
			var gates int
			for _, w := range s.Weights {
				if w.Role == "gate" {
					gates += w.Count
					if w.N != 128 || w.K != 256 || w.Type != "q8_0" {
						t.Errorf("gate is %+v", w)
					}
				}
			}
			if gates != 2*8 {
				t.Errorf("%d gates, want 8 experts in 2 layers", gates)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestShapeOfRefuses removes a tensor and changes a dimension.
func TestShapeOfRefuses(t *testing.T) {
	c := synth.Small("llama")
	raw := write(t, c, gguf.F32, 1)
	for from, to := range map[string]string{"blk.1.ffn_up.weight": "blk.1.ffn_xx.weight",
		"llama.feed_forward_length": "llama.feed_forward_xength"} {
		f, err := gguf.Parse([]byte(strings.Replace(string(raw), from, to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := modelshape.Of(f); err == nil || !strings.Contains(err.Error(), from) {
			t.Errorf("without %s: %v", from, err)
		}
	}
	if _, err := arch.Find("mamba"); !errors.Is(err, model.ErrUnsupported) {
		t.Errorf("unknown architecture: %v", err)
	}
}
