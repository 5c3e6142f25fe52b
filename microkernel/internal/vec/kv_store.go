package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// StoreK writes the K vectors of `tokens` tokens, stride apart in x, to the positions pos, pos+1,
// ... of one K block (pos + tokens <= 64), rounded to the element type.
func (v *Vec) StoreK(l KVLayout, block unsafe.Pointer, pos int, x *float32, tokens, stride int) {
	one, panel := kernel.OpStoreK16, kernel.OpStorePanelK16
	if l.Rounded {
		one, panel = kernel.OpStoreK16BF16, kernel.OpStorePanelK16BF16
	}
	switch {
	case l.Elem == KVQ8:
		v.storeQ8(l, block, pos, x, tokens, stride, l.kIndex)
		return
	case l.Elem != KVF16 || !v.has(one):
		l.eachRow(x, tokens, stride, func(t int, x *float32) { refStoreK(l, block, pos+t, x, 1, 0) })
		return
	}
	whole := v.has(panel) && l.HeadDim%8 == 0
	for t := 0; t < tokens; {
		p := pointers{unsafe.Add(block, 2*l.kIndex(pos+t, 0)), ptr(at(x, t*stride))}
		if whole && (pos+t)%lanes == 0 && tokens-t >= lanes {
			v.call(panel, &kernel.VectorArgs{P: p, N: lengths{l.HeadDim / 8, stride}})
			t += lanes
			continue
		}
		v.call(one, &kernel.VectorArgs{P: p, N: lengths{l.HeadDim}})
		t++
	}
}

// StoreV is StoreK for the V block.
func (v *Vec) StoreV(l KVLayout, block unsafe.Pointer, pos int, x *float32, tokens, stride int) {
	store := kernel.OpStoreV16
	if l.Rounded {
		store = kernel.OpStoreV16BF16
	}
	switch {
	case l.Elem == KVQ8:
		v.storeQ8(l, block, pos, x, tokens, stride, l.vIndex)
		return
	case l.Elem != KVF16 || !v.has(store):
		l.eachRow(x, tokens, stride, func(t int, x *float32) { refStoreV(l, block, pos+t, x, 1, 0) })
		return
	}
	args := kernel.VectorArgs{
		P: pointers{unsafe.Add(block, 2*l.vIndex(pos, 0)), ptr(x)},
		N: lengths{l.HeadDim, tokens, stride},
	}
	v.call(store, &args)
}

func refStoreK(l KVLayout, block unsafe.Pointer, pos int, x *float32, tokens, stride int) {
	for t := 0; t < tokens; t++ {
		for d, e := range vecOf(at(x, t*stride), l.HeadDim) {
			l.put(block, l.kIndex(pos+t, d), e)
		}
	}
}

func refStoreV(l KVLayout, block unsafe.Pointer, pos int, x *float32, tokens, stride int) {
	for t := 0; t < tokens; t++ {
		for d, e := range vecOf(at(x, t*stride), l.HeadDim) {
			l.put(block, l.vIndex(pos+t, d), e)
		}
		for d := l.HeadDim; d < l.paddedDim(); d++ {
			l.put(block, l.vIndex(pos+t, d), 0)
		}
	}
}

func (l KVLayout) put(block unsafe.Pointer, i int, e float32) {
	if l.Elem == KVF16 {
		*(*uint16)(unsafe.Add(block, 2*i)) = ref.HalfFromFloat(e)
		return
	}
	*(*float32)(unsafe.Add(block, 4*i)) = e
}

// eachRow calls store with one token at a time, rounded to bfloat16 if the layout demands it.
func (l KVLayout) eachRow(x *float32, tokens, stride int, store func(token int, x *float32)) {
	var row [maxKVDim]float32
	for t := range tokens {
		if !l.Rounded {
			store(t, at(x, t*stride))
			continue
		}
		for d, e := range vecOf(at(x, t*stride), l.HeadDim) {
			row[d] = ref.FromBF16(ref.RoundBF16(e))
		}
		store(t, &row[0])
	}
}

// storeQ8 quantizes the vectors of tokens to int8. Sixteen dimensions are equally spaced in a
// block of either kind; index is kIndex or vIndex.
func (v *Vec) storeQ8(l KVLayout, block unsafe.Pointer, pos int, x *float32, tokens, stride int, index func(pos,
	d int) int) {
	var row [maxKVDim / kvScaleDims]kernel.ActQ8
	step := index(0, 1) - index(0, 0)
	for t := range tokens {
		v.quantizeRowQ8(at(x, t*stride), l.HeadDim, unsafe.Pointer(&row))
		for g := range l.HeadDim / kvScaleDims {
			d := g * kvScaleDims
			*(*uint16)(unsafe.Add(block, l.scaleOf(pos+t, d))) = ref.HalfFromFloat(row[g].Scale)
			for half := 0; half < kvScaleDims; half += lanes {
				to := unsafe.Add(block, index(pos+t, d+half))
				for i, q := range row[g].Q[half : half+lanes] {
					*(*int8)(unsafe.Add(to, i*step)) = q
				}
			}
		}
	}
}
