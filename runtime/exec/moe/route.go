// Package moe routes rows to the experts of a model and combines their outputs.
package moe

import (
	"unsafe"

	"sandwich/runtime/model"
)

// Routes describes to which experts the rows of a forward go. A row and one of its experts are a
// pair. The rows of BufExpert and BufGate are the pairs, sorted by expert and then by row. Routes
// belong to a set of activations, because a halted forward needs them when it resumes.
type Routes struct {
	used   int
	choice []int32   // [rows][used] the experts of a row, best first
	weight []float32 // [rows][used] factors of their outputs
	sum    []float32 // [rows] denominator of the softmax
	top    []float32 // [rows] its maximum
	place  []int32   // [rows][used] row of the pair in BufExpert
	source []int32   // [pairs] batch row of a row of BufExpert
	start  []int32   // [experts+1] first pair of an expert
	valid  int32     // used, for the softmax kernel
	all    int32     // experts, for the same
}

// Bytes returns the memory of Routes for so many rows.
func Bytes(e model.Experts, rows int) int {
	if e.Count == 0 {
		return 0
	}
	return 4 * (4*rows*e.Used + 2*rows + e.Count + 1)
}

// New returns routes in Bytes of memory; they are empty for a model without experts.
func New(e model.Experts, rows int, memory unsafe.Pointer) (r Routes) {
	if e.Count == 0 {
		return r
	}
	words := unsafe.Slice((*int32)(memory), Bytes(e, rows)/4)
	ints := func(n int) []int32 {
		s := words[:n:n]
		words = words[n:]
		return s
	}
	floats := func(n int) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(ints(n)))), n) }
	pairs := rows * e.Used
	return Routes{
		used: e.Used, valid: int32(e.Used), all: int32(e.Count),
		choice: ints(pairs), weight: floats(pairs), sum: floats(rows), top: floats(rows),
		place: ints(pairs), source: ints(pairs), start: ints(e.Count + 1),
	}
}

// choose chooses the experts of a row with the best scores, best first; of equal ones the first.
// The bias, which may be nil, affects the choice but not the weights, which are the scores.
func (r *Routes) choose(row int, scores, bias []float32) {
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

// group sorts the pairs of the first rows by expert (counting sort).
func (r *Routes) group(rows int) {
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
	// Each start has moved to the end of its expert, where the next one begins.
	copy(r.start[1:], r.start[:len(r.start)-1])
	r.start[0] = 0
}

// Rows returns the number of pairs of a forward of so many rows, which the experts read.
func (r *Routes) Rows(rows int) int { return rows * r.used }

// rowsOf returns the rows of BufExpert that belong to an expert.
func (r *Routes) rowsOf(expert int) (first, n int) {
	first = int(r.start[expert])
	return first, int(r.start[expert+1]) - first
}

// weightAt returns the weight of the pair at a row of BufExpert.
func (r *Routes) weightAt(at int) float32 {
	row := int(r.source[at]) * r.used
	for pair := row; pair < row+r.used; pair++ {
		if int(r.place[pair]) == at {
			return r.weight[pair]
		}
	}
	panic("moe: a pair has no row") // group placed all of them
}
