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

// linesPerTurn returns the share of one turn of a product.
func (g *gen) linesPerTurn(columns int) int {
	if !g.chained() {
		return 0
	}
	own := float64(unroll*columns*arith.Lanes*g.ElementBytes()) / 64
	own *= float64(g.lines()) / float64(g.lines()-4*g.ScaleFloats()/64) // with its part of the scales
	return int(own*g.productShare() + 0.5)
}

// lines returns a block of keys and one of values in cache lines.
func (g *gen) lines() int {
	return (positions*(g.HeadDim+g.PaddedDim())*g.ElementBytes() + 4*g.ScaleFloats()) / 64
}

// productShare returns how much of a block's time the products take, counted in vector
// instructions: widening and multiplying keys and values, against the softmax and the merge of
// each row.
func (g *gen) productShare() float64 {
	rows, dim, widen := float64(g.Rows), float64(g.HeadDim), 2.0
	if g.Int8 {
		widen = 3
	}
	products := dim * (widen + rows) * 2 * positions / arith.Lanes
	rest := rows*(80+dim/4) + 300
	return products / (products + rest)
}

// linesPerRow returns the share of one row of the softmax.
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

// streamShare returns how much of a block's time making pairs takes, in vector instructions:
// against the softmax and the merge of each row.
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

// streamTiles returns the tiles of pairs of a block.
func (g *gen) streamTiles() int {
	return positions/arith.Lanes*(g.keyDims()/tileK) + g.PaddedDim()/arith.Lanes*(positions/tileK)
}

// streamLines returns how many lines of the next block the pairs from p on ask for: their share of
// the time, so that the softmax has its own.
func (g *gen) streamLines(p int) int {
	turns := 2 * g.streamTiles() * tileK / 2 / pairUnroll / 2
	total := int(float64(g.lines()) * g.streamShare())
	per := total / turns // of four pairs
	if extra := total - per*turns; extra*(tileK/2/pairUnroll) >= turns*(p/pairUnroll+1) {
		per++
	}
	return per
}

// pairLines: see pairLinesPerTurn.
func (g *gen) pairLines() int {
	turns := positions/arith.Lanes*(g.HeadDim/2/pairUnroll) + g.PaddedDim()/arith.Lanes*(positions/2/pairUnroll)
	return turns * g.pairLinesPerTurn()
}

// pairLinesPerTurn returns the lines of the next block that a turn of making pairs asks for,
// pairLines those of a whole block: as many as the turns read themselves, but for the scales and
// odd rows.
func (g *gen) pairLinesPerTurn() int { return 2 * pairUnroll * arith.Lanes * g.ElementBytes() / 64 }

// integerRest returns the lines that the products leave to the softmax and what follows it.
func (g *gen) integerRest() int {
	if g.Opened {
		return 0
	}
	scores := positions / arith.Lanes / g.integerColumns() * g.sets() * g.integerLines(setLines*g.integerColumns())
	values := g.sets() * positions / arith.Lanes * g.integerLines(setPanels*valueLines)
	return max(0, g.lines()-scores-values)
}

// integerLines returns the lines of the next block that a turn of a product asks for which reads
// so many itself. The products of few rows ask for all: those wait for memory, and what is between
// them does not take long. Those of more rows ask for the share that products have of the time,
// counted in vector instructions.
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

// prefetchTurn asks for the share of step i of n of `lines` lines of the next block.
func (g *gen) prefetchTurn(lines, i, n int) {
	for l := lines * i / n; l < lines*(i+1)/n; l++ {
		g.Prefetch(asm.T1, asm.At(ahead, lineBytes*l))
	}
}

// advanceAhead goes on behind so many lines of the next block.
func (g *gen) advanceAhead(lines int) {
	if lines > 0 {
		g.Add(ahead, asm.Imm32(int32(lineBytes*lines)))
	}
}

// prefetchPairs prefetches beside an unrolled step; single ones are too few to ask for lines.
func (g *gen) prefetchPairs(n int) {
	if n == pairUnroll {
		g.prefetch(g.pairLinesPerTurn())
	}
}

// streamNear asks for the lines nearBytes behind the `size` bytes at `at`, of a tile of `all`
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
