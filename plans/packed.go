package plans

import (
	"slices"

	"sandwich/microkernel"
)

// TypeBytes is what the multiplied matrices of one weight type take: in the file, and packed for
// kernels, by one rank.
type TypeBytes struct {
	Type   string `json:"type"`
	File   int64  `json:"file_bytes"`
	Panels int64  `json:"panel_bytes"`
}

// Packed sums up the matrices that products run over, by type, in the order of the model. Types
// that there are no kernels for are left out.
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
