package asm

import "sandwich/microkernel/internal/code"

// TileConfig returns the memory operand of LdTileCfg: palette 1 with the rows and the bytes of a
// row of each tile (Intel SDM volume 1, 18.2).
func TileConfig(rows, rowBytes [8]uint8) (c [64]byte) {
	c[0] = 1
	for i := range rows {
		c[16+2*i] = rowBytes[i]
		c[48+i] = rows[i]
	}
	return c
}

// SetTiles configures the tiles by a constant, as TileConfig has it, and clears them.
func (a *Asm) SetTiles(rows, rowBytes [8]uint8) {
	c := TileConfig(rows, rowBytes)
	a.AssumeTiles(rows)
	a.LdTileCfg(a.Const(c[:]))
}

// AssumeTiles sets the rows of tiles that instructions are counted with, for code that configures
// them from its arguments.
func (a *Asm) AssumeTiles(rows [8]uint8) { a.tileRows = rows }

// LdTileCfg configures the tiles from 64 bytes and clears them.
func (a *Asm) LdTileCfg(m Mem) {
	f := fields{isMem: true, mem: m}
	a.tileVEX(pNone, 0x49, &f)
	a.note("ldtilecfg", m)
}

// TileRelease returns the tiles to their initial state, so that the system does not save them.
// Every function that configures tiles ends with it.
func (a *Asm) TileRelease() {
	a.tileVEX(pNone, 0x49, &fields{})
	a.note("tilerelease")
}

// TileZero clears a tile.
func (a *Asm) TileZero(t Tile) {
	a.tileVEX(pF2, 0x49, &fields{reg: uint8(t)})
	a.note("tilezero", t)
}

// TileLoad reads the rows of a tile from memory; the index register of m is the distance of rows in
// bytes, its scale 1.
func (a *Asm) TileLoad(t Tile, m Mem) {
	a.tileMove(pF2, "tileloadd", t, m, t, m)
	a.Count(code.Load, a.rowsOf(t))
}

// rowsOf returns the rows that SetTiles gave a tile.
func (a *Asm) rowsOf(t Tile) float64 { return float64(a.tileRows[t&7]) }

// TileStore writes the rows of a tile; see TileLoad.
func (a *Asm) TileStore(m Mem, t Tile) {
	a.tileMove(pF3, "tilestored", t, m, m, t)
	a.Count(code.Store, a.rowsOf(t))
}

func (a *Asm) tileMove(pp uint8, name string, t Tile, m Mem, shown ...Operand) {
	if m.index == noReg || m.pool != 0 {
		a.Fail("%s: a tile in memory needs a base and, as index, the distance of its rows", name)
		return
	}
	a.tileVEX(pp, 0x4B, &fields{reg: uint8(t), isMem: true, mem: m})
	a.note(name, shown...)
}

// TileDot is a dot product of tiles: dst[m][n] += the sum over k of x[m][k] times y[k][n], four
// bytes or two bfloat16 of k at a time.
type TileDot struct {
	name       string
	pp, opcode uint8
}

// The dot products of tiles. Of the integers, the first letter is the sign of x, the second that of
// y.
var (
	TDPBSSD   = TileDot{"tdpbssd", pF2, 0x5E}
	TDPBSUD   = TileDot{"tdpbsud", pF3, 0x5E}
	TDPBUSD   = TileDot{"tdpbusd", p66, 0x5E}
	TDPBUUD   = TileDot{"tdpbuud", pNone, 0x5E}
	TDPBF16PS = TileDot{"tdpbf16ps", pF3, 0x5C}
)

// TileDot multiplies tiles; the three must differ.
func (a *Asm) TileDot(d TileDot, dst, x, y Tile) {
	if dst == x || dst == y || x == y {
		a.Fail("%s: the three tiles must differ", d.name)
		return
	}
	a.tileVEX(d.pp, d.opcode, &fields{reg: uint8(dst), rmReg: uint8(x), vvvv: uint8(y)})
	a.Count(code.Tile, a.rowsOf(dst))
	a.note(d.name, dst, x, y)
}

// tileVEX emits an instruction of map 0F38 with W 0 and length 128, as all of AMX are.
func (a *Asm) tileVEX(pp, opcode uint8, f *fields) {
	if max(f.reg, f.vvvv, f.rmReg) > 7 {
		a.Fail("there are eight tiles")
		return
	}
	a.vexPrefix(&Op{pp: pp, mmm: m0F38}, f)
	a.put(opcode)
	a.modRM(f, 1)
	a.closePool(f)
}
