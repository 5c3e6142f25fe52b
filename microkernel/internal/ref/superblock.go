package ref

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// refSuperblocks continues the chains of one panel over the superblocks of [K0, K1) by exact
// integer sums (kernel.ComputeInt8K).
func refSuperblocks(t qtype.Type, g *kernel.GemmArgs, panel, c unsafe.Pointer, columns int) {
	var w superblock
	for k0 := g.K0; k0 < g.K1; k0 += kernel.ActQ8Group {
		w.read(t, panel, k0, columns)
		for m := range g.M {
			a := kernel.ActQ8KAt(unsafe.Add(g.A, m*g.AStride), k0/kernel.ActQ8Group)
			w.add(a, unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns))
		}
	}
}

// superblock is one superblock of a panel as integers.
type superblock struct {
	weights [kernel.ActQ8Group][qtype.PanelWidth]int32 // times the scale of their sub-block
	offsets [kernel.ActQ8Group / 16][qtype.PanelWidth]int32
	scales  [qtype.PanelWidth][2]float32 // of weights and offsets
	affine  bool
}

// read reads the first columns of the superblock that begins at element k0.
func (w *superblock) read(t qtype.Type, panel unsafe.Pointer, k0, columns int) {
	w.affine = t.Desc().Affine()
	for at := 0; at < kernel.ActQ8Group; at += qtype.SubBlockK {
		sub := subBlockAt(t, panel, k0+at)
		for j := range columns {
			subs := sub.PackedSubs(sub.packed, j)
			for k := range qtype.SubBlockK {
				scale, offset := sub.IntegerScales(subs, k)
				w.weights[at+k][j] = int32(scale * sub.integer(k, j))
				w.offsets[(at+k)/16][j] = int32(offset)
			}
			w.scales[j] = sub.blockScales(j)
		}
	}
}

// add adds a superblock of a row to its chains: the exact sum of scaled products, rounded to
// nearest even and multiplied by both superblock scales, then that of the offsets.
func (w *superblock) add(a *kernel.ActQ8K, acc []float32) {
	for j := range acc {
		sum := int32(0)
		for k, q := range a.Q {
			sum += int32(q) * w.weights[k][j]
		}
		acc[j] = FMA32(float32(sum), w.scales[j][0]*a.Scale, acc[j])
		if !w.affine {
			continue
		}
		sum = 0
		for i, half := range a.HalfSums {
			sum += int32(half) * w.offsets[i][j]
		}
		acc[j] = FMA32(-float32(sum), w.scales[j][1]*a.Scale, acc[j])
	}
}

// refTiles continues the chains of one panel over [K0, K1), kernel.TileK k at a time
// (kernel.ComputeBF16Tile). Beyond the end of an odd K, products are zeros.
func refTiles(g *kernel.GemmArgs, panel, c unsafe.Pointer, columns int) {
	for k0 := g.K0; k0 < g.K1; k0 += kernel.TileK {
		pairs := (min(kernel.TileK, g.K1-k0) + 1) / 2
		words := unsafe.Slice((*[qtype.PanelWidth]uint32)(unsafe.Add(panel, qtype.BF16.PanelOffset(k0))), pairs)
		for m := range g.M {
			a := unsafe.Slice((*uint32)(unsafe.Add(g.A, m*g.AStride+2*k0)), pairs)
			acc := unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns)
			for j := range acc {
				acc[j] = DotTile(pairs, acc[j], func(i int) (x, y [2]float32) {
					return bf16Pair(a[i]), bf16Pair(words[i][j])
				})
			}
		}
	}
}

// DotTile computes an element of TDPBF16PS: the chain of the even products and that of the odd
// ones, each from zero, their sum, and the sum of that and the accumulator. at returns the factors
// of a pair of products.
func DotTile(pairs int, sum float32, at func(i int) (x, y [2]float32)) float32 {
	var even, odd float32
	for i := range pairs {
		x, y := at(i)
		even, odd = FMAFlush(x[0], y[0], even), FMAFlush(x[1], y[1], odd)
	}
	return AddFlush(sum, AddFlush(even, odd))
}
