package exec

import (
	"unsafe"

	"sandwich/runtime/model"
)

// routes is which experts the rows of a forward go to. A row and one of its experts are a pair; the
// rows of BufExpert and BufGate are the pairs, those of one expert together, each expert's in the
// order of the batch. It lies beside the activations, because a halted forward needs it when it
// goes on.
type routes struct {
	used   int
	choice []int32   // [rows][used] the experts of a row, best first
	weight []float32 // [rows][used] what their outputs count; the sum of a row is 1
	sum    []float32 // [rows] denominator of the softmax
	top    []float32 // [rows] its maximum
	place  []int32   // [rows][used] where the pair stands
	source []int32   // [pairs] the row of the pair that stands there
	start  []int32   // [experts+1] where the pairs of an expert begin
	valid  int32     // used, for the softmax kernel
}

// routeBytes is the memory that newRoutes divides.
func routeBytes(e model.Experts, rows int) int {
	if e.Count == 0 {
		return 0
	}
	return 4 * (4*rows*e.Used + 2*rows + e.Count + 1)
}

func newRoutes(e model.Experts, rows int, at unsafe.Pointer) (r routes) {
	if e.Count == 0 {
		return r
	}
	words := unsafe.Slice((*int32)(at), routeBytes(e, rows)/4)
	ints := func(n int) []int32 {
		s := words[:n:n]
		words = words[n:]
		return s
	}
	floats := func(n int) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(ints(n)))), n) }
	pairs := rows * e.Used
	return routes{
		used: e.Used, valid: int32(e.Used),
		choice: ints(pairs), weight: floats(pairs), sum: floats(rows), top: floats(rows),
		place: ints(pairs), source: ints(pairs), start: ints(e.Count + 1),
	}
}

// choose takes the best of a row's experts, best first; of equal ones the first.
func (r *routes) choose(row int, logits []float32) {
	choice, weight := r.choice[row*r.used:][:r.used], r.weight[row*r.used:][:r.used]
	n := 0
	for expert, l := range logits {
		if n == r.used && !(l > weight[n-1]) {
			continue
		}
		at := min(n, r.used-1)
		for ; at > 0 && l > weight[at-1]; at-- {
			choice[at], weight[at] = choice[at-1], weight[at-1]
		}
		choice[at], weight[at] = int32(expert), l
		n = min(n+1, r.used)
	}
}

// group orders the pairs of the first rows by expert (counting sort).
func (r *routes) group(rows int) {
	clear(r.start)
	for _, expert := range r.choice[:rows*r.used] {
		r.start[expert+1]++
	}
	for expert := range len(r.start) - 1 {
		r.start[expert+1] += r.start[expert]
	}
	for pair, expert := range r.choice[:rows*r.used] {
		at := r.start[expert]
		r.start[expert]++
		r.place[pair], r.source[at] = at, int32(pair/r.used)
	}
	// Every start has moved to the end of its expert, where the next one begins.
	copy(r.start[1:], r.start[:len(r.start)-1])
	r.start[0] = 0
}

// route chooses the experts of every row. Their weights are the softmax over the chosen logits,
// which equals the softmax over all of them scaled to sum 1.
func (e *Executor) route(g *group) {
	r := &e.bufs.routes
	experts := e.model.Experts.Count
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for row := lo; row < hi; row++ {
			r.choose(row, unsafe.Slice(g.row(model.BufRouter, row), experts))
			weight := r.weight[row*r.used:][:r.used]
			e.vec.SoftmaxBlock(&weight[0], r.used, 1, r.used, &r.valid, 1, &r.top[row], &r.sum[row])
			for i := range weight {
				weight[i] /= r.sum[row]
			}
		}
	}
	g.barrier()
	if g.id == 0 {
		r.group(e.rows)
	}
}

// dispatch copies each pair's row to where the experts read it.
func (e *Executor) dispatch(g *group) {
	r := &e.bufs.routes
	pairs, hidden := e.rows*r.used, e.model.Dims.Hidden
	for lo, hi, ok := g.next(pairs, rowChunk); ok; lo, hi, ok = g.next(pairs, rowChunk) {
		for at := lo; at < hi; at++ {
			dst := unsafe.Slice(g.row(model.BufExpert, at), hidden)
			copy(dst, unsafe.Slice(g.row(model.BufH, int(r.source[at])), hidden))
		}
	}
}

// combine sums the outputs of each row's experts, best first: one chain of fused multiply-adds an
// element. A unit is a piece of a row, so that the one row of a decode step is shared too.
func (e *Executor) combine(g *group) {
	const piece = 1024
	r := &e.bufs.routes
	hidden := e.model.Dims.Hidden
	pieces := (hidden + piece - 1) / piece
	for lo, hi, ok := g.next(e.rows*pieces, 1); ok; lo, hi, ok = g.next(e.rows*pieces, 1) {
		for u := lo; u < hi; u++ {
			row, c := u/pieces, u%pieces*piece
			n := min(piece, hidden-c)
			dst := addElems(g.row(model.BufY, row), c)
			clear(unsafe.Slice(dst, n))
			for pair := row * r.used; pair < (row+1)*r.used; pair++ {
				e.vec.AddScaled(dst, addElems(g.row(model.BufExpert, int(r.place[pair])), c), r.weight[pair], n)
			}
		}
	}
}
