package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// The products of a fused kernel on tile registers: four panels of sixteen columns side by side, so
// that no product waits for the one before it. A tile of rows of A and one of B take turns with
// another of each.
const (
	tileA      = asm.Tile(4)
	tileB      = asm.Tile(6)
	tilePanels = 4
)

// tiled says that the kernel has tiles.
func (f Fused) tiled() bool { return f.Dot == TDPBF16 && !f.few() }

// configureTiles gives tiles 0 to 5 the rows of the kernel, and the others those of a panel.
func (g *fused) configureTiles() {
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

func (g *fused) releaseTiles() {
	if g.tiled() {
		g.TileRelease()
	}
}

// tileProduct adds to the tiles of `panels` panels step k of the rows at a, whose distance is in
// rowStep, times the panels at b, panel bytes apart, whose rows are 64 bytes apart as lineStep
// says.
func (g *fused) tileProduct(k, panels int, a asm.Mem, b asm.Reg, panel int, lineStep asm.Reg) {
	rows := tileA + asm.Tile(k%2)
	g.TileLoad(rows, a)
	for p := range panels {
		columns := tileB + asm.Tile(p%2)
		g.TileLoad(columns, asm.AtIndex(b, lineStep, 1, p*panel+k*tileBytes))
		g.TileDot(asm.TDPBF16PS, asm.Tile(p), rows, columns)
	}
}

// storeTiles stores the tiles of `panels` panels side by side into scratch, where scores are too.
// step is overwritten.
func (g *fused) storeTiles(panels int, step asm.Reg) {
	g.MovImm(step, rowP)
	for p := range panels {
		g.TileStore(asm.AtIndex(scrReg, step, 1, scrP+64*p), asm.Tile(p))
	}
}

// beginTileScores clears the tiles of scores and sets the strides of their operands: between lines
// of pairs, and between queries.
func (g *fused) beginTileScores() (lineStep, rowStep asm.Reg) {
	lineStep, rowStep = count, passes
	g.MovImm(lineStep, 64)
	g.MovImm(rowStep, uint64(g.QueryBytes()))
	for p := range tilePanels {
		g.TileZero(asm.Tile(p))
	}
	return lineStep, rowStep
}

// tileScores is scores, of all positions of the block at once.
func (g *fused) tileScores() {
	lineStep, rowStep := g.beginTileScores()
	for k := range g.keyDims() / tileK {
		g.tileProduct(k, tilePanels, asm.AtIndex(qReg, rowStep, 1, 64*k), kReg, 2*group*g.keyDims(), lineStep)
	}
	g.storeTiles(tilePanels, rowStep)
}

// tileValues is values: four panels of dimensions at a time, of both halves of the positions or of
// the first where no row sees more. The scores have made room for the sums.
func (g *fused) tileValues() {
	const lineStep, rowStep = count, aPtr
	g.Lea(outPtr, asm.At(stateReg, StateOut))
	g.overPasses(g.paddedDim()/group, tilePanels, func(_, panels int) {
		all := g.NewLabel()
		g.MovImm(lineStep, 64)
		g.MovImm(rowStep, roundedRow)
		for p := range panels {
			g.TileZero(asm.Tile(p))
		}
		probabilities := func(k int) asm.Mem { return asm.AtIndex(scrReg, rowStep, 1, g.roundedAt()+64*k) }
		g.tileProduct(0, panels, probabilities(0), vReg, pairPanel, lineStep)
		g.Mov32(bPtr, asm.At(scrReg, scrLargest))
		g.Cmp(bPtr, asm.Imm32(tileK))
		g.Jcc(asm.LessOrEqual, all)
		g.tileProduct(1, panels, probabilities(1), vReg, pairPanel, lineStep)
		g.Bind(all)
		g.storeTiles(panels, rowStep)
		g.mergeTiles(panels)
		g.Add(vReg, asm.Imm32(int32(panels*pairPanel)))
		g.Add(outPtr, asm.Imm32(int32(64*panels)))
	})
}

// mergeTiles is mergeRows for sums where storeTiles leaves them.
func (g *fused) mergeTiles(panels int) {
	g.mergeStored(panels, func(r, p int) asm.Mem { return asm.At(scrReg, scrP+r*rowP+64*p) })
}

// mergeStored is mergeRows for sums in memory.
func (g *fused) mergeStored(panels int, sum func(r, p int) asm.Mem) {
	const zero = 30
	oldMul, newMul := g.v(28), g.v(29)
	g.zero(zero)
	g.seeingRows(oldMul, newMul, func(r int) {
		for p := range panels {
			acc := g.v((r*panels + p) % 16)
			g.I(asm.VADDPS, acc, g.v(zero), sum(r, p))
			g.mergeInto(asm.At(outPtr, 4*r*g.paddedDim()+64*p), acc, oldMul, newMul)
		}
	})
}
