package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
)

// Rotate describes what precedes attention: the norms of the heads of Q and K, their rotation by
// position, and the storage of K and V in float16 blocks of the KV cache. Q is changed in place.
//
// Bindings: q, k, v (rows of float32), angles (a row per row of the batch: Rotated/2 cosines, then
// as many sines), q_norm, k_norm (with QNorm and KNorm: HeadDim float32), kv (block 0 of KV head 0
// of the layer), segments. Push words: q_stride, k_stride, v_stride, angle_stride, q_heads,
// kv_heads, head_words (K and V block of a head), block_words (of all heads), eps (float32).
//
// A segment is the part of a sequence in one KV block, four words: the first row of the batch, the
// number of rows, the position of the first row in the block, the number of the block.
type Rotate struct {
	HeadDim int
	Rotated int  // dimensions of a head that rotate, even; 0: none
	Neox    bool // rotate the pairs (i, i+Rotated/2), else (2i, 2i+1)
	QNorm   bool
	KNorm   bool
}

const (
	segmentWords = 4
	pairLanes    = 32 // invocations for one of the two positions of a workgroup
	rotateSize   = 2 * pairLanes
)

// Grid returns the workgroups: pairs of positions, heads, segments.
func (o Rotate) Grid(qHeads, kvHeads, segments int) [3]int {
	return [3]int{arith.BlockPositions / 2, qHeads + 2*kvHeads, segments}
}

// Kernel builds the kernel.
func (o Rotate) Kernel() (*devgen.Kernel, error) {
	if o.HeadDim < 1 || o.HeadDim > 1024 || o.Rotated < 0 || o.Rotated > o.HeadDim || o.Rotated%2 != 0 {
		return nil, fmt.Errorf("device rotation: %d of %d dimensions", o.Rotated, o.HeadDim)
	}
	name := fmt.Sprintf("rotate_%d_of_%d", o.Rotated, o.HeadDim)
	for _, p := range []struct {
		on   bool
		name string
	}{{o.Neox, "_neox"}, {o.QNorm, "_qnorm"}, {o.KNorm, "_knorm"}} {
		if p.on {
			name += p.name
		}
	}
	r := rotation{Builder: devgen.NewBuilder(name, rotateSize), Rotate: o}
	r.declare()
	r.locate()
	r.read()
	if o.QNorm || o.KNorm {
		r.normalize()
	}
	if o.Rotated > 0 {
		r.rotate()
	}
	r.write()
	return r.Build()
}

// rotation is a Rotate in construction. A workgroup computes one head at two positions, which
// share words of a K block.
type rotation struct {
	*devgen.Builder
	Rotate
	q, k, v, angles, qNorm, kNorm, kv, segments devgen.Buffer
	strides                                     [3]devgen.Value // of q, k and v
	angleStride, qHeads, kvHeads                devgen.Value
	headWords, blockWords, eps                  devgen.Value

	local, lane, second  devgen.Value    // second: 1 for invocations of the second position
	isQ, isK, isV        devgen.Value    // uniform
	head                 [3]devgen.Value // number of the head among those of q, k or v
	position             devgen.Value    // first position of the workgroup in the block
	present              [2]devgen.Value // whether the segment has the positions
	rows                 [2]devgen.Value
	row, isPresent, base devgen.Value // of this invocation's position; base: its words of x
	x                    devgen.Array // the two heads
	block                devgen.Value // first word of the K block
}

func (r *rotation) declare() {
	r.q, r.k = r.Binding("q", devgen.ReadWrite), r.Binding("k", devgen.Read)
	r.v, r.angles = r.Binding("v", devgen.Read), r.Binding("angles", devgen.Read)
	if r.QNorm {
		r.qNorm = r.Binding("q_norm", devgen.Read)
	}
	if r.KNorm {
		r.kNorm = r.Binding("k_norm", devgen.Read)
	}
	r.kv, r.segments = r.Binding("kv", devgen.ReadWrite), r.Binding("segments", devgen.Read)
	for i, name := range []string{"q_stride", "k_stride", "v_stride"} {
		r.strides[i] = r.Push(name, devgen.U32)
	}
	r.angleStride = r.Push("angle_stride", devgen.U32)
	r.qHeads, r.kvHeads = r.Push("q_heads", devgen.U32), r.Push("kv_heads", devgen.U32)
	r.headWords, r.blockWords = r.Push("head_words", devgen.U32), r.Push("block_words", devgen.U32)
	r.eps = r.Push("eps", devgen.F32)
	r.x = r.Shared("x", 2*r.HeadDim)
}

