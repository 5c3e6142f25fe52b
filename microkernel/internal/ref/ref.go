package ref

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// RunRef computes a call in plain Go with correctly rounded arithmetic, for the compute path and
// weight type of the spec. It is the oracle of every kernel, and the kernel itself where no code
// can be generated.
func RunRef(s kernel.Spec, g *kernel.GemmArgs) {
	panels := (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth
	for p := range panels {
		columns := min(qtype.PanelWidth, g.N-p*qtype.PanelWidth)
		panel := unsafe.Add(g.B, p*g.BStride)
		c := unsafe.Add(g.C, 4*p*qtype.PanelWidth)
		if !g.Accumulate {
			for m := range g.M {
				clear(unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns))
			}
		}
		switch s.Compute {
		case kernel.ComputeInt8:
			refBlocks(s.B, g, panel, c, columns)
		case kernel.ComputeInt8Superblock:
			refGroups(s.B, g, panel, c, columns)
		case kernel.ComputeInt8K:
			refSuperblocks(s.B, g, panel, c, columns)
		case kernel.ComputeBF16Tile:
			refTiles(g, panel, c, columns)
		case kernel.ComputeBF16:
			refPairs(s.Dot.RoundsToOdd(), g, panel, c, columns)
		default:
			refWide(s.B, g, panel, c, columns)
		}
	}
}

// refWide continues the chains of one panel over [K0, K1), 32 k at a time.
func refWide(t qtype.Type, g *kernel.GemmArgs, panel, c unsafe.Pointer, columns int) {
	var w [32]Row
	for k0 := g.K0; k0 < g.K1; k0 += len(w) {
		n := min(len(w), g.K1-k0)
		Rows(t, panel, k0, w[:n])
		for m := range g.M {
			a := unsafe.Slice((*float32)(unsafe.Add(g.A, m*g.AStride+4*k0)), n)
			acc := unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns)
			for i, x := range a {
				row := &w[i]
				for j := range acc {
					acc[j] = FMA32(x, row[j], acc[j])
				}
			}
		}
	}
}

// refBlocks continues the chains of one panel over the blocks of [K0, K1).
func refBlocks(t qtype.Type, g *kernel.GemmArgs, panel, c unsafe.Pointer, columns int) {
	for k0 := g.K0; k0 < g.K1; k0 += kernel.ActQ8Block {
		subBlock := subBlockAt(t, panel, k0)
		var w [kernel.ActQ8Block][qtype.PanelWidth]int32
		for k := range w {
			for j := range columns {
				w[k][j] = int32(subBlock.integer(k, j))
			}
		}
		for m := range g.M {
			a := kernel.ActQ8At(unsafe.Add(g.A, m*g.AStride), k0/kernel.ActQ8Block)
			acc := unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns)
			refSubBlock(subBlock, &w, a, acc)
		}
	}
}

// groupRows is the number of rows whose sums refGroups keeps on the stack.
const groupRows = 64

// refGroups continues the chains of one panel over the superblocks of [K0, K1). Each superblock
// has a chain of its own by the scales of the weights, which one FMA by the scale of the
// activations adds.
func refGroups(t qtype.Type, g *kernel.GemmArgs, panel, c unsafe.Pointer, columns int) {
	for from := 0; from < g.M; from += groupRows {
		refGroupRows(t, g, panel, c, columns, from, min(from+groupRows, g.M))
	}
}

// refGroupRows is refGroups for the rows [from, to), at most groupRows.
func refGroupRows(t qtype.Type, g *kernel.GemmArgs, panel, c unsafe.Pointer, columns, from, to int) {
	var w [kernel.ActQ8Block][qtype.PanelWidth]int32
	var rows [groupRows][qtype.PanelWidth]float32
	for k0 := g.K0; k0 < g.K1; k0 += kernel.ActQ8Block {
		subBlock := subBlockAt(t, panel, k0)
		for k := range w {
			for j := range columns {
				w[k][j] = int32(subBlock.integer(k, j))
			}
		}
		end := (k0+kernel.ActQ8Block)%kernel.ActQ8Group == 0
		for m := from; m < to; m++ {
			sums := &rows[m-from]
			a := *kernel.ActQ8At(unsafe.Add(g.A, m*g.AStride), k0/kernel.ActQ8Block)
			scale := a.Scale
			a.Scale = 1 // a factor of one leaves the scales of the weights and the sums as they are
			refSubBlock(subBlock, &w, &a, sums[:columns])
			if !end {
				continue
			}
			acc := unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns)
			for j := range acc {
				acc[j] = FMA32(sums[j], scale, acc[j])
			}
			*sums = [qtype.PanelWidth]float32{}
		}
	}
}

// refSubBlock adds one block of activations to the chains of a row: for each span of k that shares
// a scale, one FMA by the product of the two scales and, for affine types, one FMA of the offset
// by the sum of the activations.
func refSubBlock(subBlock packedSubBlock, w *[kernel.ActQ8Block][qtype.PanelWidth]int32, a *kernel.ActQ8,
	acc []float32) {
	span := subBlock.Span()
	for k0 := 0; k0 < kernel.ActQ8Block; k0 += span {
		sum := int32(0)
		for _, q := range a.Q[k0 : k0+span] {
			sum += int32(q)
		}
		for j := range acc {
			dot := int32(0)
			for k := k0; k < k0+span; k++ {
				dot += int32(a.Q[k]) * w[k][j]
			}
			scale, offset := subBlock.scale(k0, j)
			acc[j] = FMA32(float32(dot), scale*a.Scale, acc[j])
			if subBlock.Affine() {
				acc[j] = FMA32(float32(sum)*a.Scale, offset, acc[j])
			}
		}
	}
}
