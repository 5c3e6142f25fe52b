package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Tile registers: sums in the first four, then two for rows of A and two for columns of B, which
// alternate so that no product waits for a load.
const (
	tileA = asm.Tile(4)
	tileB = asm.Tile(6)
)

// configureTiles sets tiles 0 to 5 to the rows of the kernel, and the others to those of a panel.
func (g *gen) configureTiles() {
	if !g.tiled() {
		return
	}
	var rows, bytes [8]uint8
	for i := range rows {
		rows[i], bytes[i] = uint8(g.Rows), 64
		if asm.Tile(i) >= tileB {
			rows[i] = tileK / 2
		}
	}
	config := asm.TileConfig(rows, bytes)
	g.LdTileCfg(g.Const(config[:]))
}

func (g *gen) releaseTiles() {
	if g.tiled() {
		g.TileRelease()
	}
}

// tileProduct adds to the tiles of `panels` panels step k of the rows at a times the columns of the
// panels: b returns where those of a panel are.
func (g *gen) tileProduct(k, panels int, a asm.Mem, b func(panel int) asm.Mem) {
	rows := tileA + asm.Tile(k%2)
	g.TileLoad(rows, a)
	for p := range panels {
		columns := tileB + asm.Tile(p%2)
		g.TileLoad(columns, b(p))
		g.TileDot(asm.TDPBF16PS, asm.Tile(p), rows, columns)
	}
}

// storeTiles stores the tiles of `panels` panels side by side into scratch, at the scores. It
// overwrites step.
func (g *gen) storeTiles(panels int, step asm.Reg) {
	g.MovImm(step, kernel.ScratchRow)
	for p := range panels {
		g.TileStore(asm.AtIndex(scrReg, step, 1, kernel.ScratchScores+64*p), asm.Tile(p))
	}
}

// beginTileScores clears the tiles of scores and sets the strides of their operands: between lines
// of pairs, and between queries.
func (g *gen) beginTileScores() (lineStep, rowStep asm.Reg) {
	lineStep, rowStep = count, passes
	g.MovImm(lineStep, 64)
	g.MovImm(rowStep, uint64(g.queryLen()))
	for p := range tilePanels {
		g.TileZero(asm.Tile(p))
	}
	return lineStep, rowStep
}

// tileScores is scores for all positions of the block at once.
func (g *gen) tileScores() {
	lineStep, rowStep := g.beginTileScores()
	for k := range g.keyDims() / tileK {
		keys := func(p int) asm.Mem {
			return asm.AtIndex(kReg, lineStep, 1, p*2*arith.Lanes*g.keyDims()+k*tileBytes)
		}
		g.tileProduct(k, tilePanels, asm.AtIndex(qReg, rowStep, 1, 64*k), keys)
	}
	g.storeTiles(tilePanels, rowStep)
}

// tileValues computes the products of probabilities and values: four panels of dimensions at a
// time, for both halves of the positions or, if no row sees more, the first. The sums overwrite the
// scores.
func (g *gen) tileValues() {
	const lineStep, rowStep = count, aPtr
	g.Lea(outPtr, asm.At(stateReg, kernel.StateOut))
	g.overPasses(g.PaddedDim()/arith.Lanes, tilePanels, func(_, panels int) {
		all := g.NewLabel()
		g.MovImm(lineStep, 64)
		g.MovImm(rowStep, bf16Row)
		for p := range panels {
			g.TileZero(asm.Tile(p))
		}
		product := func(k int) {
			values := func(p int) asm.Mem { return asm.AtIndex(vReg, lineStep, 1, p*pairPanel+k*tileBytes) }
			g.tileProduct(k, panels, asm.AtIndex(scrReg, rowStep, 1, g.bf16At()+64*k), values)
		}
		product(0)
		g.Mov32(bPtr, asm.At(scrReg, kernel.ScratchLargest))
		g.Cmp(bPtr, asm.Imm32(tileK))
		g.Jcc(asm.LessOrEqual, all)
		product(1)
		g.Bind(all)
		g.storeTiles(panels, rowStep)
		g.mergeTiles(panels)
		g.Add(vReg, asm.Imm32(int32(panels*pairPanel)))
		g.Add(outPtr, asm.Imm32(int32(64*panels)))
	})
}
