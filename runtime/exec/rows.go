package exec

import (
	"math"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Row chunks of the row-wise ops: small enough that a slow worker holds nobody up for long, large
// enough that handing out costs nothing beside the work.
const rowChunk = 4

// embed fills X with the scaled embedding rows of the batch's tokens, and the rotations of their
// positions.
func (e *Executor) embed(g *group, op *model.Op) {
	d := e.model.Dims
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			token := int(e.batch.Tokens[r])
			dst := unsafe.Slice(g.row(model.BufX, r), d.Hidden)
			if err := e.embedding.row(dst, token); err != nil {
				panic(err) // Load checked type and shape
			}
			scaleRow(dst, op.Scale)
			e.addPlaces(g.vec, dst, op, int(e.positions[r]))
			for i, t := range e.rotations {
				t.angles(unsafe.Slice(e.bufs.rotation(i, r), e.bufs.turned), int(e.positions[r]))
			}
		}
	}
}

// addPlaces adds the rows of token type 0 and of a position, where the op has them.
func (e *Executor) addPlaces(vec *microkernel.Vec, dst []float32, op *model.Op, pos int) {
	if op.Types != nil {
		vec.Add(&dst[0], &op.Types.Data[0], len(dst))
	}
	if op.Places != nil {
		vec.Add(&dst[0], &op.Places.Data[pos*op.Places.N], len(dst))
	}
}

// scaleRow multiplies a row where an architecture does.
func scaleRow(x []float32, scale float32) {
	if scale == 1 {
		return
	}
	for i := range x {
		x[i] *= scale
	}
}

// rotation holds the frequency of each rotated pair: position p turns pair i by p*freq[i].
type rotation struct {
	freq []float64
	neox bool
	gain float64 // of cosines and sines
}

func newRotations(m *model.Model, context int) (list []rotation) {
	for _, r := range m.Ropes() {
		list = append(list, rotation{freq: r.Frequencies(context), neox: r.Neox, gain: r.Gain})
	}
	return list
}

// angles writes the cosines and then the sines of one position, computed in float64 so that long
// contexts keep their precision.
func (t rotation) angles(dst []float32, pos int) {
	half := len(t.freq)
	for i, f := range t.freq {
		sin, cos := math.Sincos(float64(pos) * f)
		dst[i], dst[half+i] = float32(t.gain*cos), float32(t.gain*sin)
	}
}

func (e *Executor) norm(g *group, op *model.Op) {
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		e.normRows(g, op, lo, hi)
	}
}

// addNorm adds what the ops before made of Y to X, and normalizes. With several ranks it is the
// gather of their subgraph, where they have met at a barrier: each row is summed in ascending order
// of ranks, as allreduce.Sum does. Or the first rank has it alone.
func (e *Executor) addNorm(g *group, op *model.Op, alone bool) {
	others := e.bufs.ranks[1:]
	if alone {
		others = nil
	}
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		if e.addNormApart(g, op, others, lo, hi) {
			continue
		}
		for i := range others {
			for r := lo; r < hi; r++ {
				g.vec.Add(g.row(model.BufY, r), others[i].row(model.BufY, r), e.model.Dims.Hidden)
			}
		}
		e.addNormRows(g.vec, op, lo, hi)
	}
}

// addNormRows adds the sum over all ranks, which is in the first one's Y, to X, and normalizes.
func (e *Executor) addNormRows(vec *microkernel.Vec, op *model.Op, row0, row1 int) {
	b := &e.bufs.ranks[0]
	for r := row0; r < row1; r++ {
		e.addRow(vec, b.row(model.BufX, r), b.row(model.BufY, r), op)
		if op.Norm != nil {
			e.normRow(vec, b.row(normed(op), r), b.row(model.BufX, r), op)
		}
	}
}

