package arm64

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/jit"
)

// outerProductsCorrect reports whether the CPU has outer products of bytes and computes them
// correctly: it runs one of eight rows by eight columns. qemu before 9.0 computes them wrong,
// https://gitlab.com/qemu-project/qemu/-/issues/2083. The machine must have SME.
func outerProductsCorrect() bool {
	if hwcap2()&hwcap2SMEInt8 == 0 || jit.Race {
		return false
	}
	code, err := outerProduct()
	if err != nil {
		return false
	}
	f, err := jit.LoadOne(code)
	if err != nil {
		return false
	}
	const n = testedLanes
	var t struct {
		x, y [n][4]int8
		sums [n][n]int32
	}
	for i := range n {
		for j := range 4 {
			t.x[i][j], t.y[i][j] = int8(37*i-90*j), int8(100-53*i+31*j)
		}
	}
	f.Call(unsafe.Pointer(&t))
	for r := range n {
		for c := range n {
			sum := int32(0)
			for j := range 4 {
				sum += int32(t.x[r][j]) * int32(t.y[c][j])
			}
			if t.sums[r][c] != sum {
				return false
			}
		}
	}
	return true
}

// testedLanes is the number of rows and columns of the outer product of outerProductsCorrect.
const testedLanes = 8

// outerProduct returns the code of that product. Its argument points to the bytes of the rows,
// four each, and those of the columns; the sums follow, row by row.
func outerProduct() ([]byte, error) {
	const n = testedLanes
	words, bytes, address, row, left := asm.P(0), asm.P(1), asm.X(1), asm.X(12), asm.X(2)
	return assemble(asm.SME, func(a *asm.Asm) {
		a.I(asm.SMSTART)
		a.MovImm(address, n)
		a.I(asm.WHILELO, words, asm.ZR, address)
		a.MovImm(address, 4*n)
		a.I(asm.WHILELOB, bytes, asm.ZR, address)
		a.I(asm.ZEROZA)
		a.I(asm.LD1W, asm.V(0), words, asm.X(0))
		a.AddImm(address, 0, 4*n)
		a.I(asm.LD1W, asm.V(1), words, address)
		a.I(asm.SMOPA, asm.Imm(0), bytes, bytes, asm.V(0), asm.V(1))
		a.MovX(row, asm.ZR)
		a.MovImm(left, n)
		a.Loop(left, func() {
			a.AddImm(address, address, 4*n)
			a.I(asm.ST1ZA, asm.Imm(0), words, address)
			a.AddImm(row, row, 1)
		})
		a.I(asm.SMSTOP)
		a.Ret()
	})
}
