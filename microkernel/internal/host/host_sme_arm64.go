package host

import (
	"unsafe"

	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/internal/jit"
)

// bytesMultiply says whether outer products of bytes are there and right: it makes one of eight rows by eight columns on a machine that
// has SME. Emulators have been wrong about them: qemu before 9.0, https://gitlab.com/qemu-project/qemu/-/issues/2083.
func bytesMultiply() bool {
	if hwcap2()&hwcap2SMEInt8 == 0 || jit.Race {
		return false
	}
	const n = 8
	a := a64.New(a64.SME)
	emit := func() {
		words, bytes, address, row, left := a64.P(0), a64.P(1), a64.X(1), a64.X(12), a64.X(2)
		a.I(a64.SMSTART)
		a.MovImm(address, n)
		a.I(a64.WHILELO, words, a64.ZR, address)
		a.MovImm(address, 4*n)
		a.I(a64.WHILELOB, bytes, a64.ZR, address)
		a.I(a64.ZEROZA)
		a.I(a64.LD1W, a64.V(0), words, a64.X(0))
		a.AddImm(address, 0, 4*n)
		a.I(a64.LD1W, a64.V(1), words, address)
		a.I(a64.SMOPA, a64.Imm(0), bytes, bytes, a64.V(0), a64.V(1))
		a.MovX(row, a64.ZR)
		a.MovImm(left, n)
		a.Loop(left, func() {
			a.AddImm(address, address, 4*n)
			a.I(a64.ST1ZA, a64.Imm(0), words, address)
			a.AddImm(row, row, 1)
		})
		a.I(a64.SMSTOP)
		a.Ret()
	}
	emit()
	code, err := a.Finish()
	if err != nil {
		return false
	}
	f, err := jit.Load(code)
	if err != nil {
		return false
	}
	var t struct {
		x, y [n][4]int8
		sums [n][n]int32
	}
	for i := range n {
		for j := range 4 {
			t.x[i][j], t.y[i][j] = int8(37*i-90*j), int8(100-53*i+31*j)
		}
	}
	f[0].Call(unsafe.Pointer(&t))
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
