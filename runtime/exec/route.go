package exec

import (
	"math"
	"unsafe"

	"sandwich/microkernel"
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
	all    int32     // experts, for the same
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
		used: e.Used, valid: int32(e.Used), all: int32(e.Count),
		choice: ints(pairs), weight: floats(pairs), sum: floats(rows), top: floats(rows),
		place: ints(pairs), source: ints(pairs), start: ints(e.Count + 1),
	}
}

// choose takes the best of a row's experts, best first; of equal ones the first. The bias counts
// for the choice alone, and may be nil; the chosen's weights are their scores.
func (r *routes) choose(row int, scores, bias []float32) {
	choice, weight := r.choice[row*r.used:][:r.used], r.weight[row*r.used:][:r.used]
	n := 0
	for expert, l := range scores {
		if bias != nil {
			l += bias[expert]
		}
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
	for i, expert := range choice {
		weight[i] = scores[expert]
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

// route chooses the experts of every row and weighs them.
func (e *Executor) route(g *group, op *model.Op) {
	r := &e.bufs.routes
	experts := e.model.Experts.Count
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for row := lo; row < hi; row++ {
			logits := unsafe.Slice(g.row(model.BufRouter, row), experts)
			r.weigh(g.vec, row, logits, &op.Router)
		}
	}
	g.barrier()
	for _, _, ok := g.next(1, 1); ok; _, _, ok = g.next(1, 1) {
		r.group(e.rows)
	}
}

// weigh chooses the experts of a row and weighs them.
func (r *routes) weigh(vec *microkernel.Vec, row int, logits []float32, by *model.Router) {
	if by.Score == model.Softmax && by.Norm && by.Bias == nil && by.Groups <= 1 {
		r.weighChosen(vec, row, logits)
	} else {
		r.weighAll(vec, row, logits, by)
	}
	r.finish(row, by)
}

// weighChosen makes the weights the softmax over the chosen logits, which equals the softmax over
// all of them scaled to sum 1.
func (r *routes) weighChosen(vec *microkernel.Vec, row int, logits []float32) {
	r.choose(row, logits, nil)
	weight := r.weight[row*r.used:][:r.used]
	vec.SoftmaxBlock(&weight[0], r.used, 1, r.used, &r.valid, 1, &r.top[row], &r.sum[row])
	for i := range weight {
		weight[i] /= r.sum[row]
	}
}

// leastSum is what llama.cpp divides a row's weights by where their sum is less: the smallest
// normal number of half precision. A bias can choose experts whose scores are all but nothing.
const leastSum = 0x1p-14

// weighAll makes scores of all logits, in their place, chooses by them with the bias, if there is
// one, and makes the chosen's scores their weights.
func (r *routes) weighAll(vec *microkernel.Vec, row int, logits []float32, by *model.Router) {
	if by.Score == model.Sigmoid {
		for i, l := range logits {
			logits[i] = float32(1 / (1 + math.Exp(-float64(l))))
		}
	} else {
		vec.SoftmaxBlock(&logits[0], len(logits), 1, len(logits), &r.all, 1, &r.top[row], &r.sum[row])
		for i := range logits {
			logits[i] /= r.sum[row]
		}
	}
	var bias []float32
	if by.Bias != nil {
		bias = by.Bias.Data
	}
	if by.Groups > 1 {
		closeGroups(logits, bias, by.Groups, by.GroupsUsed)
	}
	r.choose(row, logits, bias)
	if !by.Norm {
		return
	}
	weight, sum := r.weight[row*r.used:][:r.used], float32(0)
	for _, w := range weight {
		sum += w
	}
	sum = max(sum, leastSum)
	for i := range weight {
		weight[i] /= sum
	}
}

// closeGroups leaves the scores of the best groups, by the sum of their best two with the bias, and
// nobody chooses an expert of another (DeepSeek-V3, 2024, section 2.1.2). Of equal groups the first
// is better.
func closeGroups(scores, bias []float32, groups, used int) {
	n := len(scores) / groups
	best := func(group int) float32 {
		first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
		for i, s := range scores[group*n:][:n] {
			if bias != nil {
				s += bias[group*n+i]
			}
			if s > first {
				first, second = s, first
			} else if s > second {
				second = s
			}
		}
		if n == 1 {
			return first
		}
		return first + second
	}
	for left := groups; left > used; left-- {
		worst, least := -1, float32(math.Inf(1))
		for group := range groups {
			if s := best(group); !math.IsInf(float64(s), -1) && s <= least {
				worst, least = group, s
			}
		}
		if worst < 0 {
			return
		}
		for i := range n {
			scores[worst*n+i] = float32(math.Inf(-1))
		}
	}
}

// finish scales the weights of a row.
func (r *routes) finish(row int, by *model.Router) {
	weight := r.weight[row*r.used:][:r.used]
	for i := range weight {
		weight[i] *= by.Scale
	}
}

// dispatch copies each pair's row to where the experts read it.
func (e *Executor) dispatch(g *group, op *model.Op) {
	r := &e.bufs.routes
	pairs, hidden := e.rows*r.used, e.model.Dims.Hidden
	for lo, hi, ok := g.next(pairs, rowChunk); ok; lo, hi, ok = g.next(pairs, rowChunk) {
		for at := lo; at < hi; at++ {
			dst := unsafe.Slice(g.row(model.BufExpert, at), hidden)
			copy(dst, unsafe.Slice(g.row(model.BufH, int(r.source[at])), hidden))
			if op.Router.Inward {
				scaleRow(dst, r.weightAt(at))
			}
		}
	}
}

// weightAt is the weight of the pair that stands at a place.
func (r *routes) weightAt(at int) float32 {
	row := int(r.source[at]) * r.used
	for pair := row; pair < row+r.used; pair++ {
		if int(r.place[pair]) == at {
			return r.weight[pair]
		}
	}
	panic("exec: a pair stands nowhere") // group placed all of them
}

// combine sums the outputs of each row's experts, best first: one chain of fused multiply-adds an
// element, from zero or from what Y holds. A unit is a strip of a row, so that the one row of a
// decode step is shared too.
func (e *Executor) combine(g *group, op *model.Op) {
	const strip = 1024
	r := &e.bufs.routes
	hidden := e.model.Dims.Hidden
	strips := (hidden + strip - 1) / strip
	for lo, hi, ok := g.next(e.rows*strips, 1); ok; lo, hi, ok = g.next(e.rows*strips, 1) {
		for u := lo; u < hi; u++ {
			row, c := u/strips, u%strips*strip
			n := min(strip, hidden-c)
			dst := addElems(g.row(op.Outs[0], row), c)
			e.beginSum(g, op, row, dst, n)
			for pair := row * r.used; pair < (row+1)*r.used; pair++ {
				weight := r.weight[pair]
				if op.Router.Inward {
					weight = 1
				}
				g.vec.AddScaled(dst, addElems(g.row(model.BufExpert, int(r.place[pair])), c), weight, n)
			}
		}
	}
}

// beginSum makes n elements of a row of Y what the experts' outputs are added to. What was computed
// beside them is with the first rank, once.
func (e *Executor) beginSum(g *group, op *model.Op, row int, dst *float32, n int) {
	if !op.Onto || !g.shard.first {
		clear(unsafe.Slice(dst, n))
		return
	}
	if op.Gate != nil {
		h := unsafe.Slice(g.row(model.BufH, row), e.model.Dims.Hidden)
		g.vec.Scale(dst, float32(1/(1+math.Exp(-dot(h, op.Gate.Data)))), n)
	}
}

// dot is exact up to the rounding of float64 sums, in one order.
func dot(a, b []float32) float64 {
	var sum [4]float64
	for ; len(a) >= 4; a, b = a[4:], b[4:] {
		for i := range sum {
			sum[i] += float64(a[i]) * float64(b[i])
		}
	}
	for i := range a {
		sum[i] += float64(a[i]) * float64(b[i])
	}
	return sum[0] + sum[1] + (sum[2] + sum[3])
}
