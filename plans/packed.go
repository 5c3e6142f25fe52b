package plans

import (
	"slices"

	"sandwich/microkernel"
)

// TypeBytes is the size in bytes of the multiplied matrices of one weight type: in the file, and
// packed for kernels of one rank.
type TypeBytes struct {
	Type   string `json:"type"`
	File   int64  `json:"file_bytes"`
	Panels int64  `json:"panel_bytes"`
}

// Packed returns the sizes of the matrices that products use, by type in the order of the model.
// Types without kernels are left out.
func (m ModelShape) Packed() (out []TypeBytes) {
	for _, w := range m.Weights {
		t, err := microkernel.ParseWeightType(w.Type)
		if err != nil || w.Role == RoleEmbed {
			continue
		}
		at := slices.IndexFunc(out, func(b TypeBytes) bool { return b.Type == w.Type })
		if at < 0 {
			at = len(out)
			out = append(out, TypeBytes{Type: w.Type})
		}
		l := microkernel.Layout{Type: t, N: w.N, K: w.K}
		out[at].File += int64(w.Count * w.N * t.RowBytes(w.K))
		out[at].Panels += int64(w.Count * l.Bytes())
	}
	return out
}
