package modelfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/tensors"
)

// unknown returns errors about tensors that no op uses: those of layers beyond the number of
// layers, and those without which the model would compute something else. llama.cpp refuses such
// files as well.
func unknown(m *model.Model, f *gguf.File, specs []tensors.Spec) (wrong []error) {
	known := map[string]bool{}
	for _, s := range specs {
		known[s.Name] = true
	}
	wrong = inconsistent(f, specs)
	for _, name := range significantTensors {
		if _, ok := f.Tensor(name); ok && !known[name] {
			wrong = append(wrong, unsupportedTensor(m, name))
		}
	}
	layers, _ := f.Uint(m.Arch + ".block_count")
	for _, t := range f.Tensors() {
		layer, name, ok := layerOf(t.Name)
		switch {
		case !ok && !known[t.Name] && isOutputMatrix(t.Name):
			wrong = append(wrong, unsupportedTensor(m, t.Name))
		case !ok || known[t.Name] || ignoredTensors[name] || strings.HasSuffix(name, inputScale):
		case uint64(layer) >= layers:
			wrong = append(wrong, fmt.Errorf("tensor %.80s is of layer %d, but the file has %d layers: "+
				"it is damaged, convert or download it again", t.Name, layer, layers))
		case layer < m.Dims.Layers && !isUnusedKV(m, layer, name): // later layers predict further tokens
			wrong = append(wrong, unsupportedTensor(m, t.Name))
		}
	}
	return wrong
}

// unsupportedTensor returns the error for a tensor that changes results and that no op uses.
func unsupportedTensor(m *model.Model, tensor string) error {
	return fmt.Errorf("tensor %.80s is %w in %s models: results would be wrong without it", tensor,
		model.ErrUnsupported,
		m.Arch)
}

// significantTensors lists tensors outside of layers that change the results of some families.
var significantTensors = [...]string{"output.bias", "output_norm.bias", "output.scale", "rope_factors_long.weight",
	"rope_factors_short.weight"}

// isOutputMatrix reports whether a name is that of an output matrix other than model.HeadTensor. A
// file with such a tensor that no op uses has two heads, and it is unknown which one applies.
func isOutputMatrix(name string) bool {
	head := strings.HasPrefix(name, "output") || strings.HasPrefix(name, "lm_head")
	return head && name != model.HeadTensor && strings.HasSuffix(name, ".weight") && !strings.Contains(name, "norm")
}

// inconsistent returns errors about optional vectors that some layers of the file have and others
// do not.
func inconsistent(f *gguf.File, specs []tensors.Spec) (wrong []error) {
	has := map[string]bool{}
	for _, s := range specs {
		_, name, _ := layerOf(s.Name)
		_, here := f.Tensor(s.Name)
		has[name] = has[name] || s.Expected && here
	}
	for _, s := range specs {
		_, name, _ := layerOf(s.Name)
		if _, here := f.Tensor(s.Name); s.Expected && !here && has[name] {
			wrong = append(wrong, fmt.Errorf("the file has no tensor %s, which other layers have: "+
				"it is damaged, convert or download it again", s.Name))
		}
	}
	return wrong
}

// layerOf splits blk.LAYER.NAME.
func layerOf(tensor string) (layer int, name string, ok bool) {
	rest, ok := strings.CutPrefix(tensor, "blk.")
	number, name, dot := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	return layer, name, ok && dot && err == nil && layer >= 0
}

// ignoredTensors lists tensors of layers that converters write and no op uses: angles that follow
// from the base, and a matrix that the file also has in two parts.
var ignoredTensors = map[string]bool{"attn_rot_embd.weight": true, "attn_kv_b.weight": true, "rope_freqs.weight": true}

// inputScale is the suffix of tensors of NVFP4 checkpoints with the scale of quantized activations.
// Activations are quantized differently here, as in llama.cpp.
const inputScale = ".input_scale"

// isUnusedKV reports whether a tensor of keys or values belongs to a layer that reads those of an
// earlier layer.
func isUnusedKV(m *model.Model, layer int, name string) bool {
	if name != "attn_k.weight" && name != "attn_v.weight" && name != "attn_k_norm.weight" {
		return false
	}
	return slices.ContainsFunc(m.Ops, func(op model.Op) bool {
		return op.Kind == model.OpRotate && op.Layer == layer && op.KVLayer != layer
	})
}
