package microkernel

// largest returns the first spec with the most elements in its tile, or nil.
func largest(list []Spec) (best *Spec) {
	for i, s := range list {
		if best == nil || s.MR*s.NR > best.MR*best.NR {
			best = &list[i]
		}
	}
	return best
}

// fillTrial fills panels with random weights of finite scales, and rows with random activations.
func fillTrial(panels []byte, a []ActQ8, t WeightType) {
	seed := uint32(1)
	random := func() uint32 { seed = seed*1664525 + 1013904223; return seed >> 8 }
	for i := range panels {
		panels[i] = byte(random())
	}
	for at := 0; at < len(panels); at += PanelOffset(t, t.Block()) {
		for i := range t.Desc().HeadBytes() / 2 {
			panels[at+2*i+1] = byte(0x20 + random()%8)
		}
	}
	for i := range a {
		a[i].Scale = float32(random()%1000) / 1000
		for j := range a[i].Q {
			a[i].Q[j] = int8(random()%255) - 127
		}
		a[i].SetSums(a[i].Scale)
	}
}