// locate computes the head, the positions and the rows of the workgroup.
func (r *rotation) locate() {
	r.local = r.Builtin(devgen.LocalIndex)
	r.lane, r.second = r.And(r.local, r.U(pairLanes-1)), r.Shr(r.local, r.U(5))
	y := r.Builtin(devgen.GroupY)
	endK := r.Add(r.qHeads, r.kvHeads)
	r.head = [3]devgen.Value{y, r.Sub(y, r.qHeads), r.Sub(y, endK)}
	r.isQ = r.Less(y, r.qHeads)
	r.isV = r.Not(r.Less(y, endK))
	r.isK = r.Not(r.OrBool(r.isQ, r.isV))

	segment := r.Mul(r.Builtin(devgen.GroupZ), r.U(segmentWords))
	word := func(i int) devgen.Value { return r.Load(r.segments, r.Add(segment, r.U(i))) }
	row0, rows, first, block := word(0), word(1), word(2), word(3)
	r.position = r.Shl(r.Builtin(devgen.GroupX), r.U(1))
	for i := range r.rows {
		token := r.Sub(r.Add(r.position, r.U(i)), first) // wraps before the segment
		r.present[i] = r.Less(token, rows)
		r.rows[i] = r.Add(row0, r.Select(r.present[i], token, r.U(0)))
	}
	isSecond := r.Equal(r.second, r.U(1))
	r.row = r.Select(isSecond, r.rows[1], r.rows[0])
	r.isPresent = r.OrBool(r.AndBool(isSecond, r.present[1]), r.AndBool(r.Not(isSecond), r.present[0]))
	r.base = r.Mul(r.second, r.U(r.HeadDim))
	head := r.Select(r.isV, r.head[2], r.head[1])
	r.block = r.Add(r.Mul(block, r.blockWords), r.Mul(head, r.headWords))
}

// dims runs body for the dimensions of this invocation's position that it owns.
func (r *rotation) dims(n int, body func(d devgen.Value)) {
	r.For(r.lane, r.U(n), r.U(pairLanes), body)
}

// read copies the heads to shared memory.
func (r *rotation) read() {
	buffers := [3]devgen.Buffer{r.q, r.k, r.v}
	for i, is := range []devgen.Value{r.isQ, r.isK, r.isV} {
		r.If(is, func() {
			from := r.Add(r.Mul(r.row, r.strides[i]), r.Mul(r.head[i], r.U(r.HeadDim)))
			r.dims(r.HeadDim, func(d devgen.Value) {
				r.StoreShared(r.x, r.Add(r.base, d), r.Load(buffers[i], r.Add(from, d)))
			})
		})
	}
	r.Barrier()
}

// normalize normalizes heads of Q and K.
func (r *rotation) normalize() {
	partial := r.Shared("partial", 2*lanes)
	at := r.Mul(r.second, r.U(lanes))
	r.If(r.Less(r.lane, r.U(lanes)), func() {
		sum := r.Var(r.F(0))
		r.For(r.lane, r.U(r.HeadDim), r.U(lanes), func(d devgen.Value) {
			e := r.LoadSharedF(r.x, r.Add(r.base, d))
			r.Set(sum, r.FMA(e, e, r.Get(sum)))
		})
		r.StoreShared(partial, r.Add(at, r.lane), r.Get(sum))
	})
	r.Barrier()
	scale := rmsScale(r.Builder, tree(r.Builder, partial, at, r.FAdd), r.U(r.HeadDim), r.eps)
	weigh := func(is devgen.Value, weight devgen.Buffer) {
		r.If(is, func() {
			r.dims(r.HeadDim, func(d devgen.Value) {
				i := r.Add(r.base, d)
				r.StoreShared(r.x, i, r.FMul(r.FMul(r.LoadSharedF(r.x, i), scale), r.LoadF(weight, d)))
			})
		})
	}
	if r.QNorm {
		weigh(r.isQ, r.qNorm)
	}
	if r.KNorm {
		weigh(r.isK, r.kNorm)
	}
	r.Barrier()
}

