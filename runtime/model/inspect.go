package model

import (
	"errors"
	"slices"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// Report is what `model inspect` prints about a file. Its JSON form is stable.
type Report struct {
	Arch       string    `json:"arch"`
	Name       string    `json:"name"`
	Bytes      int64     `json:"bytes"`      // of all parts
	Parameters int64     `json:"parameters"` // elements of all tensors
	Types      []TypeUse `json:"types"`
	// absent if the architecture is unknown or the file incomplete
	Shape      *plans.ModelShape `json:"shape,omitempty"`
	KVPerToken int64             `json:"kv_bytes_per_token"` // of an f16 cache; 0 without a shape
	// of an f16 cache, what layers that forget hold of a sequence at most, whatever its length
	KVBounded int64 `json:"kv_bytes_bounded,omitempty"`
	// of the states of a sequence, where layers have some
	State int64 `json:"state_bytes,omitempty"`
	// of memory that its weights take when it runs; 0 if it does not
	Packed int64 `json:"packed_bytes"`
	// why this program would not run the file; empty if it would
	Refused  string        `json:"refused,omitempty"`
	Metadata []Entry       `json:"metadata"` // in the order of the file
	Tensors  []TensorEntry `json:"tensors"`
}

// TypeUse sums up the tensors of one type.
type TypeUse struct {
	Type       string `json:"type"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
	Panels     int64  `json:"panel_bytes,omitempty"` // of its matrices, packed for kernels
}

// Entry is one metadata key with its value for a reader; arrays are given as length and type.
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

// Memory is what a model takes when it runs, in bytes: its packed weights, and of an f16 KV cache
// what each token of a sequence and what each sequence adds, with the states of its layers.
type Memory struct{ Packed, PerToken, Bounded, State int64 }

// Inspect describes a GGUF file, runnable or not; of tensors it reads norms and biases only. memory
// says what a model takes, and why it would not run: exec's answers, who allocates and runs it. The
// error is a file that was written to meanwhile.
func Inspect(f *gguf.File, memory func(*Model) (Memory, error)) (Report, error) {
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
	if shape, err := ShapeOf(f); err == nil {
		r.Shape, r.KVPerToken = &shape, shape.KVBytesPerToken(microkernel.KVF16)
	}
	m, err := Load(f)
	if err == nil {
		var takes Memory
		takes, err = memory(m)
		r.Packed, r.KVPerToken, r.KVBounded, r.State = takes.Packed, takes.PerToken, takes.Bounded, takes.State
	}
	switch {
	case errors.Is(err, gguf.ErrChanged):
		return r, err
	case err != nil:
		r.Packed, r.Refused = 0, err.Error()
	}
	return r, nil
}

// count adds a tensor to its type's line.
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
	if l := (microkernel.Layout{Type: qtype.Type(t.Type), N: 1, K: t.Dims[0]}); len(t.Dims) > 1 {
		for _, n := range t.Dims[1:] {
			l.N *= n
		}
		u.Panels += int64(l.Bytes())
	}
}
