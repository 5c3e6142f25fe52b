package ranking

import (
	"container/heap"
	"math"

	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/topotree"
	"sandwich/tuner/candidates"
)

// peak returns the rate of the cores of a set; a second thread adds a tenth.
func (h *syntheticHost) peak(set topotree.CPUSet) float64 {
	sum, seen := 0.0, map[int]bool{}
	for pu := range set.All() {
		c := h.core(pu)
		if seen[c] {
			sum += 0.1 * h.speed[c]
			continue
		}
		seen[c] = true
		sum += h.speed[c]
	}
	return sum
}

// rates returns the read rate of each PU while all of a set read. Each reader asks for its maximum,
// and clusters, links and memories that are oversubscribed slow all their readers down equally.
// from returns the nodes of a PU's pages.
func (h *syntheticHost) rates(set topotree.CPUSet, from func(pu int) []int) map[int]float64 {
	out, inCluster := map[int]float64{}, map[int]int{}
	readers := map[int]map[int]bool{} // by node
	for pu := range set.All() {
		wait := 0.0
		for _, j := range from(pu) {
			each := 1.0
			if j != h.node(pu) {
				each = h.far
			}
			wait += each / h.one[h.core(pu)] / float64(len(from(pu)))
			if readers[j] == nil {
				readers[j] = map[int]bool{}
			}
			readers[j][pu] = true
		}
		out[pu] = 1 / wait
		inCluster[h.cluster(pu)]++
	}
	h.bound(out, func(pu int) []int { return []int{h.cluster(pu)} }, 1, func(c int) float64 {
		return past(h.clusterCap, inCluster[c], h.clusterKnee*h.smt, h.clusterLoss)
	})
	for i := range h.nodes { // links of each node
		for j := range h.nodes {
			if i == j {
				continue
			}
			h.bound(out, func(pu int) []int {
				for _, n := range from(pu) {
					if n == j && h.node(pu) == i {
						return []int{0}
					}
				}
				return nil
			}, 0, func(int) float64 { return h.link })
		}
	}
	h.bound(out, from, 0, func(j int) float64 {
		return past(h.nodeCap[j], len(readers[j]), h.nodeKnee*h.smt, h.nodeLoss)
	})
	return out
}

// past returns a bound that falls with each reader beyond the knee.
func past(limit float64, readers, knee int, loss float64) float64 {
	return limit * math.Max(0.4, 1-loss*float64(max(0, readers-knee)))
}

// bound slows the readers of each place down to its capacity. A reader of several places asks each
// for its part, or each for all if part says so.
func (h *syntheticHost) bound(rates map[int]float64, places func(pu int) []int, part float64, gives func(int) float64) {
	asked := map[int]float64{}
	share := func(n int) float64 {
		if part > 0 {
			return part
		}
		return 1 / float64(n)
	}
	for pu := range h.pus() { // in order, so that sums are deterministic
		if v, ok := rates[pu]; ok {
			for _, at := range places(pu) {
				asked[at] += v * share(len(places(pu)))
			}
		}
	}
	for pu, v := range rates {
		slow := 1.0
		for _, at := range places(pu) {
			if g := gives(at); asked[at] > g {
				slow = math.Min(slow, g/asked[at])
			}
		}
		rates[pu] = v * slow
	}
}

// local returns what a set reads from the memory nearest to each PU.
func (h *syntheticHost) local(set topotree.CPUSet) float64 {
	return h.total(h.rates(set, func(pu int) []int { return []int{h.node(pu)} }))
}

// read returns what a set reads from pages on some nodes.
func (h *syntheticHost) read(set topotree.CPUSet, nodes []int) float64 {
	return h.total(h.rates(set, func(int) []int { return nodes }))
}

func (h *syntheticHost) total(rates map[int]float64) float64 {
	sum := 0.0
	for pu := range h.pus() {
		sum += rates[pu]
	}
	return sum
}

