package candidates

import (
	"fmt"
	"math"

	"sandwich/roofline"
	"sandwich/topotree"
)

// reads returns the B/s that each rank reads while all ranks do.
func (p *Predictor) reads(c *Config, active topotree.CPUSet) []float64 {
	out := make([]float64, len(c.Ranks))
	bound := map[int]topotree.CPUSet{} // active PUs, by node, of the ranks whose memory is all on the node
	for _, r := range c.Ranks {
		if node := r.Node(); node >= 0 {
			bound[node] = bound[node].Union(r.PUs.Intersect(active))
		}
	}
	for i, r := range c.Ranks {
		pus := r.PUs.Intersect(active)
		if node := r.Node(); node >= 0 { // PUs of one node contend regardless of their rank
			all := bound[node]
			out[i] = p.read(all, []int{node}) * float64(pus.Count()) / float64(all.Count())
			continue
		}
		out[i] = p.read(pus, r.Nodes)
	}
	p.share(c, active, out)
	return out
}

// share slows down ranks that together ask more of a node than it delivers to the PUs nearest to
// it.
func (p *Predictor) share(c *Config, active topotree.CPUSet, rates []float64) {
	if len(c.Ranks) < 2 {
		return
	}
	p.together(active, rates)
	asked := map[int]float64{}
	mixed := map[int]bool{} // nodes read by a rank with pages on several
	for i, r := range c.Ranks {
		for _, node := range r.Nodes {
			asked[node] += rates[i] / float64(len(r.Nodes))
			mixed[node] = mixed[node] || len(r.Nodes) > 1
		}
	}
	slow := make([]float64, len(c.Ranks))
	for i, r := range c.Ranks {
		slow[i] = 1
		for _, node := range r.Nodes {
			if gives := p.gives(node); mixed[node] && gives > 0 && asked[node] > gives {
				slow[i] = math.Min(slow[i], gives/asked[node])
			}
		}
	}
	for i := range rates {
		rates[i] *= slow[i]
	}
}

// together bounds the sum of all ranks by what the active PUs read from their nearest memory.
func (p *Predictor) together(active topotree.CPUSet, rates []float64) {
	sum := 0.0
	for _, v := range rates {
		sum += v
	}
	if limit := p.read(active, nil); limit > 0 && sum > limit {
		for i := range rates {
			rates[i] *= limit / sum
		}
	}
}

// gives returns the most that a node's own PUs read from it.
func (p *Predictor) gives(node int) float64 {
	for _, n := range p.site.nodes {
		if n.ID == node {
			return p.read(n.CPUs.Intersect(p.site.usable), []int{node})
		}
	}
	return 0
}

// read returns what PUs read together from pages on some nodes, or from the nearest nodes if none
// are given.
func (p *Predictor) read(pus topotree.CPUSet, nodes []int) float64 {
	key := pus.Key() + fmt.Sprint(nodes)
	if v, ok := p.local[key]; ok {
		return v
	}
	a := roofline.Answer{}
	if len(nodes) > 0 {
		a = p.machine.Spread(pus, nodes)
	}
	if a.Value <= 0 {
		a = p.machine.Bandwidth(pus, roofline.Local)
	}
	p.local[key] = a.Value
	return a.Value
}

// alone returns the sum of what each of some PUs reads from pages on some nodes when no other PU
// does, or 0 if no anchor needs it.
func (p *Predictor) alone(pus topotree.CPUSet, nodes []int) (sum float64) {
	asked := false
	for _, n := range p.near {
		asked = asked || n.Alone > 0
	}
	if !asked {
		return 0
	}
	key := pus.Key() + fmt.Sprint(nodes)
	if v, ok := p.singles[key]; ok {
		return v
	}
	for pu := range pus.All() {
		one := p.read(topotree.NewCPUSet(pu), nodes)
		if one <= 0 {
			return 0
		}
		sum += one
	}
	p.singles[key] = sum
	return sum
}
