package plans

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/topotree"
)

// Shares returns the part of the model that each rank holds. A rank with more PUs holds more.
func (p *Plan) Shares() ([]Share, error) {
	weights := make([]int, len(p.Ranks))
	for i, r := range p.Ranks {
		weights[i] = r.PUs.Count()
	}
	return p.Model.Cut(weights)
}

// KeyOf returns the key of the part of a weight that a rank holds, which selects its table.
func (p *Plan) KeyOf(rank int, w WeightShape) WeightKey {
	key := w.Key()
	if shares, err := p.Shares(); err == nil && len(shares) > 1 {
		rows, cols, _ := shares[rank].Matrix(w.Role, p.Model.HeadDim, w.N, w.K)
		key.N, key.K = rows.Len(), cols.Len()
	}
	return key
}

// TableShape is a shape that needs a table in each phase.
type TableShape struct {
	WeightKey
	Compute microkernel.Compute // of the whole matrices (rule 6)
	Threads int                 // largest number of PUs that share one such product
	PerRank bool                // each rank computes its own products; else all ranks share each product
}

// TableShapes returns the tables that each phase needs for a set of active PUs, in their order.
func (p *Plan) TableShapes(active topotree.CPUSet) ([]TableShape, error) {
	shares, err := p.Shares()
	if err != nil {
		return nil, err
	}
	var out []TableShape
	for _, c := range p.Model.tableShapes(shares) {
		compute, err := p.computeOf(c)
		if err != nil {
			return nil, err
		}
		out = append(out, TableShape{WeightKey: c.WeightKey, Compute: compute, Threads: slices.Max(p.threads(c,
			active)),
			PerRank: !c.together})
	}
	return out, nil
}

// tableShape is the shape of a table with the matrices that use it.
type tableShape struct {
	WeightKey
	of       []WeightKey // the whole matrices, which name the compute path
	ranks    []int       // ranks that hold it
	together bool        // all ranks together compute one of the matrices
}

// tableShapes returns the tables that each phase needs, sorted.
func (s ModelShape) tableShapes(shares []Share) []tableShape {
	var out []tableShape
	for _, w := range s.rankWeights(shares) {
		if n := len(out); n == 0 || out[n-1].WeightKey != w.WeightKey {
			out = append(out, tableShape{WeightKey: w.WeightKey})
		}
		last := &out[len(out)-1]
		last.of = append(last.of, w.Of)
		if w.Together {
			last.together = true
		} else {
			last.ranks = append(last.ranks, w.Ranks...)
		}
	}
	return out
}

// computeOf returns the compute path of the matrices of a table shape.
func (p *Plan) computeOf(c tableShape) (path microkernel.Compute, err error) {
	for i, k := range c.of {
		w, ok := p.Weight(k)
		switch {
		case !ok:
			return path, fmt.Errorf("weights has no entry for %s", k)
		case i > 0 && w.Compute != path:
			return path, fmt.Errorf("the ranks hold shards %s of %s and of %s, which use the compute paths %s and %s; "+
				"give both weights one path", c.WeightKey, c.of[0], k, path, w.Compute)
		}
		path = w.Compute
	}
	return path, nil
}

// threads returns the possible numbers of workers of a product of a table shape in a phase: those
// of each rank that holds it, and all if they compute it together.
func (p *Plan) threads(c tableShape, active topotree.CPUSet) []int {
	var out []int
	if c.together {
		out = append(out, active.Count())
	}
	for _, r := range c.ranks {
		out = append(out, p.Ranks[r].PUs.Intersect(active).Count())
	}
	return out
}
