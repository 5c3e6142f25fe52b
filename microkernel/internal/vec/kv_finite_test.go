package vec

import (
	"math"
	"testing"
	"unsafe"
)

// TestKVFinite puts infinities and NaN at each dimension of a position and at its neighbors.
func TestKVFinite(t *testing.T) {
	for _, elem := range []KVType{KVF16, KVF32} {
		l := KVLayout{HeadDim: 40, Elem: elem}
		blocks := make([]float32, (l.KBytes()+l.VBytes())/4)
		k := unsafe.Pointer(&blocks[0])
		v := unsafe.Add(k, l.KBytes())
		put := func(block unsafe.Pointer, i int, x float32) { l.put(block, i, x) }
		for pos := range KVBlock {
			for d := range l.HeadDim {
				put(k, l.kIndex(pos, d), -65504) // the lowest float16
				put(v, l.vIndex(pos, d), 65504)
			}
		}
		for _, pos := range []int{0, 15, 16, KVBlock - 1} {
			for _, bad := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())} {
				for d := range l.HeadDim {
					for _, at := range []struct {
						block unsafe.Pointer
						i     int
					}{{k, l.kIndex(pos, d)}, {v, l.vIndex(pos, d)}} {
						before := l.get(at.block, at.i)
						put(at.block, at.i, bad)
						next, last := l.Finite(k, v, (pos+1)%KVBlock), l.Finite(k, v, (pos+KVBlock-1)%KVBlock)
						if l.Finite(k, v, pos) || !next || !last {
							t.Fatalf("%v: position %d, dimension %d, %v: wrong", elem, pos, d, bad)
						}
						put(at.block, at.i, before)
					}
				}
			}
			if !l.Finite(k, v, pos) {
				t.Errorf("%v: position %d is not finite", elem, pos)
			}
		}
	}
}
