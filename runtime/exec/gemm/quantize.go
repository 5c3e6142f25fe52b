package gemm

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
)

// segments are the parts of rows that are quantized separately, so that all workers share the one
// row of a decode step. They end at blocks of 32, which are independent.
type segments struct {
	each   int // of a row
	chunk  int // that a worker takes at a time
	step   int // elements of the row between them
	pitch  int // elements of the quantized row between them
	length int // of the longest one
	k      int // length of the quantized row
}

// longestSegment is the length of segments of a row that is quantized as a whole.
const longestSegment = 1024

// segmentsOf returns the segments of a row that an op with weights reads.
func segmentsOf(m *model.Model, op *model.Op) segments {
	k := m.Weights[op.W[0]].K
	if op.Kind == model.OpHeads { // one per head
		pitch := tp.QuantizedHead(k)
		return segments{each: op.Heads.Q, chunk: op.Heads.Q, step: op.InStep, pitch: pitch, length: k,
			k: op.Heads.Q * pitch}
	}
	return segments{each: (k + longestSegment - 1) / longestSegment, chunk: 2, step: longestSegment,
		pitch: longestSegment, length: min(k, longestSegment), k: k}
}

// bytes returns the memory for a quantized segment, in entire cache lines.
func (s *segments) bytes(c microkernel.Compute) int { return raw.Lines(c.ActRowBytes(s.length)) }

// segment returns segment number u of a buffer's rows: its address, its length, and the address of
// its quantized form.
func segment(g *tp.Group, in model.Buf, s *segments, u int, c microkernel.Compute) (from *float32, n int,
	to unsafe.Pointer) {
	r, i := u/s.each, u%s.each
	return raw.Add(g.Row(in, r), i*s.step), min(s.length, s.k-i*s.pitch), g.Acts.Quantized[c].At(r, i*s.pitch)
}

// paths returns the compute paths of an op's weights that quantize its input.
func (r *Products) paths(op *model.Op) (need [tp.Paths]bool, any bool) {
	for _, wi := range op.W {
		if p := r.weights.At(wi); p.quantizes() {
			need[p.Compute], any = true, true
		}
	}
	return need, any
}

// Quantize quantizes the caller's part of the m rows that an op reads, as its weights need it. It
// reports whether any weight does; then a barrier must follow before the op begins.
func (r *Products) Quantize(g *tp.Group, op *model.Op, m int, step tp.Step) (any bool) {
	multiplies := op.Kind == model.OpMatMul || op.Kind == model.OpExperts || op.Kind == model.OpHeads
	if !multiplies || step.Index > 0 { // the first step does so for all of them
		return false
	}
	need, any := r.paths(op)
	if !any {
		return false
	}
	s := segmentsOf(r.shard.Model, op)
	total := m * s.each
	chunk := s.chunk
	if !g.W.Tolerant() { // else results must fit private memory
		chunk = s.chunkFor(total, g.N)
	}
	for lo, hi, ok := g.NextQuantize(total, chunk); ok; lo, hi, ok = g.NextQuantize(total, chunk) {
		quantizeChunk(g, op.In, &s, &need, lo, hi)
	}
	return true
}

// chunkFor returns the number of segments that each of so many workers takes at a time: several
// chunks for each, but no more than needed, since workers wait for each other to take one.
func (s *segments) chunkFor(total, workers int) int {
	const chunks, limit = 8, 16 // of a worker; times the smallest chunk
	return max(s.chunk, min(limit*s.chunk, total/(chunks*workers)))
}

// quantizeChunk quantizes segments [lo, hi).
func quantizeChunk(g *tp.Group, in model.Buf, s *segments, need *[tp.Paths]bool, lo, hi int) {
	own, all := g.Scratch.Private, 0
	for c, wanted := range need {
		if wanted {
			all += (hi - lo) * s.bytes(microkernel.Compute(c))
		}
	}
	private := g.Private(all)
	if private {
		tp.Offer(g.W)
	}
	at := own
	for u := lo; u < hi; u++ {
		for c, wanted := range need {
			if !wanted {
				continue
			}
			path := microkernel.Compute(c)
			from, n, to := segment(g, in, s, u, path)
			if private {
				to, at = at, unsafe.Add(at, s.bytes(path))
			}
			g.Vec.QuantizeRow(path, from, n, to)
		}
	}
	if !private {
		return
	}
	tp.Commit(g.W)
	at = own
	for u := lo; u < hi; u++ {
		for c, wanted := range need {
			if wanted {
				path := microkernel.Compute(c)
				_, n, to := segment(g, in, s, u, path)
				bytes := path.ActRowBytes(n)
				copy(unsafe.Slice((*byte)(to), bytes), unsafe.Slice((*byte)(at), bytes))
				at = unsafe.Add(at, s.bytes(path))
			}
		}
	}
}