// addRow is X += Scale * Y, of a Y that is normalized first where the op has a norm for it.
func (e *Executor) addRow(vec *microkernel.Vec, x, y *float32, op *model.Op) {
	hidden := e.model.Dims.Hidden
	if op.Post != nil {
		vec.RMSNorm(y, y, &op.Post.Data[0], hidden, e.model.Eps)
	}
	if op.Scale == 1 {
		vec.Add(x, y, hidden)
	} else {
		vec.AddScaled(x, y, op.Scale, hidden)
	}
	if op.Gain != nil {
		vec.Scale(x, op.Gain.Data[0], hidden)
	}
}

// normed is where an op leaves the normalized rows of X.
func normed(op *model.Op) model.Buf {
	if op.Shift != nil {
		return model.BufX
	}
	return model.BufH
}

func (e *Executor) normRow(vec *microkernel.Vec, to, x *float32, op *model.Op) {
	hidden := e.model.Dims.Hidden
	normSome(vec, to, hidden, x, hidden, 1, hidden, e.model.Eps, op)
}

// normSome normalizes some rows of n elements by an op's norm.
func normSome(vec *microkernel.Vec, to *float32, toStride int, x *float32, stride, rows, n int, eps float32,
	op *model.Op) {
	if op.Shift != nil {
		vec.LayerNormRows(to, toStride, x, stride, rows, &op.Norm.Data[0], &op.Shift.Data[0], n, eps)
		return
	}
	vec.RMSNormRows(to, toStride, x, stride, rows, &op.Norm.Data[0], n, eps)
}

// rowNorm is OpRowNorm.
func (e *Executor) rowNorm(g *group, op *model.Op) {
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			out, in, n := g.row(op.Outs[0], r), g.row(op.In, r), op.Norm.N
			if !op.Onto {
				g.vec.RMSNorm(out, in, &op.Norm.Data[0], n, e.model.Eps)
				continue
			}
			g.vec.RMSNorm(in, in, &op.Norm.Data[0], n, e.model.Eps)
			g.vec.Add(out, in, n)
		}
	}
}

// capRows is OpCap, in strips of a row so that the one row of a decode step is shared too.
func (e *Executor) capRows(g *group, op *model.Op) {
	const strip = 1024
	width := e.model.Width(op.In)
	strips := (width + strip - 1) / strip
	units := len(e.batch.LogitRows) * strips
	for lo, hi, ok := g.next(units, rowChunk); ok; lo, hi, ok = g.next(units, rowChunk) {
		for u := lo; u < hi; u++ {
			row, c := u/strips, u%strips*strip
			g.vec.SoftCap(addElems(g.row(op.In, row), c), min(strip, width-c), 1, op.Cap)
		}
	}
}

// gather copies the scaled rows of H whose logits are wanted to the top of Y, where the head reads
// them.
func (e *Executor) gather(g *group, scale float32) {
	wanted := e.batch.LogitRows
	hidden := e.model.Dims.Hidden
	for lo, hi, ok := g.next(len(wanted), rowChunk); ok; lo, hi, ok = g.next(len(wanted), rowChunk) {
		for i := lo; i < hi; i++ {
			dst := unsafe.Slice(g.row(model.BufY, i), hidden)
			copy(dst, unsafe.Slice(g.row(model.BufH, int(wanted[i])), hidden))
			scaleRow(dst, scale)
		}
	}
}

// run is a strip of a span that lies in one KV block: rows [row, row+n) of the batch at positions
// [pos, pos+n).
type run struct {
	row, n, pos int
	block       kvcache.BlockID
}

// cutRuns splits the spans of a batch at block borders, for the layers of a store.
func cutRuns(dst []run, spans []kvcache.Span, store int) []run {
	dst = dst[:0]
	for i := range spans {
		s := &spans[i]
		for done := 0; done < s.Rows; {
			pos := s.Pos + done
			n := min(s.Rows-done, kvcache.BlockTokens-pos%kvcache.BlockTokens)
			dst = append(dst, run{row: s.Row + done, n: n, pos: pos, block: s.Tables[store][pos/kvcache.BlockTokens]})
			done += n
		}
	}
	return dst
}