// wait returns the seconds of a barrier of a set.
func (h *syntheticHost) wait(set topotree.CPUSet) float64 {
	if set.Count() < 2 {
		return 0
	}
	return h.barrier + h.perLevel*math.Log2(float64(set.Count()))
}

// reduce returns the seconds of an all-reduce: every rank's matrix crosses the machine once.
func (h *syntheticHost) reduce(set topotree.CPUSet, ranks int, bytes int64) float64 {
	return 2*h.wait(set) + float64(bytes)*float64(ranks)/(2*h.link+float64(ranks)*1e9)
}

// ender is a PU that takes the next chunk when it has finished one.
type ender struct {
	at  float64
	pu  int
	per float64
}

// chunksOf is the number of chunks of a PU's share of a rank's work.
const chunksOf = 8

// op runs one op on one rank, chunk by chunk.
func (h *syntheticHost) op(pus []int, flop, bytes float64, peaks map[int]float64, rates map[int]float64) float64 {
	n := float64(chunksOf * len(pus))
	order := &enders{}
	for _, pu := range pus {
		per := math.Max(flop/n/peaks[pu], bytes/n/rates[pu])
		*order = append(*order, ender{0, pu, per})
	}
	heap.Init(order)
	last := 0.0
	for range chunksOf * len(pus) {
		e := &(*order)[0]
		e.at += e.per
		last = math.Max(last, e.at)
		heap.Fix(order, 0)
	}
	return last
}

type enders []ender

func (c enders) Len() int           { return len(c) }
func (c enders) Less(i, j int) bool { return c[i].at+c[i].per < c[j].at+c[j].per }
func (c enders) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *enders) Push(any)          {}
func (c *enders) Pop() any          { return nil }

// forward returns the seconds of a forward of some rows: op by op, rank by rank, with a barrier
// after each op and two all-reduces per layer.
func (h *syntheticHost) forward(s plans.ModelShape, c *candidates.Config, active topotree.CPUSet,
	rows, context int) float64 {
	owner := map[int][]int{}
	total := 0
	for _, r := range c.Ranks {
		total += r.PUs.Count()
		for pu := range r.PUs.All() {
			owner[pu] = r.Nodes
		}
	}
	rates := h.rates(active, func(pu int) []int { return owner[pu] })
	peaks := h.corePeaks(active)
	seconds := 0.0
	run := func(times, flop, bytes float64) {
		slowest := 0.0
		for _, r := range c.Ranks {
			share := float64(r.PUs.Count()) / float64(total)
			slowest = math.Max(slowest, h.op(r.PUs.Intersect(active).Slice(), flop*share, bytes*share, peaks, rates))
		}
		seconds += times * (slowest/0.8 + h.wait(active))
	}
	for _, w := range s.Weights {
		if w.Role == plans.RoleEmbed {
			continue
		}
		m := float64(rows)
		if w.Role == "head" {
			m = 1
		}
		values := float64(w.N) * float64(w.K)
		run(float64(w.Count), 2*m*values, values*roofline.Bits(w.Type)/8)
	}
	pairs := float64(rows) * (float64(context) + float64(rows)/2)
	kv := 4 * float64(context+rows) * float64(s.KVHeads*s.HeadDim)
	run(float64(s.Layers), 4*pairs*float64(s.Heads*s.HeadDim), kv)
	if len(c.Ranks) > 1 {
		seconds += 2 * float64(s.Layers) * h.reduce(active, len(c.Ranks), int64(rows*s.Hidden*4))
	}
	return seconds
}

// corePeaks returns the rate of each PU while the others of a set compute.
func (h *syntheticHost) corePeaks(active topotree.CPUSet) map[int]float64 {
	threads := map[int]int{}
	for pu := range active.All() {
		threads[h.core(pu)]++
	}
	out := map[int]float64{}
	for pu := range active.All() {
		n := threads[h.core(pu)]
		out[pu] = h.speed[h.core(pu)] * (1 + 0.1*float64(n-1)) / float64(n)
	}
	return out
}
