package microkernel

import "unsafe"

// RunRef computes a call in plain Go with correctly rounded arithmetic, for the compute path and weight type of the spec.
// It is the oracle of every kernel, and the kernel itself where no code can be generated.
func RunRef(s Spec, g *GemmArgs) {
	panels := (g.N + PanelWidth - 1) / PanelWidth
	for p := range panels {
		columns := min(PanelWidth, g.N-p*PanelWidth)
		panel := unsafe.Add(g.B, p*g.BStride)
		c := unsafe.Add(g.C, 4*p*PanelWidth)
		if !g.Accumulate {
			for m := range g.M {
				clear(unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns))
			}
		}
		if s.Compute == ComputeInt8 {
			refBlocks(s.B, g, panel, c, columns)
		} else {
			refWide(s.B, g, panel, c, columns)
		}
	}
}

// refWide continues the chains of one panel over [K0, K1), 32 k at a time.
func refWide(t WeightType, g *GemmArgs, panel, c unsafe.Pointer, columns int) {
	var w [32]panelRow
	for k0 := g.K0; k0 < g.K1; k0 += len(w) {
		n := min(len(w), g.K1-k0)
		unpackRows(t, panel, k0, w[:n])
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
func refBlocks(t WeightType, g *GemmArgs, panel, c unsafe.Pointer, columns int) {
	for k0 := g.K0; k0 < g.K1; k0 += ActQ8Block {
		block := unsafe.Slice((*byte)(unsafe.Add(panel, PanelOffset(t, k0))), weightInfos[t].panelBytes)
		var scale panelRow
		var w [ActQ8Block][PanelWidth]int8
		for j := range columns {
			scale[j] = blockScale(block, j)
			for k := range ActQ8Block {
				w[k][j] = signedQuant(t, block, k, j)
			}
		}
		for m := range g.M {
			a := actQ8At(unsafe.Add(g.A, m*g.AStride), k0/ActQ8Block)
			acc := unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns)
			for j := range acc {
				dot := int32(0)
				for k, q := range a.Q {
					dot += int32(q) * int32(w[k][j])
				}
				acc[j] = FMA32(float32(dot), scale[j]*a.Scale, acc[j])
			}
		}
	}
}

// signedQuant is the integer of element k, column c of a quantized block.
func signedQuant(t WeightType, block []byte, k, c int) int8 {
	if t == Q4_0 {
		return int8(quantQ4(block, k, c)) - 8
	}
	return int8(quantQ8(block, k, c) ^ 0x80)
}