// rotateHeads normalizes and rotates the heads of Q and K (where the layer does), and stores K and
// V. A unit is the query heads of some KV heads over one run: of as many as leave every worker two
// units, since a call for all heads of a row costs little more than one for a single head.
func (e *Executor) rotateHeads(g *group, op *model.Op, rope int) {
	kvHeads, runs := op.Heads.KV, e.runs[e.layers.Of[op.Layer]]
	each := min(kvHeads, max(1, len(runs)*kvHeads/(2*g.n)))
	strips := (kvHeads + each - 1) / each
	units := len(runs) * strips
	for lo, hi, ok := g.next(units, 1); ok; lo, hi, ok = g.next(units, 1) {
		for u := lo; u < hi; u++ {
			head := u % strips * each
			e.rotateRun(g, op, rope, &runs[u/strips], head, min(head+each, kvHeads))
		}
	}
}

// rotateRun is KV heads [lo, hi) of a run.
func (e *Executor) rotateRun(g *group, op *model.Op, rope int, of *run, lo, hi int) {
	r := *of // the next forward has others, and perhaps before a worker that is lost comes back
	dim, form := op.Heads.Dim, g.rank.attend.at(op.Layer)
	first, _ := form.queries(lo)
	last, n := form.queries(hi - 1)
	there := [...]window{
		g.window(model.BufQ, r.row, first*dim, (last+n-first)*dim),
		g.window(model.BufK, r.row, lo*dim, (hi-lo)*dim),
		g.window(model.BufV, r.row, lo*dim, (hi-lo)*dim),
	}
	list := there[:1] // those that change
	switch keeps := op.Keeper == op.Layer; {
	case keeps && (op.KeyVal || op.VNorm != nil):
		list = there[:]
	case keeps:
		list = there[:2]
	}
	own := there // or where they are meanwhile
	away := e.away(g, r.n, list)
	if away {
		offer(g.w)
		e.take(g, r.n, own[:len(list)])
	}
	e.turnHeads(g.vec, op, rope, &r, own[:len(list)])
	if away {
		commit(g.w)
		bring(list, own[:len(list)], r.n)
	}
	if op.Keeper != op.Layer {
		return
	}
	k, v := &there[1], &there[2]
	at := r.pos % kvcache.BlockTokens
	for head := lo; head < hi; head++ {
		kBlock, vBlock := g.rank.kv.at(op.Layer, r.block, head)
		g.vec.StoreK(form.layout, kBlock, at, addElems(k.at, (head-lo)*dim), r.n, k.stride)
		g.vec.StoreV(form.layout, vBlock, at, addElems(v.at, (head-lo)*dim), r.n, v.stride)
	}
}

// turnHeads works on the rows of a run in windows of queries and, where the layer keeps its own, of
// keys, and of values where they change.
func (e *Executor) turnHeads(vec *microkernel.Vec, op *model.Op, rope int, r *run, list []window) {
	dim := op.Heads.Dim
	for i := range r.n {
		q, row := &list[0], r.row+i
		e.rotateVectors(vec, q.row(i), q.n/dim, dim, op.QNorm, rope, row)
		if t := op.Temper; t != nil {
			vec.Scale(q.row(i), float32(t.At(r.pos+i)), q.n)
		}
		if len(list) == 1 {
			continue
		}
		k := &list[1]
		heads := k.n / dim
		if len(list) > 2 {
			v := list[2].row(i)
			if op.KeyVal {
				copy(unsafe.Slice(v, k.n), unsafe.Slice(k.row(i), k.n))
			}
			if op.VNorm != nil {
				vec.RMSNormRows(v, dim, v, dim, heads, &op.VNorm.Data[0], dim, e.model.Eps)
			}
		}
		e.rotateVectors(vec, k.row(i), heads, dim, op.KNorm, rope, row)
	}
}

func (e *Executor) rotateVectors(vec *microkernel.Vec, x *float32, heads, dim int, norm *model.Vector, rope, row int) {
	if norm != nil {
		vec.RMSNormRows(x, dim, x, dim, heads, &norm.Data[0], dim, e.model.Eps)
	}
	if rope >= 0 {
		t := &e.rotations[rope]
		vec.RoPE(x, 2*len(t.freq), heads, dim, e.bufs.rotation(rope, row), t.neox)
	}
}
