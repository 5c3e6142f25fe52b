package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// Load returns the model of a GGUF file with its tensors. Errors name the tensor, key, type or
// architecture; errors that wrap ErrUnsupported concern valid files that this program does not run.
// The weights point into f, which must stay open until exec has packed them; vectors are copied.
func Load(f *gguf.File) (m *Model, err error) {
	err = f.Guard(func() (err error) {
		m, err = load(f)
		return err
	})
	return m, err
}

func load(f *gguf.File) (*Model, error) {
	c, err := ConfigOf(f)
	if err != nil {
		return nil, err
	}
	m, err := c.Model()
	if err != nil {
		return nil, err
	}
	specs := m.tensors()
	for _, s := range specs {
		if err := s.bind(f, c.Arch); err != nil {
			return nil, err
		}
	}
	if wrong := m.unknown(f, specs); len(wrong) > 0 {
		return nil, wrong[0]
	}
	if wrong := m.checkRopes(); len(wrong) > 0 {
		return nil, wrong[0]
	}
	m.tie()
	return m, nil
}

// tie sets the tensor of a head that is the embedding.
func (m *Model) tie() {
	for i := range m.Weights {
		if w := &m.Weights[i]; w.Name == embedTensor {
			w.Tensor = m.Embed
		}
	}
}

// checkRopes checks the factors that were read for the rotations.
func (m *Model) checkRopes() (wrong []error) {
	for _, r := range m.Ropes() {
		if err := r.checkFactors(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// bind sets the tensor or the vector of the model from the file. It returns an error for a required
// tensor that is missing, has another shape or an unsupported type.
func (s *spec) bind(f *gguf.File, arch string) error {
	t, ok := f.Tensor(s.name)
	switch {
	case !ok && !s.optional:
		return fmt.Errorf("the file has no tensor %s: it is not a complete %s model", s.name, arch)
	case !ok:
		if s.fixed == nil {
			*s.vector = nil
		}
		return nil
	case !sameDims(t.Dims, s.dims):
		return fmt.Errorf("tensor %s has shape %v, but the model's sizes require %v", s.name, t.Dims, s.dims)
	case s.vector != nil:
		return (*s.vector).read(t)
	case t.Type.Desc() == nil:
		return fmt.Errorf("tensor %s has type %s, which is %w as a matrix: use %s",
			s.name, t.Type, ErrUnsupported, typeList())
	}
	for _, m := range s.matrices {
		*m = t
	}
	return nil
}

// unknown returns errors about tensors that no op uses: those of layers beyond the number of
// layers, and those without which the model would compute something else. llama.cpp refuses such
// files as well.
func (m *Model) unknown(f *gguf.File, specs []spec) (wrong []error) {
	known := map[string]bool{}
	for _, s := range specs {
		known[s.name] = true
	}
	wrong = inconsistent(f, specs)
	for _, name := range significantTensors {
		if _, ok := f.Tensor(name); ok && !known[name] {
			wrong = append(wrong, m.unsupportedTensor(name))
		}
	}
	layers, _ := f.Uint(m.Arch + ".block_count")
	for _, t := range f.Tensors() {
		layer, name, ok := layerOf(t.Name)
		switch {
		case !ok && !known[t.Name] && isOutputMatrix(t.Name):
			wrong = append(wrong, m.unsupportedTensor(t.Name))
		case !ok || known[t.Name] || ignoredTensors[name] || strings.HasSuffix(name, inputScale):
		case uint64(layer) >= layers:
			wrong = append(wrong, fmt.Errorf("tensor %.80s is of layer %d, but the file has %d layers: it is damaged",
				t.Name, layer, layers))
		case layer < m.Dims.Layers && !m.isUnusedKV(layer, name): // later layers predict further tokens
			wrong = append(wrong, m.unsupportedTensor(t.Name))
		}
	}
	return wrong
}

// unsupportedTensor returns the error for a tensor that changes results and that no op uses.
func (m *Model) unsupportedTensor(tensor string) error {
	return fmt.Errorf("tensor %.80s is %w in %s models: results would be wrong without it", tensor, ErrUnsupported,
		m.Arch)
}

// significantTensors lists tensors outside of layers that change the results of some families.
var significantTensors = [...]string{"output.bias", "output_norm.bias", "output.scale", "rope_factors_long.weight",
	"rope_factors_short.weight"}

// isOutputMatrix reports whether a name is that of an output matrix other than headTensor. A file
// with such a tensor that no op uses has two heads, and it is unknown which one applies.
func isOutputMatrix(name string) bool {
	head := strings.HasPrefix(name, "output") || strings.HasPrefix(name, "lm_head")
	return head && name != headTensor && strings.HasSuffix(name, ".weight") && !strings.Contains(name, "norm")
}

// inconsistent returns errors about optional vectors that some layers of the file have and others
// do not.
func inconsistent(f *gguf.File, specs []spec) (wrong []error) {
	has := map[string]bool{}
	for _, s := range specs {
		_, name, _ := layerOf(s.name)
		_, here := f.Tensor(s.name)
		has[name] = has[name] || s.expected && here
	}
	for _, s := range specs {
		_, name, _ := layerOf(s.name)
		if _, here := f.Tensor(s.name); s.expected && !here && has[name] {
			wrong = append(wrong, fmt.Errorf("the file has no tensor %s, which other layers have: it is damaged",
				s.name))
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

// keeps says that a layer's tensor of keys or values is one of a checkpoint where the layer reads
// those of an earlier one.
func (m *Model) isUnusedKV(layer int, name string) bool {
	if name != "attn_k.weight" && name != "attn_v.weight" && name != "attn_k_norm.weight" {
		return false
	}
	return slices.ContainsFunc(m.Ops, func(op Op) bool {
		return op.Kind == OpRotate && op.Layer == layer && op.KVLayer != layer
	})
}

// sameDims compares two shapes without trailing dimensions of 1.
func sameDims(a, b []int) bool {
	for len(a) > 1 && a[len(a)-1] == 1 {
		a = a[:len(a)-1]
	}
	for len(b) > 1 && b[len(b)-1] == 1 {
		b = b[:len(b)-1]
	}
	return slices.Equal(a, b)
}

// typeList returns the names of the supported tensor types.
func typeList() string {
	var names []string
	for _, t := range qtype.All() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// read copies the values of a vector. It returns an error for NaN and infinite values.
func (v *Vector) read(t *gguf.Tensor) error {
	of, stack := cmp.Or(v.Of, v.N), max(1, v.Stack)
	all := make([]float32, of*stack)
	if err := gguf.Dequantize(all, t.Type, t.Data); err != nil {
		return fmt.Errorf("tensor %s: %w", v.Name, err)
	}
	if v.Data = all; of > v.N {
		v.Data = make([]float32, 0, v.N*stack)
		for i := range stack {
			v.Data = append(v.Data, all[i*of+v.At:][:v.N]...)
		}
	}
	for i, x := range v.Data {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("tensor %s holds %v at %d: the file is damaged, copy or download it again", v.Name, x, i)
		}
		if v.Times != 0 {
			v.Data[i] = x * v.Times
		}
	}
	return nil
}
