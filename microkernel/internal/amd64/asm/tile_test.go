package asm

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"
)

// tileCases are the instructions of AMX with the bytes that llvm-mc gives them.
var tileCases = []struct {
	code string
	emit func(a *Asm)
}{
	{"c4e2784907", func(a *Asm) { a.LdTileCfg(At(RDI, 0)) }},
	{"c4c278498424c8000000", func(a *Asm) { a.LdTileCfg(At(R12, 200)) }},
	{"c4e27849c0", func(a *Asm) { a.TileRelease() }},
	{"c4e27b49c0", func(a *Asm) { a.TileZero(0) }},
	{"c4e27b49f8", func(a *Asm) { a.TileZero(7) }},
	{"c4e27b4b0c07", func(a *Asm) { a.TileLoad(1, AtIndex(RDI, RAX, 1, 0)) }},
	{"c4827b4b5c0508", func(a *Asm) { a.TileLoad(3, AtIndex(R13, R8, 1, 8)) }},
	{"c4e27a4b941e00010000", func(a *Asm) { a.TileStore(AtIndex(RSI, RBX, 1, 256), 2) }},
	{"c4e26b5ec1", func(a *Asm) { a.TileDot(TDPBSSD, 0, 1, 2) }},
	{"c4e25a5eeb", func(a *Asm) { a.TileDot(TDPBSUD, 5, 3, 4) }},
	{"c4e2495ec7", func(a *Asm) { a.TileDot(TDPBUSD, 0, 7, 6) }},
	{"c4e2705ef8", func(a *Asm) { a.TileDot(TDPBUUD, 7, 0, 1) }},
	{"c4e26a5cc1", func(a *Asm) { a.TileDot(TDPBF16PS, 0, 1, 2) }},
}

func TestTileGolden(t *testing.T) {
	for _, c := range tileCases {
		a := New(AVX512)
		var line string
		a.Trace(func(s string) { line = s })
		c.emit(a)
		if code, err := a.Finish(); err != nil || hex.EncodeToString(code) != c.code {
			t.Errorf("%s: %x, %v; want %s", line, code, err, c.code)
		}
	}
}

// TestTilesAgainstLLVM encodes random operands of every instruction of AMX.
func TestTilesAgainstLLVM(t *testing.T) {
	llvm := findLLVM(t)
	g := generator{rand.New(rand.NewPCG(5, 6))}
	var lines []string
	var want [][]byte
	for i := range 200 {
		a := New(AVX512)
		var line string
		a.Trace(func(s string) { line = s })
		m := g.mem()
		rows := AtIndex(m.base, []Reg{RAX, RCX, R9, R14}[g.r.IntN(4)], 1, int(m.disp))
		p := g.r.Perm(8)
		x, y, z := Tile(p[0]), Tile(p[1]), Tile(p[2])
		switch i % 5 {
		case 0:
			a.LdTileCfg(m)
		case 1:
			a.TileLoad(x, rows)
		case 2:
			a.TileStore(rows, x)
		case 3:
			a.TileZero(x)
		case 4:
			a.TileDot([]TileDot{TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD, TDPBF16PS}[g.r.IntN(5)], x, y, z)
		}
		code, err := a.Finish()
		if err != nil {
			t.Fatal(err)
		}
		lines, want = append(lines, line), append(want, code)
	}
	llvm.Compare(t, lines, want)
}

func TestTilesRefused(t *testing.T) {
	for _, emit := range []func(a *Asm){
		func(a *Asm) { a.TileDot(TDPBSSD, 1, 1, 2) },
		func(a *Asm) { a.TileZero(8) },
		func(a *Asm) { a.TileLoad(0, At(RAX, 0)) },
	} {
		a := New(AVX512)
		emit(a)
		if _, err := a.Finish(); err == nil {
			t.Error("an impossible instruction was encoded")
		}
	}
}

func TestTileConfig(t *testing.T) {
	c := TileConfig([8]uint8{16, 3}, [8]uint8{64, 32})
	if c[0] != 1 || c[16] != 64 || c[18] != 32 || c[48] != 16 || c[49] != 3 || c[20] != 0 {
		t.Errorf("% x", c)
	}
}
