package synthetic

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

const (
	kernelShare = 0.8  // fraction of the peak that kernels reach
	siblingGain = 0.1  // fraction of a core's peak that its second PU adds
	tiny        = 1e-9 // shares or columns below it are rounding errors
)

// tinyllama-1.1b in float32.
const (
	layers       = 22
	hidden       = 2048
	kvColumns    = 256 // 4 heads of 64
	ffn          = 5632
	vocabulary   = 32000
	valueBytes   = 4
	promptRows   = 161
	decodeSteps  = 337
	behind       = 330 // positions before a row in decode
	workerChunks = 8   // per op and worker
)

// A rank has its weights and its cache on nodes; on several of them pages are interleaved.
type rank struct{ pus, nodes []int }

type configuration struct {
	ranks           []rank
	prefill, decode []int // active PUs
}

// A moment is the set of workers that still have chunks of an op of some intensity.
type moment struct {
	active    uint64
	intensity float64
}

// A phase is the set of workers of a configuration in prefill or in decode.
type phase struct {
	*traffic
	speed  []float64 // float32 FLOP/s of kernels of each worker without its sibling
	twin   []int     // the worker on the same core, or -1
	rankOf []int     // of each worker
	at     []int     // workers of each rank
	parts  []int     // PUs of all ranks before each rank, and of all ranks
	meet   float64   // seconds of a barrier
	memo   map[moment][]float64
	pus    []int
}

// phase activates PUs. It returns nil if a rank has none of them or one is outside the cpuset.
func (m *machine) phase(c configuration, pus []int) *phase {
	p := &phase{pus: m.place(pus), at: make([]int, len(c.ranks)), parts: []int{0}, memo: map[moment][]float64{}}
	rankOf := map[int]int{}
	for r, k := range c.ranks {
		p.parts = append(p.parts, p.parts[r]+len(k.pus))
		for _, pu := range k.pus {
			rankOf[pu] = r
		}
	}
	worker := make(map[int]int, len(pus))
	for i, pu := range p.pus {
		r, ok := rankOf[pu]
		if !ok {
			panic(fmt.Sprintf("PU %d at work is of no rank", pu))
		}
		if !m.pus[pu].allowed {
			return nil
		}
		p.rankOf = append(p.rankOf, r)
		p.at[r]++
		p.twin = append(p.twin, -1)
		if first, ok := worker[m.pus[pu].core]; ok {
			p.twin[first], p.twin[i] = i, first
		}
		worker[m.pus[pu].core] = i
	}
	if slices.Contains(p.at, 0) {
		return nil
	}
	p.traffic = m.traffic(p.pus, func(pu int) []int { return c.ranks[rankOf[pu]].nodes })
	for _, s := range m.speeds(p.pus) {
		p.speed = append(p.speed, s*kernelShare)
	}
	p.meet = m.barrier(p.pus)
	return p
}

// reading returns the B/s of each active worker, in an op of an intensity.
func (p *phase) reading(now moment) []float64 {
	if known, ok := p.memo[now]; ok {
		return known
	}
	bound := make([]float64, len(p.pus))
	for i := range bound {
		speed := p.speed[i]
		if t := p.twin[i]; t >= 0 && now.active>>t&1 == 1 {
			speed *= (1 + siblingGain) / 2
		}
		bound[i] = min(p.own[i], speed/now.intensity)
	}
	rates := p.rates(now.active, bound)
	p.memo[now] = rates
	return rates
}

// op returns the time of an op, per byte that one of its columns reads: chunk by chunk, at rates
// that are constant until a worker finds no further chunk in its rank.
func (p *phase) op(columns int, intensity float64) float64 {
	next := make([]int, len(p.at))
	left := make([]float64, len(p.pus))
	now := moment{intensity: intensity}
	take := func(i int) bool {
		r := p.rankOf[i]
		all := p.parts[len(p.parts)-1]
		mine := columns*p.parts[r+1]/all - columns*p.parts[r]/all
		chunks := workerChunks * p.at[r]
		for left[i] = 0; left[i] < 0.5 && next[r] < chunks; next[r]++ {
			left[i] = float64((next[r]+1)*mine/chunks - next[r]*mine/chunks)
		}
		return left[i] > 0.5
	}
	for i := range left {
		if take(i) {
			now.active |= 1 << i
		}
	}
	seconds := 0.0
	for now.active != 0 {
		rates := p.reading(now)
		step := math.Inf(1)
		for rest := now.active; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			step = min(step, left[i]/rates[i])
		}
		seconds += step
		for rest := now.active; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			left[i] -= step * rates[i]
			if left[i] <= tiny && !take(i) {
				now.active &^= 1 << i
			}
		}
	}
	return seconds
}

// forward returns the time of one forward of some rows, whose attention uses seen positions on
// average and reads read; the head computes one row.
func (p *phase) forward(rows, seen, read, reduce float64) float64 {
	products := []struct{ columns, depth, count int }{
		{hidden, hidden, 2}, {kvColumns, hidden, 2}, {ffn, hidden, 2}, {hidden, ffn, 1},
	}
	layer, meetings := 0.0, 1.0
	known := map[int]float64{}
	for _, product := range products {
		if _, ok := known[product.columns]; !ok {
			known[product.columns] = p.op(product.columns, 2*rows/valueBytes)
		}
		bytes := float64(product.depth * valueBytes)
		layer += float64(product.count) * bytes * known[product.columns]
		meetings += float64(product.count)
	}
	// A column of attention is one of the query's: two products with every position.
	bytes := read * 2 * kvColumns * valueBytes / hidden
	layer += bytes * p.op(hidden, rows*seen*4/bytes)
	head := hidden * valueBytes * p.op(vocabulary, 2.0/valueBytes)
	return layers*(layer+meetings*p.meet+reduce) + head + p.meet
}

// seconds returns the time of one request, or infinity if the configuration cannot run.
func (m *machine) seconds(c configuration) float64 {
	prefill, decode := m.phase(c, c.prefill), m.phase(c, c.decode)
	if prefill == nil || decode == nil {
		return math.Inf(1)
	}
	ranks := len(c.ranks)
	row := float64(hidden * valueBytes)
	first := prefill.forward(promptRows, (promptRows+1)/2.0, promptRows,
		2*m.allReduce(prefill.pus, ranks, promptRows*row))
	later := decode.forward(1, behind, behind, 2*m.allReduce(decode.pus, ranks, row))
	return first + decodeSteps*later
}
