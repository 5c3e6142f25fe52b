package vec

import (
	"math"
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// get returns element i of a block of floats.
func (l KVLayout) get(block unsafe.Pointer, i int) float32 {
	if l.Elem == KVF16 {
		return qtype.FloatFromHalf(*(*uint16)(unsafe.Add(block, 2*i)))
	}
	return *(*float32)(unsafe.Add(block, 4*i))
}

// getQ8 returns an element as attention reads it.
func getQ8(block unsafe.Pointer, element, scale int) float32 {
	return float32(*(*int8)(unsafe.Add(block, element))) * q8Scale(block, scale)
}

// q8Scale returns the scale at an offset of a block.
func q8Scale(block unsafe.Pointer, at int) float32 {
	return qtype.FloatFromHalf(*(*uint16)(unsafe.Add(block, at)))
}

// getK returns dimension d of position pos of a K block.
func (l KVLayout) getK(block unsafe.Pointer, pos, d int) float32 {
	if l.Elem == KVQ8 {
		return getQ8(block, l.kIndex(pos, d), l.scaleOf(pos, d))
	}
	return l.get(block, l.kIndex(pos, d))
}

// getV returns dimension d of position pos of a V block.
func (l KVLayout) getV(block unsafe.Pointer, pos, d int) float32 {
	if l.Elem == KVQ8 {
		return getQ8(block, l.vIndex(pos, d), l.scaleOf(pos, d))
	}
	return l.get(block, l.vIndex(pos, d))
}

// Finite reports whether the key and the value of a position (0 to 63) of a K block and a V block
// are finite.
func (l KVLayout) Finite(k, v unsafe.Pointer, pos int) bool {
	if l.Elem == KVF16 {
		return l.finiteHalves(k, v, pos)
	}
	for d := range l.HeadDim {
		for _, x := range [2]float32{l.getK(k, pos, d), l.getV(v, pos, d)} {
			if x != x || x > math.MaxFloat32 || x < -math.MaxFloat32 {
				return false
			}
		}
	}
	return true
}

// finiteHalves is Finite for blocks of float16.
func (l KVLayout) finiteHalves(k, v unsafe.Pointer, pos int) bool {
	const exponent = 0x7C00 // all ones: infinite or NaN
	highest := uint16(0)
	k = unsafe.Add(k, 2*l.kIndex(pos, 0))
	for d := range l.HeadDim {
		highest = max(highest, *(*uint16)(unsafe.Add(k, 2*lanes*d))&exponent)
	}
	for d := 0; d < l.HeadDim; d += lanes {
		panel := unsafe.Slice((*uint16)(unsafe.Add(v, 2*l.vIndex(pos, d))), lanes)
		for _, half := range panel[:min(lanes, l.HeadDim-d)] {
			highest = max(highest, half&exponent)
		}
	}
	return highest < exponent
}

// wideBytes returns the bytes that widenPair writes: a K block and a V block of float32, and
// temporarily the scales.
func (l KVLayout) wideBytes() int {
	w := l.wide()
	return w.KBytes() + w.VBytes() + 2*l.scaleBytes()
}

// widenPair dequantizes a K block and the V block after it to float32 at dst, of wideBytes bytes.
// Native code only.
func (v *Vec) widenPair(l KVLayout, dst, src unsafe.Pointer) {
	if l.Elem == KVF16 {
		v.f16ToF32((*float32)(dst), (*uint16)(src), (l.KBytes()+l.VBytes())/2)
		return
	}
	w := l.wide()
	groups := l.HeadDim / kvScaleDims
	scales := (*float32)(unsafe.Add(dst, w.KBytes()+w.VBytes()))

	v.f16ToF32(scales, (*uint16)(unsafe.Add(src, KVBlock*l.HeadDim)), KVBlock*groups)
	for panel := range KVBlock / lanes {
		args := kernel.VectorArgs{N: lengths{groups}, P: pointers{
			unsafe.Add(dst, panel*w.kPanelBytes()), unsafe.Add(src, panel*l.kPanelBytes()),
			ptr(at(scales, panel*lanes))}}
		v.call(kernel.OpWidenK8, &args)
	}

	dst, src = unsafe.Add(dst, w.KBytes()), unsafe.Add(src, l.KBytes())
	v.f16ToF32(scales, (*uint16)(unsafe.Add(src, KVBlock*l.HeadDim)), KVBlock*groups)
	args := kernel.VectorArgs{P: pointers{dst, src, ptr(scales)}, N: lengths{groups}}
	v.call(kernel.OpWidenV8, &args)
}
