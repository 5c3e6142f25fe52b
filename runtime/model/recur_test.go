package model

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
)

// TestPredictingLayersAreLeftOut: layers that predict tokens further on are not asked for, whatever
// they hold, and more of them than there are layers is a damaged file.
func TestPredictingLayersAreLeftOut(t *testing.T) {
	for n, want := range map[uint32]string{2: "", 6: "nextn_predict_layers is 6 of 6"} {
		c, _ := Tiny("qwen35")
		c.Vocab = 1003
		var out bytes.Buffer
		w := gguf.NewWriter(&out)
		w.SetUint32("qwen35.nextn_predict_layers", n)
		if err := SynthTo(context.Background(), w, c, Uniform(gguf.F32), 1, nil); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		m, err := Load(f)
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%d of 6 layers predict: %v, want %q", n, err, want)
		case want == "" && (err != nil || m.Dims.Layers != 4):
			t.Errorf("%d of 6 layers predict: %v", n, err)
		}
		if err == nil {
			for _, w := range m.Weights {
				if strings.HasPrefix(w.Name, "blk.4.") || strings.HasPrefix(w.Name, "blk.5.") {
					t.Errorf("%s is asked for", w.Name)
				}
			}
		}
	}
}
