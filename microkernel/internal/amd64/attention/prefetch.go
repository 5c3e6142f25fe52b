package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// prefetchPart emits the prefetches of k-step i of an iteration: its share of the lines of the
// next block, and the lines of this block that are read some k-steps later.
func (g *gen) prefetchPart(p product, i int) {
	g.prefetchShare(p.lines, i, unroll)
	if row := arith.Lanes * g.ElementBytes(); g.chained() && g.Rows <= nearRows && i*row%64 == 0 {
		for c := range p.columns {
			g.Prefetch(asm.T0, asm.At(bPtr, c*p.panelStride+i*row+nearBytes))
		}
	}
}

// nearBytes is the distance of a second request. Prefetches into L2 are dropped if too many reads
// are in flight, and a load that then goes to memory stalls all later instructions. Up to nearRows
// rows, which memory limits, lines are therefore requested again shortly before use.
const nearBytes = 512

// prefetch requests the next lines of the following block into L2, from where they arrive in time.
// A whole block would displace too much of L1.
func (g *gen) prefetch(lines int) {
	g.prefetchShare(lines, 0, 1)
	g.advanceAhead(lines)
}

// prefetchShare requests the share of step i of n of `lines` lines of the next block.
func (g *gen) prefetchShare(lines, i, n int) {
	for l := lines * i / n; l < lines*(i+1)/n; l++ {
		g.Prefetch(asm.T1, asm.At(ahead, lineBytes*l))
	}
}

// advanceAhead moves the prefetch pointer by that many lines.
func (g *gen) advanceAhead(lines int) {
	if lines > 0 {
		g.Add(ahead, asm.Imm32(int32(lineBytes*lines)))
	}
}

// linesPerTurn returns the lines of the next block that an iteration of a product requests. Only a
// limited number of reads can be in flight, so the prefetches of a block are spread evenly over
// its time: each iteration of a product requests its share, and the rows of the softmax divide the
// rest.
func (g *gen) linesPerTurn(columns int) int {
	if !g.chained() {
		return 0
	}
	own := float64(unroll*columns*arith.Lanes*g.ElementBytes()) / 64
	own *= float64(g.lines()) / float64(g.lines()-4*g.ScaleFloats()/64) // with its part of the scales
	return int(own*g.productShare() + 0.5)
}

// lines returns the cache lines of a block of keys and a block of values.
func (g *gen) lines() int {
	return (positions*(g.HeadDim+g.PaddedDim())*g.ElementBytes() + 4*g.ScaleFloats()) / 64
}

// productShare estimates the share of the products in a block's time by vector instructions:
// widening and multiplying keys and values, compared with the softmax and the merge of each row.
func (g *gen) productShare() float64 {
	rows, dim, widen := float64(g.Rows), float64(g.HeadDim), 2.0
	if g.Int8 {
		widen = 3
	}
	products := dim * (widen + rows) * 2 * positions / arith.Lanes
	rest := rows*(80+dim/4) + 300
	return products / (products + rest)
}

// linesPerRow returns the lines that one row of the softmax requests.
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

// streamShare estimates the share of the conversion to pairs in a block's time by vector
// instructions.
func (g *gen) streamShare() float64 {
	perPair := 8.0
	switch {
	case g.Int8:
		perPair = 12
	case g.truncates():
		perPair = 5
	}
	pairs := perPair * float64(g.streamTiles()*tileK/2)
	rest := float64(g.Rows)*(90+float64(g.HeadDim)/4) + 300
	return pairs / (pairs + rest)
}

// streamTiles returns the number of tiles of pairs in a block.
func (g *gen) streamTiles() int {
	return positions/arith.Lanes*(g.keyDims()/tileK) + g.PaddedDim()/arith.Lanes*(positions/tileK)
}

// streamLines returns the lines of the next block that the conversion of the pairs starting at p
// requests: its share of the time.
func (g *gen) streamLines(p int) int {
	turns := 2 * g.streamTiles() * tileK / 2 / pairUnroll / 2
	total := int(float64(g.lines()) * g.streamShare())
	per := total / turns // of four pairs
	if extra := total - per*turns; extra*(tileK/2/pairUnroll) >= turns*(p/pairUnroll+1) {
		per++
	}
	return per
}

// pairLines returns the lines that the conversion of a block requests.
func (g *gen) pairLines() int {
	turns := positions/arith.Lanes*(g.HeadDim/2/pairUnroll) + g.PaddedDim()/arith.Lanes*(positions/2/pairUnroll)
	return turns * g.pairLinesPerTurn()
}

// pairLinesPerTurn returns the lines that an iteration of the conversion requests: as many as it
// reads.
func (g *gen) pairLinesPerTurn() int { return 2 * pairUnroll * arith.Lanes * g.ElementBytes() / 64 }

// integerRest returns the lines that the products leave to the softmax and the quantization of
// weights.
func (g *gen) integerRest() int {
	if g.Opened {
		return 0
	}
	scores := positions / arith.Lanes / g.integerColumns() * g.sets() * g.integerLines(setLines*g.integerColumns())
	values := g.sets() * positions / arith.Lanes * g.integerLines(setPanels*valueLines)
	return max(0, g.lines()-scores-values)
}

// integerLines returns the lines of the next block that an iteration of a VPDPBUSD product
// requests, given the lines it reads. Products of few rows request all lines, because they wait
// for memory and the other steps are short. Those of more rows request the products' share of the
// time, estimated by vector instructions. Lines of the current block are not requested a second
// time: there is too little work between two of them.
func (g *gen) integerLines(read int) int {
	if g.Opened {
		return 0
	}
	rows, dim := float64(g.Rows), float64(g.HeadDim)
	own := float64(read) * float64(g.lines()) / (2 * dim)
	if g.Rows <= twoPanelRows {
		return int(own + 0.5)
	}
	products := dim*(2+1.5*rows) + dim*(1+rows) + dim*rows/4
	rest := rows*(90+dim) + 300
	return int(own*products/(products+rest) + 0.5)
}

// prefetchPairs emits the prefetches of an unrolled step of the conversion; single steps request
// no lines.
func (g *gen) prefetchPairs(n int) {
	if n == pairUnroll {
		g.prefetch(g.pairLinesPerTurn())
	}
}

// streamNear requests the lines nearBytes after the `size` bytes at offset `at` of a tile of `all`
// bytes, as prefetchPart does.
func (g *gen) streamNear(at, size, all, next int) {
	if g.Rows > nearRows || size < 64 {
		return
	}
	for l := at + nearBytes; l < at+nearBytes+size; l += 64 {
		to := l
		if l >= all {
			to = next + l - all
		}
		g.Prefetch(asm.T0, asm.At(streamSrc, to))
	}
}
