package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// prefetchPart asks for what k-step i of a turn has to: its share of the lines of the next block,
// and the lines of this one that come some k-steps later.
func (g *gen) prefetchPart(p product, i int) {
	for l := p.lines * i / unroll; l < p.lines*(i+1)/unroll; l++ {
		g.Prefetch(asm.T1, asm.At(ahead, 64*l))
	}
	if row := arith.Lanes * g.ElementBytes(); g.chained() && g.Rows <= nearRows && i*row%64 == 0 {
		for c := range p.columns {
			g.Prefetch(asm.T0, asm.At(bPtr, c*p.panelStride+i*row+nearBytes))
		}
	}
}

// Prefetches into L2 are dropped when too many reads are under way, and a load that then goes to
// memory stalls everything behind it: up to nearRows rows, what memory limits, lines are asked for
// again shortly before they are needed.
const (
	nearBytes = 512
)

// prefetch asks for the next lines of the block that comes after this one, into L2: from there it
// is quick enough, and a block ahead would crowd the L1 cache.
func (g *gen) prefetch(lines int) {
	for i := range lines {
		g.Prefetch(asm.T1, asm.At(ahead, 64*i))
	}
	if lines > 0 {
		g.Add(ahead, asm.Imm32(int32(64*lines)))
	}
}

// The prefetches of a block are spread evenly over its time, since only so many reads can be under
// way: the products take theirs with each turn of the loop, the softmax those that are left,
// divided among its rows.

// linesPerTurn is the share of one turn of a product.
func (g *gen) linesPerTurn(columns int) int {
	if !g.chained() {
		return 0
	}
	own := float64(unroll*columns*arith.Lanes*g.ElementBytes()) / 64
	own *= float64(g.lines()) / float64(g.lines()-4*g.ScaleFloats()/64) // with its part of the scales
	return int(own*g.productShare() + 0.5)
}

// lines is a block of keys and one of values in cache lines.
func (g *gen) lines() int {
	return (positions*(g.HeadDim+g.PaddedDim())*g.ElementBytes() + 4*g.ScaleFloats()) / 64
}

// productShare is how much of a block's time the products take, counted in vector instructions:
// widening and multiplying keys and values, against the softmax and the merge of each row.
func (g *gen) productShare() float64 {
	rows, dim, widen := float64(g.Rows), float64(g.HeadDim), 2.0
	if g.Int8 {
		widen = 3
	}
	products := dim * (widen + rows) * 2 * positions / arith.Lanes
	rest := rows*(80+dim/4) + 300
	return products / (products + rest)
}

// linesPerRow is the share of one row of the softmax.
func (g *gen) linesPerRow() int {
	if g.Opened {
		return 0 // its block is in a cache
	}
	total := g.lines()
	switch {
	case g.integers():
		return (g.integerRest() / 2) / g.Rows // the other half while probabilities become integers
	case g.streams():
		return int(float64(total)*(1-g.streamShare())) / g.Rows
	case !g.chained():
		return max(0, total-g.pairLines()) / g.Rows
	}
	turns := func(panels, k int) {
		for wide := g.columns(); panels > 0; panels -= wide {
			total -= k / unroll * g.linesPerTurn(min(panels, wide))
		}
	}
	turns(positions/arith.Lanes, g.HeadDim)
	turns(g.PaddedDim()/arith.Lanes, positions)
	return max(0, (total+g.Rows-1)/g.Rows)
}
