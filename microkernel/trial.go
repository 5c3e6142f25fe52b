package microkernel

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
)

// largest returns the first spec with the most elements in its tile, or nil.
func largest(list []Spec) (best *Spec) {
	for i, s := range list {
		if best == nil || s.MR*s.NR > best.MR*best.NR {
			best = &list[i]
		}
	}
	return best
}

// trial generates the operands of a product for self-tests and rates of kernels.
type trial struct{ seed uint32 }

func (t *trial) random() uint32 {
	t.seed = t.seed*1664525 + 1013904223
	return t.seed >> 8
}

// panels fills panels with random weights of finite scales.
func (t *trial) panels(panels []byte, b WeightType) {
	if b == BF16 {
		t.bf16(panels)
		return
	}
	for i := range panels {
		panels[i] = byte(t.random())
	}
	for at := 0; at < len(panels); at += PanelOffset(b, b.Block()) {
		for i := range b.Desc().HeadBytes() / 2 {
			panels[at+2*i+1] = byte(0x20 + t.random()%8)
		}
	}
}

// bf16 fills memory with bfloat16 of magnitudes between 2^-7 and 1.
func (t *trial) bf16(dst []byte) {
	for i := 0; i+1 < len(dst); i += 2 {
		dst[i], dst[i+1] = byte(t.random()), byte(0x3C+t.random()%4|t.random()%2<<7)
	}
}

// rows fills whole rows of activations in the form of a compute path, without gaps.
func (t *trial) rows(rows []byte, c Compute) {
	switch c {
	case ComputeBF16, ComputeBF16Tile:
		t.bf16(rows)
	case ComputeInt8K:
		for i := range len(rows) / kernel.ActQ8KBytes {
			a := kernel.ActQ8KAt(unsafe.Pointer(&rows[0]), i)
			a.Scale = t.scale()
			t.integers(a.Q[:])
			a.SetSums()
		}
	default:
		for i := range len(rows) / ActQ8Bytes {
			a := kernel.ActQ8At(unsafe.Pointer(&rows[0]), i)
			a.Scale = t.scale()
			t.integers(a.Q[:])
			a.SetSums(a.Scale)
		}
	}
}

func (t *trial) scale() float32 { return float32(t.random()%1000) / 1000 }

func (t *trial) integers(q []int8) {
	for i := range q {
		q[i] = int8(t.random()%255) - 127
	}
}
