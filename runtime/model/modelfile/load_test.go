package modelfile_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/synth"
)

// TestLoadRefusesNaN writes NaN and infinity to the last element of each kind of vector.
func TestLoadRefusesNaN(t *testing.T) {
	for name, arch := range map[string]string{"output_norm.weight": "llama", "blk.1.attn_norm.weight": "llama",
		"blk.0.attn_q.bias":        "qwen2",
		"blk.1.attn_k_norm.weight": "qwen3"} {
		for _, bits := range []uint32{0x7FC00000, 0xFF800000} {
			f, err := gguf.Parse(write(t, synth.Small(arch), gguf.F32, 1))
			if err != nil {
				t.Fatal(err)
			}
			tensor, ok := f.Tensor(name)
			if !ok {
				t.Fatalf("%s has no %s", arch, name)
			}
			binary.LittleEndian.PutUint32(tensor.Data[len(tensor.Data)-4:], bits)
			if _, err := modelfile.Load(f); err == nil || !strings.Contains(err.Error(), name) ||
				!strings.Contains(err.Error(),
					"damaged") {
				t.Errorf("%s ending in %08x: %v", name, bits, err)
			}
		}
	}
}
