package microkernel

import (
	"encoding/binary"
	"fmt"
	"math"

	"sandwich/microkernel/internal/ref"
)

// fit returns an error if the instruction faults because sizes of tiles do not match.
func (m *tileMachine) fit(dst, x, y int) error {
	rows, bytes := m.size(dst)
	xRows, xBytes := m.size(x)
	yRows, yBytes := m.size(y)
	switch {
	case dst == x || dst == y || x == y:
		return fmt.Errorf("tiles are not different")
	case rows != xRows || bytes != yBytes || xBytes != 4*yRows || bytes%4 != 0:
		return fmt.Errorf("%d rows of %d bytes from %d of %d and %d of %d", rows, bytes, xRows, xBytes, yRows, yBytes)
	}
	return m.used(dst)
}

// dotBF16 computes a product of tiles of bfloat16 (Intel SDM volume 2, TDPBF16PS).
func (m *tileMachine) dotBF16(dst, x, y int) error {
	if err := m.fit(dst, x, y); err != nil {
		return err
	}
	rows, bytes := m.size(dst)
	_, pairs := m.size(x)
	float := func(b []byte) float32 { return ref.FromBF16(binary.LittleEndian.Uint16(b)) }
	for r := range rows {
		for c := 0; c < bytes; c += 4 {
			var even, odd float32
			for k := 0; k < pairs; k += 4 {
				a, b := m.tiles[x][r][k:], m.tiles[y][k/4][c:]
				even, odd = ref.FMAFlush(float(a), float(b), even), ref.FMAFlush(float(a[2:]), float(b[2:]), odd)
			}
			out := m.tiles[dst][r][c:]
			sum := math.Float32frombits(binary.LittleEndian.Uint32(out))
			binary.LittleEndian.PutUint32(out, math.Float32bits(ref.AddFlush(sum, ref.AddFlush(even, odd))))
		}
	}
	return nil
}

// dot is a product of tiles of bytes: x and y are signed as pp says.
func (m *tileMachine) dot(pp byte, dst, x, y int) error {
	if err := m.fit(dst, x, y); err != nil {
		return err
	}
	rows, bytes := m.size(dst)
	_, xBytes := m.size(x)
	number := func(b byte, signed bool) int32 {
		if signed {
			return int32(int8(b))
		}
		return int32(b)
	}
	xSigned, ySigned := pp == 3 || pp == 2, pp == 3 || pp == 1 // F2: both, F3: x, 66: y
	for r := range rows {
		for c := 0; c < bytes; c += 4 {
			out := m.tiles[dst][r][c:]
			sum := binary.LittleEndian.Uint32(out)
			for k := range xBytes {
				sum += uint32(number(m.tiles[x][r][k], xSigned) * number(m.tiles[y][k/4][c+k%4], ySigned))
			}
			binary.LittleEndian.PutUint32(out, sum)
		}
	}
	return m.used(dst)
}
