package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// Load writes the model of a GGUF file out as ops and binds them to its tensors. Errors name the
// tensor, key, type or architecture at fault; those that wrap ErrUnsupported are valid files that
// this program does not run. The model keeps pointing into f, which must stay open until exec has
// packed the weights; vectors are copied.
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
	for _, s := range m.tensors() {
		if err := s.bind(f, c.Arch); err != nil {
			return nil, err
		}
	}
	if wrong := m.checkRopes(); len(wrong) > 0 {
		return nil, wrong[0]
	}
	m.tie()
	return m, nil
}

// tie gives a head that is the embedding its tensor.
func (m *Model) tie() {
	for i := range m.Weights {
		if w := &m.Weights[i]; w.Name == embedTensor {
			w.Tensor = m.Embed
		}
	}
}

// checkRopes checks what was read for the rotations.
func (m *Model) checkRopes() (wrong []error) {
	for _, r := range m.Ropes() {
		if err := r.checkFactors(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// bind puts what the file has of the tensor into the model.
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
	case !slices.Equal(t.Dims, s.dims):
		return fmt.Errorf("tensor %s has shape %v, the model's dimensions ask for %v", s.name, t.Dims, s.dims)
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

func typeList() string {
	var names []string
	for _, t := range qtype.All() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// read copies a vector and refuses values that are no numbers.
func (v *Vector) read(t *gguf.Tensor) error {
	v.Data = make([]float32, v.N*max(1, v.Stack))
	if err := gguf.Dequantize(v.Data, t.Type, t.Data); err != nil {
		return fmt.Errorf("tensor %s: %w", v.Name, err)
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
