package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/tensors"
)

// Report is the output of `model inspect` for a file. Its JSON form is stable.
type Report struct {
	Arch       string    `json:"arch"`
	Name       string    `json:"name"`
	Bytes      int64     `json:"bytes"`      // of all parts
	Parameters int64     `json:"parameters"` // elements of all tensors
	Types      []TypeUse `json:"types"`
	// absent if the architecture is unknown or the file incomplete
	Shape      *plans.ModelShape `json:"shape,omitempty"`
	KVPerToken int64             `json:"kv_bytes_per_token"` // of an f16 cache; 0 without a shape
	// of an f16 cache, the maximum of windowed layers for a sequence of any length
	KVBounded int64 `json:"kv_bytes_bounded,omitempty"`
	// of the recurrent states of a sequence
	State int64 `json:"state_bytes,omitempty"`
	// memory of the weights when the model runs; 0 if it does not run
	Packed int64 `json:"packed_bytes"`
	// why this program does not run the file: the first reason, and all reasons
	Refused  string        `json:"refused,omitempty"`
	Reasons  []string      `json:"reasons,omitempty"`
	Metadata []Entry       `json:"metadata"` // in the order of the file
	Tensors  []TensorEntry `json:"tensors"`
}

// TypeUse counts the tensors of one type.
type TypeUse struct {
	Type       string `json:"type"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
	Panels     int64  `json:"panel_bytes,omitempty"` // of its matrices, packed for kernels
}

// Entry is one metadata key with its value as text; an array is given as length and type.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// TensorEntry is one tensor without its data.
type TensorEntry struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Dims  []int  `json:"dims"` // ggml order, row length first
	Bytes int64  `json:"bytes"`
}

// Memory is the memory of a running model in bytes: its packed weights and, with an f16 KV cache,
// the bytes per token, the maximum of windowed layers per sequence, and the recurrent states per
// sequence.
type Memory struct{ Packed, PerToken, Bounded, State int64 }

// Inspect describes a GGUF file, whether this program runs it or not. It reads the data of norms
// and biases only. memory returns the memory of a model and the reasons why it does not run
// (exec.MemoryOf). Inspect returns gguf.ErrChanged if the file is written to meanwhile.
func Inspect(f *gguf.File, memory func(*model.Model) (Memory, []error)) (Report, error) {
	r := Report{Arch: f.Architecture(), Bytes: f.Size()}
	r.Name, _ = f.String("general.name")
	for _, k := range f.Keys() {
		r.Metadata = append(r.Metadata, Entry{k, f.Text(k)})
	}
	for _, t := range f.Tensors() {
		r.Tensors = append(r.Tensors, TensorEntry{t.Name, t.Type.String(), t.Dims, int64(len(t.Data))})
		r.Parameters += int64(t.Elems())
		r.count(t)
	}
	slices.SortStableFunc(r.Types, func(a, b TypeUse) int { return int(min(1, max(-1, b.Bytes-a.Bytes))) })
	if shape, err := modelshape.Of(f); err == nil {
		r.Shape, r.KVPerToken = &shape, shape.KVBytesPerToken(microkernel.KVF16)
	}
	m, wrong := loadAll(f)
	if len(wrong) == 0 {
		var takes Memory
		takes, wrong = memory(m)
		r.Packed, r.KVPerToken, r.KVBounded, r.State = takes.Packed, takes.PerToken, takes.Bounded, takes.State
	}
	for _, err := range wrong {
		if errors.Is(err, gguf.ErrChanged) {
			return r, err
		}
		r.Refuse(err)
	}
	return r, nil
}

// Refuse adds a reason why the file does not run.
func (r *Report) Refuse(err error) {
	r.Reasons = append(r.Reasons, err.Error())
	r.Packed, r.Refused = 0, r.Reasons[0]
}

// loadAll is Load that returns all errors: one per unsupported tensor type, and a limited number
// for tensors.
func loadAll(f *gguf.File) (m *model.Model, wrong []error) {
	guarded := f.Guard(func() error {
		c, errs := arch.ConfigErrors(f)
		wrong = append(errs, unsupportedTypes(f)...)
		if len(errs) > 0 {
			return nil
		}
		var err error
		if m, err = arch.Model(c); err != nil {
			return err
		}
		specs := tensors.List(m)
		missing := bindAll(m, f, specs)
		missing = append(missing, unknown(m, f, specs)...)
		const limit = 12
		if n := len(missing); n > limit {
			missing = append(missing[:limit], fmt.Errorf("and %d more tensors are missing or of other shapes", n-limit))
		}
		wrong = append(wrong, missing...)
		if len(wrong) == 0 {
			wrong = checkRopes(m)
			tie(m)
		}
		return nil
	})
	if guarded != nil {
		wrong = []error{guarded}
	}
	return m, wrong
}

// bindAll binds the tensors and returns an error for each that it cannot bind.
func bindAll(m *model.Model, f *gguf.File, specs []tensors.Spec) (wrong []error) {
	for _, s := range specs {
		if t, ok := f.Tensor(s.Name); ok && t.Type.Desc() == nil {
			continue // unsupportedTypes reports it
		}
		if err := bind(s, f, m.Arch); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// unsupportedTypes returns an error for each unsupported tensor type, with a tensor that has it.
func unsupportedTypes(f *gguf.File) (wrong []error) {
	first, count := map[gguf.Type]string{}, map[gguf.Type]int{}
	var order []gguf.Type
	for _, t := range f.Tensors() {
		if t.Type.Desc() != nil {
			continue
		}
		if count[t.Type]++; count[t.Type] == 1 {
			first[t.Type], order = t.Name, append(order, t.Type)
		}
	}
	for _, t := range order {
		more := ""
		if count[t] > 1 {
			more = fmt.Sprintf(" and %d more", count[t]-1)
		}
		wrong = append(wrong, fmt.Errorf("type %s of tensor %.80q%s is %w: use %s", strings.TrimPrefix(t.String(),
			"type "),
			first[t], more, model.ErrUnsupported, typeList()))
	}
	return wrong
}

// count adds a tensor to the counts of its type.
func (r *Report) count(t *gguf.Tensor) {
	at := slices.IndexFunc(r.Types, func(u TypeUse) bool { return u.Type == t.Type.String() })
	if at < 0 {
		at = len(r.Types)
		r.Types = append(r.Types, TypeUse{Type: t.Type.String()})
	}
	u := &r.Types[at]
	u.Tensors++
	u.Parameters += int64(t.Elems())
	u.Bytes += int64(len(t.Data))
	if t.Type.Desc() == nil {
		return
	}
	if l := (microkernel.Layout{Type: qtype.Type(t.Type), N: 1, K: t.Dims[0]}); len(t.Dims) > 1 {
		for _, n := range t.Dims[1:] {
			l.N *= n
		}
		u.Panels += int64(l.Bytes())
	}
}