// rotate rotates heads of Q and K.
func (r *rotation) rotate() {
	half := r.Rotated / 2
	r.If(r.Not(r.isV), func() {
		angles := r.Mul(r.row, r.angleStride)
		r.dims(half, func(i devgen.Value) {
			first := r.Add(r.base, r.Shl(i, r.U(1)))
			second := r.Add(first, r.U(1))
			if r.Neox {
				first = r.Add(r.base, i)
				second = r.Add(first, r.U(half))
			}
			cos, sin := r.LoadF(r.angles, r.Add(angles, i)), r.LoadF(r.angles, r.Add(angles, i, r.U(half)))
			a, b := r.LoadSharedF(r.x, first), r.LoadSharedF(r.x, second)
			r.StoreShared(r.x, first, r.FMA(a, cos, r.FNeg(r.FMul(b, sin))))
			r.StoreShared(r.x, second, r.FMA(a, sin, r.FMul(b, cos)))
		})
	})
	r.Barrier()
}

// write stores the heads.
func (r *rotation) write() {
	r.If(r.AndBool(r.isQ, r.isPresent), func() {
		to := r.Add(r.Mul(r.row, r.strides[0]), r.Mul(r.head[0], r.U(r.HeadDim)))
		r.dims(r.HeadDim, func(d devgen.Value) { r.Store(r.q, r.Add(to, d), r.LoadShared(r.x, r.Add(r.base, d))) })
	})
	r.If(r.AndBool(r.isK, r.OrBool(r.present[0], r.present[1])), r.writeK)
	r.If(r.AndBool(r.isV, r.isPresent), r.writeV)
}

// writeK stores words of a K block, which have one dimension of both positions. A position that the
// segment does not have keeps its half.
func (r *rotation) writeK() {
	panel := r.Mul(r.Shr(r.position, r.U(4)), r.U(r.HeadDim*lanes/2))
	first := r.Add(r.block, panel, r.And(r.Shr(r.position, r.U(1)), r.U(lanes/2-1)))
	both := r.AndBool(r.present[0], r.present[1])
	r.For(r.local, r.U(r.HeadDim), r.U(rotateSize), func(d devgen.Value) {
		at := r.Add(first, r.Mul(d, r.U(lanes/2)))
		low := r.HalfFromFloat(r.LoadSharedF(r.x, d))
		high := r.HalfFromFloat(r.LoadSharedF(r.x, r.Add(d, r.U(r.HeadDim))))
		word := r.Var(r.Or(low, r.Shl(high, r.U(16))))
		r.If(r.Not(both), func() {
			old := r.Load(r.kv, at)
			kept := r.Select(r.present[0], r.U(0xffff0000), r.U(0xffff)) // the half that is not stored
			r.Set(word, r.Or(r.And(old, kept), r.And(r.Get(word), r.Xor(kept, r.U(-1)))))
		})
		r.Store(r.kv, at, r.Get(word))
	})
}

// writeV stores words of a V block, which have two dimensions of one position. Dimensions beyond
// those of the head are zeros.
func (r *rotation) writeV() {
	padded := ceil(r.HeadDim, lanes) * lanes
	first := r.Add(r.block, r.U(arith.BlockPositions*r.HeadDim/2))
	position := r.Add(r.position, r.second)
	element := func(d devgen.Value) devgen.Value {
		last := r.Min(d, r.U(r.HeadDim-1))
		h := r.HalfFromFloat(r.LoadSharedF(r.x, r.Add(r.base, last)))
		return r.Select(r.Less(d, r.U(r.HeadDim)), h, r.U(0))
	}
	r.dims(padded/2, func(pair devgen.Value) {
		d := r.Shl(pair, r.U(1))
		panel := r.MulAdd(r.Shr(d, r.U(4)), r.U(arith.BlockPositions), position)
		at := r.Add(first, r.MulAdd(panel, r.U(lanes/2), r.And(pair, r.U(lanes/2-1))))
		r.Store(r.kv, at, r.Or(element(d), r.Shl(element(r.Add(d, r.U(1))), r.U(16))))
	})
}
