// Package modelfile loads and describes the model of a GGUF file.
package modelfile

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/tensors"
)

// Load returns the model of a GGUF file with its tensors. Errors name the tensor, key, type or
// architecture; errors that wrap ErrUnsupported concern valid files that this program does not run.
// The weights point into f, which must stay open until exec has packed them; vectors are copied.
func Load(f *gguf.File) (m *model.Model, err error) {
	err = f.Guard(func() (err error) {
		m, err = load(f)
		return err
	})
	return m, err
}

func load(f *gguf.File) (*model.Model, error) {
	c, err := arch.ConfigOf(f)
	if err != nil {
		return nil, err
	}
	m, err := arch.Model(c)
	if err != nil {
		return nil, err
	}
	specs := tensors.List(m)
	for _, s := range specs {
		if err := bind(s, f, c.Arch); err != nil {
			return nil, err
		}
	}
	if wrong := unknown(m, f, specs); len(wrong) > 0 {
		return nil, wrong[0]
	}
	if wrong := checkRopes(m); len(wrong) > 0 {
		return nil, wrong[0]
	}
	tie(m)
	return m, nil
}

// tie sets the tensor of a head that is the embedding.
func tie(m *model.Model) {
	for i := range m.Weights {
		if w := &m.Weights[i]; w.Name == model.EmbedTensor {
			w.Tensor = m.Embed
		}
	}
}

// checkRopes checks the factors that were read for the rotations.
func checkRopes(m *model.Model) (wrong []error) {
	for _, r := range m.Ropes() {
		if err := r.CheckFactors(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// bind sets the tensor or the vector of the model from the file. It returns an error for a required
// tensor that is missing, has another shape or an unsupported type.
func bind(s tensors.Spec, f *gguf.File, arch string) error {
	t, ok := f.Tensor(s.Name)
	switch {
	case !ok && !s.Optional:
		return fmt.Errorf("the file has no tensor %s: it is not a complete %s model; convert or download it again",
			s.Name, arch)
	case !ok:
		if s.Fixed == nil {
			*s.Vector = nil
		}
		return nil
	case !tensors.SameDims(t.Dims, s.Dims):
		return fmt.Errorf("tensor %s has shape %v, but the model's sizes require %v; convert or download it again",
			s.Name, t.Dims, s.Dims)
	case s.Vector != nil:
		return readVector((*s.Vector), t)
	case t.Type.Desc() == nil:
		return fmt.Errorf("tensor %s has type %s, which is %w as a matrix: use %s",
			s.Name, t.Type, model.ErrUnsupported, typeList())
	}
	for _, m := range s.Matrices {
		*m = t
	}
	return nil
}

// typeList returns the names of the supported tensor types.
func typeList() string {
	var names []string
	for _, t := range qtype.All() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// readVector copies the values of a vector. It returns an error for NaN and infinite values.
func readVector(v *model.Vector, t *gguf.Tensor) error {
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
