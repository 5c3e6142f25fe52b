package attention

import (
	"unsafe"

	"sandwich/internal/portable"
	"sandwich/microkernel"
	"sandwich/runtime/model"
)

// rope is a rotary position embedding: position p rotates pair i by p*freq[i].
type rope struct {
	freq []float64
	neox bool
	gain float64 // of cosines and sines
}

// Ropes are the rotary position embeddings of a model, by index in model.Ropes.
type Ropes []rope

// newRopes returns the rotations of a model for contexts of so many positions.
func newRopes(m *model.Model, context int) (list Ropes) {
	for _, r := range m.Ropes() {
		list = append(list, rope{freq: r.Frequencies(context), neox: r.Neox, gain: r.Gain})
	}
	return list
}

// Angles has the cosines and sines of the rows of a forward: [ropes][rows][width]float32.
type Angles struct {
	base        unsafe.Pointer
	rows, width int
}

// AngleBytes returns the memory of Angles for so many rows.
func AngleBytes(m *model.Model, rows int) int { return 4 * len(m.Ropes()) * rows * maxRotated(m) }

// NewAngles returns the angles in AngleBytes of memory.
func NewAngles(m *model.Model, rows int, memory unsafe.Pointer) Angles {
	return Angles{base: memory, rows: rows, width: maxRotated(m)}
}

// maxRotated returns the largest number of dimensions of a head that rotate.
func maxRotated(m *model.Model) (largest int) {
	for _, r := range m.Ropes() {
		largest = max(largest, r.Dim)
	}
	return largest
}

// at returns the address of the cosines and sines of a row.
func (a *Angles) at(rope, row int) *float32 {
	return (*float32)(unsafe.Add(a.base, 4*(rope*a.rows+row)*a.width))
}

// Fill computes the angles of a row at a position, in float64 so that long contexts keep their
// precision.
func (l Ropes) Fill(a *Angles, row, pos int) {
	for i := range l {
		dst, half := unsafe.Slice(a.at(i, row), a.width), len(l[i].freq)
		for k, f := range l[i].freq {
			sin, cos := portable.Sincos(float64(pos) * f)
			dst[k], dst[half+k] = float32(l[i].gain*cos), float32(l[i].gain*sin)
		}
	}
}

// rotate rotates heads whose first elements are stride apart by the angles of a row.
func (l Ropes) rotate(vec *microkernel.Vec, a *Angles, x *float32, heads, stride, rope, row int) {
	r := &l[rope]
	vec.RoPE(x, 2*len(r.freq), heads, stride, a.at(rope, row), r.neox)
}
