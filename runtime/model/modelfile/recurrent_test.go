package modelfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/synth"
)

// TestPredictingLayersAreLeftOut checks that layers that predict further tokens are not loaded, and
// that a file with as many of them as layers is damaged.
func TestPredictingLayersAreLeftOut(t *testing.T) {
	for n, want := range map[uint32]string{2: "", 6: "nextn_predict_layers is 6 of 6"} {
		c, _ := synth.Tiny("qwen35")
		c.Vocab = 1003
		var out bytes.Buffer
		w := gguf.NewWriter(&out)
		w.SetUint32("qwen35.nextn_predict_layers", n)
		if err := synth.Write(context.Background(), w, c, synth.Uniform(gguf.F32), 1, nil); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		m, err := modelfile.Load(f)
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

// TestSections checks that pairs of a rotation that a file assigns to the fourth axis do not rotate
// in a text, in the order that ggml uses for the family.
func TestSections(t *testing.T) {
	one := synth.Small("qwen35")
	one.Recurrence.Every = 2
	raw := write(t, one, gguf.F32, 1)
	key := []byte("qwen35.rope.dimension_sections")
	at := bytes.Index(raw, key) + len(key) + 16 // behind the value's type and the list's
	for _, c := range []struct {
		of    [4]int32
		still []int // of 8 pairs
		want  string
	}{
		{of: [4]int32{3, 3, 2, 0}}, {of: [4]int32{11, 11, 10, 0}},
		{of: [4]int32{4, 4, 0, 0}, still: []int{2, 5}}, {of: [4]int32{2, 3, 2, 1}, still: []int{6}},
		{of: [4]int32{1, 1, 0, 0}}, {of: [4]int32{0, 0, 0, 8}, want: "no pairs that rotate"},
		{of: [4]int32{3, -3, 2, 0}, want: "value -3"},
	} {
		changed := bytes.Clone(raw)
		if _, err := binary.Encode(changed[at:], binary.LittleEndian, c.of); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(changed)
		if err != nil {
			t.Fatal(err)
		}
		m, err := modelfile.Load(f)
		if c.want != "" || err != nil {
			if c.want == "" || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, want %q", c.of, err, c.want)
			}
			continue
		}
		rotate := m.Ops[slices.IndexFunc(m.Ops, func(op model.Op) bool { return op.Kind == model.OpRotate })]
		for pair, angle := range rotate.Rope.Frequencies(1024) {
			if (angle == 0) != slices.Contains(c.still, pair) {
				t.Errorf("%v: pair %d turns by %v", c.of, pair, angle)
			}
		}
	}
}
