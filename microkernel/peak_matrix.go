package microkernel

import (
	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/internal/asm"
)

// amxPeakCode is peakCode for bytes on AMX: six tiles that products of two others are added to, as many as there are left. It gives the tiles back.
func amxPeakCode() (code []byte, ops int, err error) {
	const accs, x, y, k = 6, asm.Tile(6), asm.Tile(7), 64
	code, err = assemble(AVX512, func(a *asm.Asm) {
		var rows, bytes [8]uint8
		var data [64]byte
		for i := range rows {
			rows[i], bytes[i] = amxRows, k
		}
		for i := range data {
			data[i] = byte(37*i + 90)
		}
		config := asm.TileConfig(rows, bytes)
		a.LdTileCfg(a.Const(config[:]))
		a.Lea(asm.RDX, a.Const(data[:]))
		a.Xor(asm.RAX, asm.RAX) // all rows are the same
		a.TileLoad(x, asm.AtIndex(asm.RDX, asm.RAX, 1, 0))
		a.TileLoad(y, asm.AtIndex(asm.RDX, asm.RAX, 1, 0))
		for i := range asm.Tile(accs) {
			a.TileZero(i)
		}
		a.Mov(asm.RCX, asm.At(asm.RDI, 0))
		a.Align(64)
		loop := a.Here()
		for i := range asm.Tile(accs) {
			a.TileDot(asm.TDPBSSD, i, x, y)
		}
		a.Dec(asm.RCX)
		a.Jcc(asm.NotZero, loop)
		a.TileRelease()
		a.VZeroUpper()
		a.Ret()
	})
	return code, accs * 2 * amxRows * PanelWidth * k, err
}

// smePeakCode is peakCode on SME: outer products into the four tiles, of vectors as long as the kernels use.
func smePeakCode(bytes bool, f Features) (code []byte, ops int, err error) {
	const tiles, x, count = 4, a64.V(0), a64.X(1)
	lanes, perLane, op := 8, 2, a64.FMOPA
	if f.Has(HasSME512) {
		lanes = 16
	}
	if bytes {
		perLane, op = 8, a64.SMOPA
	}
	code, err = assembleNEON(a64.SME, func(a *a64.Asm) {
		a.I(a64.SMSTART)
		a.MovImm(count, 4*lanes)
		a.I(a64.WHILELOB, smeAll, a64.ZR, count)
		a.I(a64.ZEROZA)
		a.I(a64.ZDUPB, x, a64.Imm(0x3F)) // 0.75 as float32
		a.I(a64.LDRX, count, nArgs, a64.Imm(0))
		a.Loop(count, func() {
			for i := range a64.Imm(tiles) {
				a.I(op, i, smeAll, smeAll, x, x)
			}
		})
		a.I(a64.SMSTOP)
		a.Ret()
	})
	return code, tiles * lanes * lanes * perLane, err
}
